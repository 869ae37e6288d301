#version 430
// Each point becomes the mean of its four neighbours; the edge of the plate stays.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Heat { float heat[]; };
layout(std430, binding = 1) writeonly buffer Next { float next[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= N * N) return;
  int x = i % N, y = i / N;
  bool edge = x == 0 || y == 0 || x == N - 1 || y == N - 1;
  next[i] = edge ? heat[i] : 0.25 * (heat[i - 1] + heat[i + 1] + heat[i - N] + heat[i + N]);
}
