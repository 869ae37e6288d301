Double precision: +, -, * and fma are single correctly rounded operations on the hardware.

@shader double_arithmetic
@needs float64
@local 64
@groups 16
@in double a 1024 edges
@in double b 1024 edges_slow
@out double r 4096 exact,flush
void main() {
  uint i = ID;
  precise double sum = a[i] + b[i];
  precise double difference = a[i] - b[i];
  precise double product = a[i] * b[i];
  precise double both = a[i] * b[i] + 1.0lf;
  r[i * 4u] = sum;
  r[i * 4u + 1u] = difference;
  r[i * 4u + 2u] = product;
  r[i * 4u + 3u] = both;
}

@shader double_fma
@why llvmpipe computes fma() with two roundings.
@needs float64
@local 64
@groups 4
@in double a 256 any
@in double b 256 any
@in double c 256 any
@out double r 512 exact,flush software=none
void main() {
  uint i = ID;
  precise double plain = fma(a[i], b[i], c[i]);
  precise double square = fma(-a[i], a[i], abs(b[i]));
  r[i * 2u] = plain;
  r[i * 2u + 1u] = square;
}

@shader double_division
@why the specifications ask of a double quotient, root or reciprocal root no more than of a single one; the drivers iterate.
@needs float64
@local 64
@groups 4
@in double a 256 range:-1000:1000
@in double b 256 range:0.001:1000
@out double q 512 ulp=4
@out double s 512 ulp=4
void main() {
  uint i = ID;
  q[i * 2u] = a[i] / b[i];
  q[i * 2u + 1u] = 1.0lf / b[i];
  s[i * 2u] = sqrt(b[i]);
  s[i * 2u + 1u] = inversesqrt(b[i]);
}

@shader double_rounding
@why as of single precision: zeros of either sign, and fract at the edge.
@needs float64
@local 64
@groups 4
@in double a 256 finite
@in double b 256 range:-300:300
@out double r 1536 value,flush
@out double f 256 abs=2e-16
void main() {
  uint i = ID;
  r[i * 6u] = floor(b[i]);
  r[i * 6u + 1u] = ceil(b[i]);
  r[i * 6u + 2u] = trunc(b[i] * 16.0lf);
  r[i * 6u + 3u] = min(a[i], b[i]);
  r[i * 6u + 4u] = max(a[i], b[i]);
  r[i * 6u + 5u] = abs(a[i]) * sign(b[i]);
  f[i] = fract(b[i]);
}

@shader double_conversions
@needs float64
@local 64
@groups 4
@in int a 256 edges
@in uint b 256 edges
@in float f 256 finite
@in double d 256 range:-2000000000:2000000000
@out double r 768 exact
@out float g 512 exact,flush
@out int s 256 exact
@out uint u 768 exact
void main() {
  uint i = ID;
  r[i * 3u] = double(a[i]);
  r[i * 3u + 1u] = double(b[i]) * 0.5lf;
  r[i * 3u + 2u] = double(f[i]);
  g[i * 2u] = float(d[i]);
  g[i * 2u + 1u] = float(d[i] * 0.000001lf);
  s[i] = int(d[i]);
  u[i * 3u] = uint(abs(d[i]) * 2.0lf);
  uvec2 parts = unpackDouble2x32(d[i]);
  u[i * 3u + 1u] = parts.x;
  u[i * 3u + 2u] = parts.y;
}

@shader double_compare
@needs float64
@local 64
@groups 16
@in double a 1024 edges
@in double b 1024 edges_slow
@out uint r 1024 exact
void main() {
  uint i = ID;
  double x = a[i], y = b[i];
  uint bits = 0u;
  if (x < y) bits |= 1u;
  if (x <= y) bits |= 2u;
  if (x == y) bits |= 4u;
  if (x >= y) bits |= 8u;
  if (x != y) bits |= 16u;
  if (isinf(x)) bits |= 32u;
  if ((x > y) != (x * 0.5lf > 1.0lf)) bits |= 64u;
  r[i] = bits;
}

@shader double_horner
@why sums of products may be fused: a few roundings of numbers below 64.
@needs float64
@local 32
@groups 8
@in double x 256 range:-1.5:1.5
@in double c 16 range:-2:2
@out double r 256 abs=1e-12
void main() {
  uint i = ID;
  double sum = c[15];
  for (int k = 14; k >= 0; --k) sum = sum * x[i] + c[k];
  r[i] = sum;
}
