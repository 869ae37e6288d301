Single precision. GLSL asks for correctly rounded +, - and *, and for exact floor, ceil, trunc, comparisons and bit casts;
`precise` forbids that a product and a sum are joined. Denormal results may be flushed, so the exact cases say `flush`.

@shader float_arithmetic
@local 64
@groups 16
@in float a 1024 edges
@in float b 1024 edges_slow
@out float r 5120 exact,flush
void main() {
  uint i = ID;
  precise float sum = a[i] + b[i];
  precise float difference = a[i] - b[i];
  precise float product = a[i] * b[i];
  precise float both = a[i] * b[i] + a[i];
  precise float scaled = (a[i] + 1.0) * 0.1;
  r[i * 5u] = sum;
  r[i * 5u + 1u] = difference;
  r[i * 5u + 2u] = product;
  r[i * 5u + 3u] = both;
  r[i * 5u + 4u] = scaled;
}

@shader float_fma
@why llvmpipe computes fma() with two roundings; `precise` asks for one, which the hardware has.
@local 64
@groups 16
@in float a 1024 any
@in float b 1024 any
@in float c 1024 any
@out float r 4096 exact,flush software=none
void main() {
  uint i = ID;
  precise float plain = fma(a[i], b[i], c[i]);
  precise float half_a = a[i] * 0.5;
  precise float negated = fma(a[i], -b[i], half_a);
  precise float square = fma(a[i], a[i], -b[i]);
  precise float sized = fma(a[i], 3.0, abs(c[i]));
  r[i * 4u] = plain;
  r[i * 4u + 1u] = negated;
  r[i * 4u + 2u] = square;
  r[i * 4u + 3u] = sized;
}

@shader float_contraction
@why a*b+c may be fused; both answers are within one rounding of the product, half an ulp of |a*b|, here below 4096.
@local 64
@groups 4
@in float a 256 range:-64:64
@in float b 256 range:-64:64
@in float c 256 range:-64:64
@out float r 256 ulp=1,abs=3e-4
void main() { r[ID] = a[ID] * b[ID] + c[ID]; }

@shader float_minmax
@why min and max of zeros of both signs may be either zero.
@local 64
@groups 16
@in float a 1024 edges
@in float b 1024 edges_slow
@out float r 6144 value,flush
void main() {
  uint i = ID;
  float x = a[i], y = b[i];
  r[i * 6u] = min(x, y);
  r[i * 6u + 1u] = max(x, y);
  r[i * 6u + 2u] = clamp(x, -1.0, 2.0);
  r[i * 6u + 3u] = max(min(x, y), max(min(x, 0.25), min(y, 0.25)));
  r[i * 6u + 4u] = clamp(y, 0.0, 1.0);
  r[i * 6u + 5u] = min(min(x, y), -abs(y));
}

@shader float_signs
@local 64
@groups 16
@in float a 1024 edges
@in float b 1024 edges_slow
@out float r 3072 exact,flush
@out float s 1024 value
void main() {
  uint i = ID;
  r[i * 3u] = abs(a[i]);
  r[i * 3u + 1u] = intBitsToFloat(floatBitsToInt(a[i]) ^ int(0x80000000u));
  r[i * 3u + 2u] = -abs(b[i]);
  s[i] = sign(a[i]) * 2.0 + sign(b[i]);
}

@shader float_rounding
@why fract(x) of a small negative x may be the number below 1 or 1 itself; round() may take either neighbour of a half.
@local 64
@groups 16
@in float a 1024 finite
@in float b 1024 range:-300:300
@out float r 5120 value
@out float f 1024 abs=6e-8
void main() {
  uint i = ID;
  r[i * 5u] = floor(a[i]);
  r[i * 5u + 1u] = ceil(a[i]);
  r[i * 5u + 2u] = trunc(a[i]);
  r[i * 5u + 3u] = roundEven(a[i]);
  float whole;
  float part = modf(b[i], whole);
  r[i * 5u + 4u] = whole * 1024.0 + (whole + part == b[i] ? 1.0 : 0.0);
  f[i] = fract(b[i]);
}

@shader float_division
@why GLSL allows 2.5 ulp for a/b and 2 for inversesqrt; sqrt is the reciprocal of that, 2.5 more.
@local 64
@groups 16
@in float a 1024 range:-1000:1000
@in float b 1024 range:0.001:1000
@out float q 2048 ulp=3
@out float s 1024 ulp=2
@out float t 1024 ulp=5
void main() {
  uint i = ID;
  q[i * 2u] = a[i] / b[i];
  q[i * 2u + 1u] = 1.0 / b[i];
  s[i] = inversesqrt(b[i]);
  t[i] = sqrt(b[i]);
}

