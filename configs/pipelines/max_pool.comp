#version 430
// The largest of each two by two elements. H and W are those of the input.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Pooled { float pooled[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= C * (H / 2) * (W / 2)) return;
  int x = i % (W / 2), y = i / (W / 2) % (H / 2), plane = i / ((W / 2) * (H / 2));
  int at = (plane * H + 2 * y) * W + 2 * x;
  pooled[i] = max(max(source[at], source[at + 1]), max(source[at + W], source[at + W + 1]));
}
