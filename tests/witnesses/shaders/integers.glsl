Integer operations, all of them exactly defined: every renderer must give every bit. What GLSL leaves undefined (division
by zero, the quotient that does not fit, shifts by 32 and more, fields beyond the word) is kept out by the shaders.

@shader int_arithmetic
@local 64
@groups 16
@in int a 1024 edges
@in int b 1024 edges_slow
@out int r 10240 exact
void main() {
  uint i = ID;
  int x = a[i], y = b[i];
  int lowest = int(0x80000000u);
  r[i * 10u] = x + y;
  r[i * 10u + 1u] = x - y;
  r[i * 10u + 2u] = x * y;
  r[i * 10u + 3u] = -x;
  r[i * 10u + 4u] = x == lowest ? 7 : abs(x);
  r[i * 10u + 5u] = sign(x);
  r[i * 10u + 6u] = min(x, y);
  r[i * 10u + 7u] = max(x, y);
  r[i * 10u + 8u] = clamp(x, min(y, 5), max(y, 6));
  r[i * 10u + 9u] = x * 17 + (y << 3) - (x & y);
}

@shader int_division
@local 128
@groups 8
@in int a 1024 edges
@in int b 1024 edges_slow
@in uint n 1024 edges
@in uint d 1024 edges_slow
@out int q 5120 exact
@out uint u 5120 exact
void main() {
  uint i = ID;
  int lowest = int(0x80000000u);
  int x = a[i], y = b[i];
  if (y == 0 || (x == lowest && y == -1)) y = 3;
  q[i * 5u] = x / y;
  q[i * 5u + 1u] = x / 7;
  q[i * 5u + 2u] = x / -16;
  q[i * 5u + 3u] = x - (x / y) * y;
  q[i * 5u + 4u] = (x & 0x7fffffff) % max(y & 0x7fffffff, 1);
  uint z = max(d[i], 1u);
  u[i * 5u] = n[i] / z;
  u[i * 5u + 1u] = n[i] % z;
  u[i * 5u + 2u] = n[i] / 10u;
  u[i * 5u + 3u] = n[i] % 1000003u;
  u[i * 5u + 4u] = n[i] % 64u;
}

@shader uint_arithmetic
@local 64
@groups 16
@in uint a 1024 edges
@in uint b 1024 edges_slow
@out uint r 10240 exact
void main() {
  uint i = ID;
  uint x = a[i], y = b[i];
  r[i * 10u] = x + y;
  r[i * 10u + 1u] = x - y;
  r[i * 10u + 2u] = x * y;
  r[i * 10u + 3u] = x & ~y;
  r[i * 10u + 4u] = (x | y) ^ 0xa5a5a5a5u;
  r[i * 10u + 5u] = min(x, y);
  r[i * 10u + 6u] = max(x, y);
  r[i * 10u + 7u] = clamp(x, min(y, 100u), max(y, 100u));
  r[i * 10u + 8u] = (x & y) | (~x & 0x12345678u);
  r[i * 10u + 9u] = (x + y) * 3u + (x ^ y);
}

@shader int_shifts
@local 64
@groups 16
@in int a 1024 edges
@in uint b 1024 edges_slow
@in uint s 1024 range:0:31
@out int r 3072 exact
@out uint u 4096 exact
void main() {
  uint i = ID;
  r[i * 3u] = a[i] << s[i];
  r[i * 3u + 1u] = a[i] >> s[i];
  r[i * 3u + 2u] = (a[i] >> 31) ^ (a[i] << 1);
  u[i * 4u] = b[i] << s[i];
  u[i * 4u + 1u] = b[i] >> s[i];
  u[i * 4u + 2u] = (b[i] << s[i]) | (b[i] >> ((32u - s[i]) & 31u));
  u[i * 4u + 3u] = (b[i] >> 7) + (b[i] << 5);
}

