Small programs as they are met in practice.

@shader conv2d_whole
@local 8 8
@groups 2 2 4
@in float x 972 whole
@in float w 108 whole
@in float bias 4 whole
@out float r 1024 value
void main() {
  // 3 channels of 18 x 18, 3 x 3, into 4 channels of 16 x 16.
  uvec3 g = gl_GlobalInvocationID;
  float sum = bias[g.z];
  for (uint c = 0u; c < 3u; ++c) {
    for (uint ky = 0u; ky < 3u; ++ky) {
      for (uint kx = 0u; kx < 3u; ++kx) {
        sum += x[(c * 18u + g.y + ky) * 18u + g.x + kx] * w[((g.z * 3u + c) * 3u + ky) * 3u + kx];
      }
    }
  }
  r[(g.z * 16u + g.y) * 16u + g.x] = max(sum, 0.0);
}

@shader conv2d_padded
@why 45 products of numbers below 1, each sum fused or not: 45 roundings of numbers below 16.
@local 16 4
@groups 1 4 2
@in float x 1280 range:-1:1
@in float w 90 range:-1:1
@out float r 512 abs=5e-5
void main() {
  // 5 channels of 16 x 16, 3 x 3, padded by 1, into 2 channels.
  ivec3 g = ivec3(gl_GlobalInvocationID);
  float sum = 0.0;
  for (int c = 0; c < 5; ++c) {
    for (int ky = -1; ky <= 1; ++ky) {
      int y = g.y + ky;
      if (y < 0 || y >= 16) continue;
      for (int kx = -1; kx <= 1; ++kx) {
        int at = g.x + kx;
        if (at >= 0 && at < 16) sum += x[(c * 16 + y) * 16 + at] * w[((g.z * 5 + c) * 3 + ky + 1) * 3 + kx + 1];
      }
    }
  }
  r[(g.z * 16 + g.y) * 16 + g.x] = sum;
}

@shader gemm_tiled
@local 16 16
@groups 3 2
@in float a 1280 whole
@in float b 1920 whole
@out float c 1536 value
shared float ta[16][16];
shared float tb[16][16];
void main() {
  // 32 x 40 by 40 x 48; the last tile of the inner dimension is half empty.
  uvec2 l = gl_LocalInvocationID.xy, g = gl_GlobalInvocationID.xy;
  float sum = 0.0;
  for (uint t = 0u; t < 3u; ++t) {
    uint ka = t * 16u + l.x, kb = t * 16u + l.y;
    ta[l.y][l.x] = ka < 40u ? a[g.y * 40u + ka] : 0.0;
    tb[l.y][l.x] = kb < 40u ? b[kb * 48u + g.x] : 0.0;
    meet();
    for (uint k = 0u; k < 16u; ++k) sum += ta[l.y][k] * tb[k][l.x];
    meet();
  }
  c[g.y * 48u + g.x] = sum;
}

