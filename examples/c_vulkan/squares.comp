#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Squares { uint value[]; };
void main() { value[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x * gl_GlobalInvocationID.x; }
