#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Sums { uint y[]; };
void main() { y[gl_GlobalInvocationID.x] += 1; }