@shader gemm_blocked
@why 64 products of numbers below 1: 64 roundings of numbers below 64, fused or not.
@local 8 8
@groups 2 2
@in vec4 a 1024 range:-1:1
@in vec4 b 1024 range:-1:1
@out vec4 c 1024 abs=2.5e-4
void main() {
  // 64 x 64 by 64 x 64, a block of 4 x 4 each.
  uvec2 g = gl_GlobalInvocationID.xy;
  vec4 sums[4] = vec4[4](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
  for (uint k = 0u; k < 16u; ++k) {
    for (uint row = 0u; row < 4u; ++row) {
      vec4 v = a[(g.y * 4u + row) * 16u + k];
      for (uint e = 0u; e < 4u; ++e) sums[row] += v[e] * b[(k * 4u + e) * 16u + g.x];
    }
  }
  for (uint row = 0u; row < 4u; ++row) c[(g.y * 4u + row) * 16u + g.x] = sums[row];
}

@shader mandelbrot
@local 8 8
@groups 4 4
@out uint r 1024 exact
void main() {
  uvec2 g = gl_GlobalInvocationID.xy;
  precise vec2 c = vec2(float(g.x) * 0.09375 - 2.25, float(g.y) * 0.0859375 - 1.375);
  precise vec2 z = vec2(0.0);
  uint n = 0u;
  for (; n < 200u; ++n) {
    precise float xx = z.x * z.x;
    precise float yy = z.y * z.y;
    if (xx + yy > 4.0) break;
    precise float y = z.x * z.y * 2.0 + c.y;
    precise float x = xx - yy + c.x;
    z = vec2(x, y);
  }
  r[g.y * 32u + g.x] = n;
}

@shader prefix_sum
@local 128
@groups 8
@passes 3
@in uint a 1024 any
@inout uint r 1024 zero exact
@inout uint sums 8 zero exact
shared uint row[128];
void main() {
  uint l = gl_LocalInvocationID.x, w = gl_WorkGroupID.x;
  if (parameters.pass == 0u) {
    row[l] = a[ID];
    meet();
    for (uint s = 1u; s < 128u; s <<= 1) {
      uint v = l >= s ? row[l - s] : 0u;
      meet();
      row[l] += v;
      meet();
    }
    r[ID] = row[l];
    if (l == 127u) sums[w] = row[l];
  } else if (parameters.pass == 1u) {
    if (ID == 0u) {
      uint sum = 0u;
      for (uint k = 0u; k < 8u; ++k) {
        uint v = sums[k];
        sums[k] = sum;
        sum += v;
      }
    }
  } else {
    r[ID] += sums[w];
  }
}

@shader bitonic_shared
@local 128
@groups 2
@in int a 512 edges
@out int r 512 exact
shared int box[256];
void main() {
  uint l = gl_LocalInvocationID.x, base = gl_WorkGroupID.x * 256u;
  box[l] = a[base + l];
  box[l + 128u] = a[base + l + 128u];
  meet();
  for (uint k = 2u; k <= 256u; k <<= 1) {
    for (uint j = k >> 1; j > 0u; j >>= 1) {
      uint x = (l / j) * 2u * j + l % j, y = x + j;
      bool up = (x & k) == 0u;
      int p = box[x], q = box[y];
      if (p > q == up) {
        box[x] = q;
        box[y] = p;
      }
      meet();
    }
  }
  r[base + l] = box[l];
  r[base + l + 128u] = box[l + 128u];
}

@shader bitonic_passes
@local 32
@groups 4
@passes 36
@inout float r 256 finite value
void main() {
  uint stage = 0u, left = parameters.pass;
  while (left > stage) {
    left -= stage + 1u;
    ++stage;
  }
  uint k = 2u << stage, j = 1u << (stage - left), i = ID;
  uint x = (i / j) * 2u * j + i % j, y = x + j;
  float p = r[x], q = r[y];
  if (p > q == ((x & k) == 0u)) {
    r[x] = q;
    r[y] = p;
  }
}

@shader nbody
@why 64 forces with an inverse square root each (2 ulp) and sums in any fusing, four steps.
@local 64
@groups 1
@passes 4
@inout vec4 place 64 range:-1:1 ulp=64,abs=1e-4
@inout vec4 speed 64 zero ulp=64,abs=1e-4
@parameter float step 0.001
shared vec4 all_places[64];
void main() {
  uint l = gl_LocalInvocationID.x;
  vec4 own = place[l];
  all_places[l] = own;
  meet();
  vec3 force = vec3(0.0);
  for (uint k = 0u; k < 64u; ++k) {
    vec3 d = all_places[k].xyz - own.xyz;
    float s = inversesqrt(dot(d, d) + 0.05);
    force += d * (s * s * s * (all_places[k].w * 0.5 + 1.0));
  }
  vec3 v = speed[l].xyz + force * parameters.step;
  speed[l] = vec4(v, float(parameters.pass));
  place[l] = vec4(own.xyz + v * parameters.step, own.w);
}

@shader softmax
@why exp within (3 + 2|x|) ulp for |x| up to 16, one quotient (2.5 ulp), 96 roundings in the sum.
@local 32
@groups 8
@in float a 768 range:-8:8
@out float r 768 ulp=140
shared float row[32];
void main() {
  uint l = gl_LocalInvocationID.x, base = gl_WorkGroupID.x * 96u;
  float top = -1e30;
  for (uint k = l; k < 96u; k += 32u) top = max(top, a[base + k]);
  row[l] = top;
  meet();
  for (uint s = 16u; s > 0u; s >>= 1) {
    if (l < s) row[l] = max(row[l], row[l + s]);
    meet();
  }
  top = row[0];
  meet();
  float sum = 0.0;
  for (uint k = l; k < 96u; k += 32u) sum += exp(a[base + k] - top);
  row[l] = sum;
  meet();
  for (uint s = 16u; s > 0u; s >>= 1) {
    if (l < s) row[l] += row[l + s];
    meet();
  }
  for (uint k = l; k < 96u; k += 32u) r[base + k] = exp(a[base + k] - top) / row[0];
}

@shader string_search
@local 64
@groups 8
@in uint text 160 any
@in uint word 1 any
@inout uint r 2 zero exact
@out uint hits 512 exact
uint letter(uint at) { return text[at >> 2] >> ((at & 3u) * 8u) & 3u; }
void main() {
  uint i = ID, matched = 0u;
  for (; matched < 4u; ++matched) {
    if (letter(i + matched) != (word[0] >> (matched * 8u) & 3u)) break;
  }
  hits[i] = matched;
  if (matched >= 3u) {
    atomicAdd(r[0], 1u);
    atomicMax(r[1], i);
  }
}

@shader life
@local 16 16
@groups 2 2
@passes 8
@inout uint even 1024 range:0:1 exact
@inout uint odd 1024 zero exact
uint cell(uint x, uint y) {
  uint at = (y & 31u) * 32u + (x & 31u);
  return (parameters.pass & 1u) == 0u ? even[at] : odd[at];
}
void main() {
  uvec2 g = gl_GlobalInvocationID.xy;
  uint n = 0u;
  for (uint k = 0u; k < 9u; ++k) {
    if (k != 4u) n += cell(g.x + 31u + k % 3u, g.y + 31u + k / 3u);
  }
  uint next = n == 3u || (n == 2u && cell(g.x, g.y) == 1u) ? 1u : 0u;
  if ((parameters.pass & 1u) == 0u) odd[g.y * 32u + g.x] = next;
  else even[g.y * 32u + g.x] = next;
}

@shader edit_distance
@local 32
@groups 2
@in uint a 1024 range:0:3
@in uint b 16 range:0:3
@out uint r 64 exact
void main() {
  uint i = ID;
  uint row[17];
  for (uint k = 0u; k <= 16u; ++k) row[k] = k;
  for (uint y = 0u; y < 16u; ++y) {
    uint corner = row[0];
    row[0] = y + 1u;
    for (uint x = 0u; x < 16u; ++x) {
      uint above = row[x + 1u];
      row[x + 1u] = min(min(above, row[x]) + 1u, corner + (a[i * 16u + y] == b[x] ? 0u : 1u));
      corner = above;
    }
  }
  r[i] = row[16];
}

@shader fourier
@why six stages of a butterfly, twiddles by sin and cos (2^-11 absolute), inputs below 1: the sums stay below 64.
@local 32
@groups 2
@in vec2 a 128 range:-1:1
@out vec2 r 128 abs=0.2
shared vec2 box[64];
void main() {
  uint l = gl_LocalInvocationID.x, base = gl_WorkGroupID.x * 64u;
  box[bitfieldReverse(l) >> 26] = a[base + l];
  box[bitfieldReverse(l + 32u) >> 26] = a[base + l + 32u];
  meet();
  for (uint s = 1u; s < 64u; s <<= 1) {
    uint k = l & (s - 1u), x = (l - k) * 2u + k;
    float angle = -3.14159265 * float(k) / float(s);
    vec2 w = vec2(cos(angle), sin(angle));
    vec2 p = box[x], q = box[x + s];
    vec2 t = vec2(q.x * w.x - q.y * w.y, q.x * w.y + q.y * w.x);
    box[x] = p + t;
    box[x + s] = p - t;
    meet();
  }
  r[base + l] = box[l];
  r[base + l + 32u] = box[l + 32u];
}

@shader sha256
@local 16
@groups 4
@in uint a 1024 any
@uniform uvec4 k 16 any
@out uint r 512 exact
uint turn(uint v, uint n) { return v >> n | v << (32u - n); }
void main() {
  uint w[16];
  for (uint t = 0u; t < 16u; ++t) w[t] = a[ID * 16u + t];
  uint h[8] = uint[8](0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu,
                      0x5be0cd19u);
  for (uint t = 0u; t < 64u; ++t) {
    if (t >= 16u) {
      uint x = w[(t + 1u) & 15u], y = w[(t + 14u) & 15u];
      w[t & 15u] += w[(t + 9u) & 15u] + (turn(x, 7u) ^ turn(x, 18u) ^ x >> 3) + (turn(y, 17u) ^ turn(y, 19u) ^ y >> 10);
    }
    uint one = h[7] + (turn(h[4], 6u) ^ turn(h[4], 11u) ^ turn(h[4], 25u)) + ((h[4] & h[5]) ^ (~h[4] & h[6])) +
               k[t >> 2][t & 3u] + w[t & 15u];
    uint two = (turn(h[0], 2u) ^ turn(h[0], 13u) ^ turn(h[0], 22u)) + ((h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]));
    // Counted upwards: llvmpipe of Mesa 22.3, under OpenGL only, drops the loop where n counts down from 7 to 0.
    for (uint n = 0u; n < 7u; ++n) h[7u - n] = h[6u - n];
    h[4] += one;
    h[0] = one + two;
  }
  for (uint n = 0u; n < 8u; ++n) r[ID * 8u + n] = h[n];
}

@shader quantized_dot
@local 64
@groups 4
@in uint a 1024 any
@in uint b 1024 any
@out int r 256 exact
@out uint u 256 exact
void main() {
  int sum = 0;
  uint total = 0u;
  for (uint k = 0u; k < 4u; ++k) {
    uint x = a[ID * 4u + k], y = b[(ID * 4u + k * 5u) & 1023u];
    for (int e = 0; e < 4; ++e) {
      sum += bitfieldExtract(int(x), e * 8, 8) * bitfieldExtract(int(y), e * 8, 8);
      total += (x >> (e * 8) & 255u) * (y >> (e * 8) & 255u);
    }
  }
  r[ID] = sum;
  u[ID] = total;
}
