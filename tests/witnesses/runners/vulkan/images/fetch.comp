// Every texel of every level and layer of two images.
#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Texels { vec4 texels[]; };
layout(set = 0, binding = 1) uniform sampler2DArray images[2];

void main() {
  int begin = 0, id = int(gl_GlobalInvocationID.x), step = int(64 * gl_NumWorkGroups.x);
  for (int image = 0; image < 2; ++image) {
    for (int level = 0; level < textureQueryLevels(images[image]); ++level) {
      ivec3 size = textureSize(images[image], level);
      int count = size.x * size.y * size.z;
      for (int i = id; i < count; i += step) {
        ivec3 at = ivec3(i % size.x, i / size.x % size.y, i / size.x / size.y);
        texels[begin + i] = texelFetch(images[image], at, level);
      }
      begin += count;
    }
  }
}