@shader int_compare
@local 64
@groups 16
@in int a 1024 edges
@in int b 1024 edges_slow
@out uint r 3072 exact
void main() {
  uint i = ID;
  int x = a[i], y = b[i];
  uint ux = uint(x), uy = uint(y);
  uint bits = 0u;
  if (x < y) bits |= 1u;
  if (x <= y) bits |= 2u;
  if (x > y) bits |= 4u;
  if (x >= y) bits |= 8u;
  if (x == y) bits |= 16u;
  if (x != y) bits |= 32u;
  if (ux < uy) bits |= 64u;
  if (ux <= uy) bits |= 128u;
  if (ux > uy) bits |= 256u;
  if (ux >= uy) bits |= 512u;
  r[i * 3u] = bits;
  bvec4 less = lessThan(ivec4(x, y, x ^ y, x & y), ivec4(y, 0, 1000, -1));
  r[i * 3u + 1u] = uint(any(less)) | uint(all(less)) << 1 | uint(less.x != less.z) << 2 |
                   uint(all(notEqual(ivec2(x, y), ivec2(y, x)))) << 3;
  ivec4 chosen = mix(ivec4(x), ivec4(y, 1, 2, 3), less);
  r[i * 3u + 2u] = uint(chosen.x + chosen.y * 3 + chosen.z * 5 + chosen.w * 7);
}

@shader bit_fields
@local 64
@groups 16
@in int a 1024 edges
@in uint b 1024 edges_slow
@in int o 1024 range:0:31
@in int n 1024 range:0:32
@out int r 1024 exact
@out uint u 4096 exact
void main() {
  uint i = ID;
  int width = min(n[i], 32 - o[i]);
  r[i] = bitfieldExtract(a[i], o[i], width);
  u[i * 4u] = bitfieldExtract(b[i], o[i], width);
  u[i * 4u + 1u] = bitfieldInsert(b[i], uint(a[i]), o[i], width);
  u[i * 4u + 2u] = bitfieldInsert(b[i], uint(a[i]), 8, 12);
  u[i * 4u + 3u] = bitfieldExtract(b[i], 0, 32) ^ bitfieldExtract(b[i], 13, 7);
}

@shader bit_counts
@local 37
@groups 27
@in int a 999 edges
@in uint b 999 edges
@out int r 4995 exact
@out uint u 1998 exact
void main() {
  uint i = ID;
  r[i * 5u] = bitCount(a[i]);
  r[i * 5u + 1u] = findLSB(a[i]);
  r[i * 5u + 2u] = findMSB(a[i]);
  r[i * 5u + 3u] = findMSB(b[i]);
  r[i * 5u + 4u] = findMSB(b[i] >> (i & 31u)) + findLSB(b[i] << (i & 31u)) * 64;
  u[i * 2u] = bitfieldReverse(b[i]);
  u[i * 2u + 1u] = uint(bitCount(bitfieldReverse(b[i]) ^ uint(a[i])));
}

@shader extended_arithmetic
@local 64
@groups 16
@in int a 1024 edges
@in int b 1024 edges_slow
@out uint u 6144 exact
@out int s 2048 exact
void main() {
  uint i = ID;
  uint x = uint(a[i]), y = uint(b[i]);
  uint high, low, carry, borrow;
  umulExtended(x, y, high, low);
  u[i * 6u] = high;
  u[i * 6u + 1u] = low;
  u[i * 6u + 2u] = uaddCarry(x, y, carry);
  u[i * 6u + 3u] = carry;
  u[i * 6u + 4u] = usubBorrow(x, y, borrow);
  u[i * 6u + 5u] = borrow;
  int shigh, slow;
  imulExtended(a[i], b[i], shigh, slow);
  s[i * 2u] = shigh;
  s[i * 2u + 1u] = slow;
}

