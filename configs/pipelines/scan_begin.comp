#version 430
// Copies the numbers, and begins with the distance 1.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Numbers { float numbers[]; };
layout(std430, binding = 1) writeonly buffer Sums { float sums[]; };
layout(std430, binding = 2) writeonly buffer Offset { uint offset; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < numbers.length()) sums[i] = numbers[i];
  if (i == 0u) offset = 1u;
}
