Types that only the Vulkan side offers: 8 and 16 bits, half precision, and atomics of 64 bits.

@shader half_arithmetic
@why half sums and products are correctly rounded; a device may keep or flush denormal halves.
@needs vulkan float16 storage16
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_16bit_storage
@local 64
@groups 8
@in float16_t a 512 edges
@in float16_t b 512 edges_slow
@out float16_t r 2560 value,flush
void main() {
  uint i = ID;
  precise float16_t sum = a[i] + b[i];
  precise float16_t difference = a[i] - b[i];
  precise float16_t product = a[i] * b[i];
  r[i * 5u] = sum;
  r[i * 5u + 1u] = difference;
  r[i * 5u + 2u] = product;
  r[i * 5u + 3u] = min(a[i], b[i]);
  r[i * 5u + 4u] = max(abs(a[i]), -b[i]);
}

@shader half_vectors
@why sums of products of whole halves below 64 are exact in every order and fusing.
@needs vulkan float16 storage16
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_16bit_storage
@local 64
@groups 4
@in f16vec2 a 256 whole
@in f16vec2 b 256 whole
@out f16vec2 r 256 value
@out float d 256 value
void main() {
  uint i = ID;
  r[i] = a[i] * b[i] + a[i].yx;
  d[i] = float(a[i].x) * float(b[i].y) + float(dot(a[i], b[i]));
}

@shader short_arithmetic
@needs vulkan int16 storage16
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_16bit_storage
@local 64
@groups 8
@in int16_t a 512 edges
@in int16_t b 512 edges_slow
@out int16_t r 4096 exact
void main() {
  uint i = ID;
  int16_t x = a[i], y = b[i];
  r[i * 8u] = x + y;
  r[i * 8u + 1u] = x - y;
  r[i * 8u + 2u] = x * y;
  r[i * 8u + 3u] = min(x, y);
  r[i * 8u + 4u] = max(x, y);
  r[i * 8u + 5u] = x ^ (y & int16_t(0x0f0f));
  r[i * 8u + 6u] = x >> int16_t(y & int16_t(15));
  r[i * 8u + 7u] = int16_t(uint16_t(x) >> uint16_t(3)) + (x << int16_t(y & int16_t(15)));
}

@shader byte_arithmetic
@needs vulkan int8 storage8
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_8bit_storage
@local 64
@groups 8
@in int8_t a 512 any
@in uint8_t b 512 any
@out int8_t r 1024 exact
@out uint8_t u 1024 exact
@out int s 512 exact
void main() {
  uint i = ID;
  int8_t x = a[i];
  uint8_t y = b[i];
  r[i * 2u] = x + int8_t(y);
  r[i * 2u + 1u] = x * int8_t(3) - int8_t(y);
  u[i * 2u] = y + uint8_t(x);
  u[i * 2u + 1u] = y ^ uint8_t(x) >> uint8_t(1);
  s[i] = int(x) * int(y);
}

@shader half_conversions
@why the rounding of a conversion to half is left open, to nearest or to zero: the two are neighbours.
@needs vulkan float16 storage16
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_16bit_storage
@local 64
@groups 4
@in float a 256 range:-60000:60000
@in float16_t h 256 edges
@in int n 256 range:-2000:2000
@out float16_t r 512 off=1
@out float f 256 value
@out int s 256 exact
void main() {
  uint i = ID;
  r[i * 2u] = float16_t(a[i]);
  r[i * 2u + 1u] = float16_t(n[i]);
  f[i] = float(h[i]);
  s[i] = int(float16_t(n[i]) * float16_t(2.0));
}

@shader long_atomics
@needs vulkan int64 atomic_int64
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_atomic_int64
@local 64
@groups 4
@in uint64_t a 256 edges
@inout uint64_t r 6 any exact
@inout int64_t s 2 any exact
void main() {
  uint64_t v = a[ID];
  atomicAdd(r[0], v);
  atomicMin(r[1], v);
  atomicMax(r[2], v);
  atomicAnd(r[3], v | 0xffff0000ffff0000ul);
  atomicOr(r[4], v & 0x00ff00ff00ff00fful);
  atomicXor(r[5], v);
  atomicMin(s[0], int64_t(v));
  atomicMax(s[1], int64_t(v));
}

@shader narrow_storage
@needs vulkan int16 int8 storage16 storage8
@extension GL_EXT_shader_explicit_arithmetic_types
@extension GL_EXT_shader_16bit_storage
@extension GL_EXT_shader_8bit_storage
@local 64
@groups 4
@in uint a 256 any
@inout uint16_t h 512 index exact
@inout uint8_t b 768 index exact
void main() {
  uint i = ID;
  h[511u - i * 2u] = uint16_t(a[i] >> 7);
  b[i * 3u + 1u] = uint8_t(a[i]) + b[i * 3u];
  if ((i & 1u) == 0u) b[i * 3u + 2u] = uint8_t(h[i * 2u] >> 3);
}
