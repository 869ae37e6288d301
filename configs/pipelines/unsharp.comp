#version 430
// Adds what the blur has removed: photo + amount * (photo - blurred).
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Photo { float photo[]; };
layout(std430, binding = 1) readonly buffer Blurred { float blurred[]; };
layout(std430, binding = 2) writeonly buffer Sharp { float sharp[]; };
uniform float amount;

void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= C * H * W) return;
  sharp[i] = clamp(photo[i] + amount * (photo[i] - blurred[i]), 0.0, 1.0);
}
