#version 430
// One pass of the scan: adds the element `offset` places before, and doubles the distance for the next pass.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Sums { float sums[]; };
layout(std430, binding = 1) readonly buffer Offset { uint offset; };
layout(std430, binding = 2) writeonly buffer Next { float next[]; };
layout(std430, binding = 3) writeonly buffer NextOffset { uint next_offset; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < sums.length()) next[i] = i < offset ? sums[i] : sums[i] + sums[i - offset];
  if (i == 0u) next_offset = offset * 2u;
}