@shader int64_arithmetic
@local 64
@groups 16
@needs int64
@in int64_t a 1024 edges
@in int64_t b 1024 edges_slow
@out int64_t r 8192 exact
void main() {
  uint i = ID;
  int64_t x = a[i], y = b[i];
  r[i * 8u] = x + y;
  r[i * 8u + 1u] = x - y;
  r[i * 8u + 2u] = x * y;
  r[i * 8u + 3u] = -x;
  r[i * 8u + 4u] = min(x, y);
  r[i * 8u + 5u] = max(x, y);
  r[i * 8u + 6u] = x < y ? x ^ y : x & y;
  uint64_t divisor = max(uint64_t(y), uint64_t(1));
  r[i * 8u + 7u] = int64_t(uint64_t(x) / divisor + uint64_t(x) % divisor);
}

@shader int64_bits
@local 64
@groups 16
@needs int64
@in uint64_t a 1024 edges
@in uint64_t b 1024 edges_slow
@in uint s 1024 range:0:63
@out uint64_t r 6144 exact
@out uint c 1024 exact
void main() {
  uint i = ID;
  uint64_t x = a[i], y = b[i];
  int shift = int(s[i]);
  r[i * 6u] = x << shift;
  r[i * 6u + 1u] = x >> shift;
  r[i * 6u + 2u] = uint64_t(int64_t(x) >> shift);
  r[i * 6u + 3u] = (x | y) & ~(x & y);
  uvec2 parts = unpackUint2x32(x);
  r[i * 6u + 4u] = packUint2x32(parts.yx);
  r[i * 6u + 5u] = uint64_t(parts.x) * uint64_t(parts.y);
  uint bits = 0u;
  if (x < y) bits |= 1u;
  if (x == y) bits |= 2u;
  if (int64_t(x) < int64_t(y)) bits |= 4u;
  if (int64_t(x) >= int64_t(y)) bits |= 8u;
  if (x > y) bits |= 16u;
  c[i] = bits;
}

@shader int64_conversions
@local 64
@groups 4
@needs int64 float64
@in int a 256 edges
@in uint b 256 edges
@in float f 256 range:-1000000:1000000
@in int64_t w 256 edges
@out int64_t r 1024 exact
@out double d 256 exact
void main() {
  uint i = ID;
  r[i * 4u] = int64_t(a[i]) * int64_t(3);
  r[i * 4u + 1u] = int64_t(uint64_t(b[i]) << 16);
  r[i * 4u + 2u] = int64_t(f[i]);
  r[i * 4u + 3u] = int64_t(int(w[i])) + int64_t(uint(w[i]));
  d[i] = double(w[i] >> 12);
}

@shader hashes
@local 64
@groups 16
@in uint a 1024 edges
@out uint r 4096 exact
uint pcg(uint v) {
  uint state = v * 747796405u + 2891336453u;
  uint word = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
  return (word >> 22) ^ word;
}
uint xorshift(uint v) {
  v ^= v << 13;
  v ^= v >> 17;
  return v ^ (v << 5);
}
void main() {
  uint i = ID;
  uint p = a[i], x = a[i] | 1u, f = 2166136261u, m = a[i];
  for (int k = 0; k < 16; ++k) p = pcg(p + uint(k));
  for (int k = 0; k < 40; ++k) x = xorshift(x);
  for (int k = 0; k < 4; ++k) f = (f ^ ((a[i] >> (8 * k)) & 255u)) * 16777619u;
  m = (m ^ (m >> 16)) * 0x85ebca6bu;
  m = (m ^ (m >> 13)) * 0xc2b2ae35u;
  r[i * 4u] = p;
  r[i * 4u + 1u] = x;
  r[i * 4u + 2u] = f;
  r[i * 4u + 3u] = m ^ (m >> 16);
}

@shader crc32
@local 32
@groups 8
@in uint text 4096 any
@out uint r 256 exact
void main() {
  uint i = ID;
  uint crc = 0xffffffffu;
  for (uint w = 0u; w < 16u; ++w) {
    uint word = text[i * 16u + w];
    for (uint k = 0u; k < 4u; ++k) {
      crc ^= (word >> (8u * k)) & 255u;
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0u ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
    }
  }
  r[i] = ~crc;
}
