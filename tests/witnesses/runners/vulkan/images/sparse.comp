// An image of which 64 KiB have memory: stores texels 4 and 16 apart, and reads them back with their residency. What a
// sampler fetches in the dispatch that stores it is undefined: of that only the residency counts.
#version 450
#extension GL_ARB_sparse_texture2 : require
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Answers { uvec4 answers[]; };
layout(set = 0, binding = 1) uniform usampler2D image;
layout(set = 0, binding = 2, r32ui) coherent uniform uimage2D stored;

void main() {
  int id = int(gl_LocalInvocationID.x);
  for (int row = 0; row < 16; ++row) imageStore(stored, ivec2(id * 4, row * 16), uvec4(1 + id * 16 + row));
  memoryBarrier();
  barrier();
  int other = (id + 5) % 64;
  for (int row = 0; row < 16; ++row) {
    uvec4 fetched = uvec4(99), loaded = uvec4(99);
    bool first = sparseTexelsResidentARB(sparseTexelFetchARB(image, ivec2(other * 4, row * 16), 0, fetched));
    bool second = sparseTexelsResidentARB(sparseImageLoadARB(stored, ivec2(other * 4, row * 16), loaded));
    answers[row * 64 + other] = uvec4(fetched.x, loaded.x, first ? 1 : 0, second ? 1 : 0);
  }
}