@shader float_mod
@why the divisors are powers of two, whose quotients are exact; with others mod() may be off by a whole divisor.
@local 64
@groups 16
@in float a 1024 range:-5000:5000
@in float b 1024 powers
@out float r 2048 value
void main() {
  uint i = ID;
  precise float m = mod(a[i], b[i]);
  r[i * 2u] = m;
  r[i * 2u + 1u] = step(b[i], a[i]);
}

@shader float_exponentials
@why GLSL: exp and exp2 within (3 + 2|x|) ulp, log and log2 3 ulp, near 1 2^-21 absolute; pow is exp2(y log2 x).
@local 64
@groups 16
@in float a 1024 range:-20:20
@in float b 1024 range:0.001:1000
@in float c 1024 range:-3:3
@out float e 2048 ulp=43
@out float l 2048 ulp=3,abs=4.8e-7
@out float p 1024 ulp=130
void main() {
  uint i = ID;
  e[i * 2u] = exp2(a[i]);
  e[i * 2u + 1u] = exp(a[i]);
  l[i * 2u] = log2(b[i]);
  l[i * 2u + 1u] = log(b[i]);
  p[i] = pow(b[i], c[i]);
}

@shader float_trigonometry
@why Vulkan: sin and cos within 2^-11 absolute between -pi and pi; tan is their quotient, cos above 0.36 here.
@local 64
@groups 16
@in float a 1024 range:-3.1415:3.1415
@in float b 1024 range:-1.2:1.2
@out float r 2048 abs=4.9e-4
@out float t 1024 abs=1e-2
void main() {
  uint i = ID;
  r[i * 2u] = sin(a[i]);
  r[i * 2u + 1u] = cos(a[i]);
  t[i] = tan(b[i]);
}

@shader float_inverse_trigonometry
@why Vulkan: atan and atan2 within 4096 ulp, asin and acos as atan2 of a square root; polynomials in every driver.
@local 64
@groups 16
@in float a 1024 range:-0.999:0.999
@in float b 1024 range:-50:50
@in float c 1024 range:-50:50
@out float r 4096 ulp=4096,abs=5e-4
void main() {
  uint i = ID;
  r[i * 4u] = asin(a[i]);
  r[i * 4u + 1u] = acos(a[i]);
  r[i * 4u + 2u] = atan(b[i]);
  r[i * 4u + 3u] = atan(b[i], c[i]);
}

@shader float_hyperbolic
@why Vulkan defines these by exp: its error, and for sinh and tanh near zero that of a difference of two numbers near 1.
@local 64
@groups 8
@in float a 512 range:-5:5
@out float r 1536 ulp=64,abs=1e-6
void main() {
  uint i = ID;
  r[i * 3u] = sinh(a[i]);
  r[i * 3u + 1u] = cosh(a[i]);
  r[i * 3u + 2u] = tanh(a[i]);
}

@shader float_classes
@local 64
@groups 16
@in float a 1024 edges_nan
@in float b 1024 edges_nan_slow
@out uint r 1024 exact
void main() {
  uint i = ID;
  float x = a[i], y = b[i];
  uint bits = 0u;
  if (isnan(x)) bits |= 1u;
  if (isinf(x)) bits |= 2u;
  if (x < y) bits |= 4u;
  if (x <= y) bits |= 8u;
  if (x > y) bits |= 16u;
  if (x >= y) bits |= 32u;
  if (x == y) bits |= 64u;
  if (x != y) bits |= 128u;
  r[i] = bits | (floatBitsToUint(x) >> 16 & 0x7f00u);
}

@shader float_denormals
@why denormals may be kept or flushed, of operands and of results: each element must be one of the two.
@local 64
@groups 16
@in float a 1024 denormals
@in float b 1024 denormals_slow
@out float r 4096 value,flush software=none
void main() {
  uint i = ID;
  precise float sum = a[i] + b[i];
  precise float difference = a[i] - b[i];
  precise float product = a[i] * b[i];
  precise float scaled = a[i] * 1048576.0;
  r[i * 4u] = sum;
  r[i * 4u + 1u] = difference;
  r[i * 4u + 2u] = product;
  r[i * 4u + 3u] = scaled;
}

