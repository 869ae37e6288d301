#version 430
// One direction of a separable blur with nine taps. The edge is repeated.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Blurred { float blurred[]; };

const float taps[5] = float[](0.2270270, 0.1945946, 0.1216216, 0.0540541, 0.0162162);

float at(int plane, int y, int x) { return source[(plane * H + clamp(y, 0, H - 1)) * W + clamp(x, 0, W - 1)]; }

void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= C * H * W) return;
  int x = i % W, y = i / W % H, plane = i / (W * H);
  float sum = taps[0] * at(plane, y, x);
  for (int k = 1; k < 5; ++k) {
    sum += taps[k] * (at(plane, y + k * STEP_Y, x + k * STEP_X) + at(plane, y - k * STEP_Y, x - k * STEP_X));
  }
  blurred[i] = sum;
}