@shader float_denormals_kept
@needs vulkan denorm_preserve_float32
@local 64
@groups 16
@in float a 1024 denormals
@in float b 1024 denormals_slow
@out float r 4096 exact
@extension GL_EXT_spirv_intrinsics
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4464], 4459, 32);
void main() {
  uint i = ID;
  precise float sum = a[i] + b[i];
  precise float difference = a[i] - b[i];
  precise float product = a[i] * b[i];
  precise float scaled = a[i] * 1048576.0;
  r[i * 4u] = sum;
  r[i * 4u + 1u] = difference;
  r[i * 4u + 2u] = product;
  r[i * 4u + 3u] = scaled;
}

@shader float_exponents
@local 64
@groups 16
@in float a 1024 range:-1000:1000
@in int e 1024 range:-40:40
@out float r 2048 exact
@out int x 1024 exact
void main() {
  uint i = ID;
  r[i * 2u] = ldexp(a[i], e[i]);
  int exponent;
  r[i * 2u + 1u] = frexp(a[i], exponent);
  x[i] = exponent;
}

@shader float_blends
@why mix, smoothstep, length and distance are formulas of several roundings which a compiler may order and fuse.
@local 64
@groups 8
@in float a 512 range:-4:4
@in float b 512 range:-4:4
@in float t 512 range:0:1
@out float r 2560 ulp=8,abs=4e-6
void main() {
  uint i = ID;
  r[i * 5u] = mix(a[i], b[i], t[i]);
  r[i * 5u + 1u] = smoothstep(-3.0, 3.5, a[i]);
  r[i * 5u + 2u] = length(vec3(a[i], b[i], t[i]));
  r[i * 5u + 3u] = distance(vec2(a[i], b[i]), vec2(t[i], 1.0));
  r[i * 5u + 4u] = dot(vec4(a[i], b[i], t[i], 0.5), vec4(b[i], t[i], a[i], 2.0));
}

@shader float_conversions
@local 64
@groups 16
@in int a 1024 edges
@in uint b 1024 edges
@in float f 1024 range:-2000000000:2000000000
@in float g 1024 range:0:4200000000
@in float h 1024 range:-3:3
@out float r 2048 exact
@out int s 2048 exact
@out uint u 2048 exact
void main() {
  uint i = ID;
  r[i * 2u] = float(a[i]);
  r[i * 2u + 1u] = float(b[i]);
  s[i * 2u] = int(f[i]);
  s[i * 2u + 1u] = int(h[i]) + (bool(a[i]) ? 100 : 0);
  u[i * 2u] = uint(g[i]);
  u[i * 2u + 1u] = uint(b[i] > 5u) + floatBitsToUint(h[i]);
}

@shader half_packing
@why the rounding of packHalf2x16 is left open, to nearest or to zero: the two are neighbours.
@local 64
@groups 16
@in float a 1024 range:-70000:70000
@in float b 1024 range:-1:1
@in uint h 1024 any
@out uint p 1024 half=1
@out float u 2048 exact
@out uint e 1024 exact
void main() {
  uint i = ID;
  p[i] = packHalf2x16(vec2(a[i], b[i]));
  vec2 both = unpackHalf2x16(h[i]);
  u[i * 2u] = both.x;
  u[i * 2u + 1u] = both.y;
  e[i] = packHalf2x16(vec2(float(i) * 0.125 - 30.0, float(i & 255u) * 4.0));
}

@shader norm_packing
@why a scaled value that lies on a half may round to either side: one step of the packed field.
@local 64
@groups 16
@in float a 1024 range:-1.5:1.5
@in float b 1024 range:-1.5:1.5
@in uint h 1024 edges
@out uint p 6144 off=1
@out float u 8192 ulp=3,abs=1e-7
void main() {
  uint i = ID;
  vec2 v = vec2(a[i], b[i]);
  uint w = packUnorm2x16(v);
  p[i * 6u] = w & 0xffffu;
  p[i * 6u + 1u] = w >> 16;
  w = packSnorm2x16(v);
  p[i * 6u + 2u] = (w & 0xffffu) ^ 0x8000u;
  p[i * 6u + 3u] = (w >> 16) ^ 0x8000u;
  w = packUnorm4x8(vec4(v, v.yx));
  p[i * 6u + 4u] = w & 255u;
  w = packSnorm4x8(vec4(v.y, v, v.x));
  p[i * 6u + 5u] = (w >> 24) ^ 128u;
  vec4 x = unpackUnorm4x8(h[i]);
  vec4 y = vec4(unpackSnorm2x16(h[i]), unpackUnorm2x16(h[i]));
  for (int k = 0; k < 4; ++k) {
    u[i * 8u + uint(k)] = x[k];
    u[i * 8u + 4u + uint(k)] = y[k];
  }
}
