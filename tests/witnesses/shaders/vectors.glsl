Vectors and matrices. Where all numbers are small whole ones, every order of summing and every fusing gives the same bits.

@shader vector_swizzles
@local 64
@groups 4
@in vec4 a 256 any
@in uvec2 b 256 any
@out vec4 r 512 exact
@out uvec4 u 256 exact
void main() {
  uint i = ID;
  vec4 v = a[i].wzyx;
  v.xz = a[(i + 1u) & 255u].yy;
  v[b[i].x & 3u] = 42.0;
  r[i * 2u] = v;
  r[i * 2u + 1u] = vec4(a[i][b[i].y & 3u], v.zw, -v.x);
  u[i] = uvec4(b[i].yx, b[i] ^ b[i].yy) + uvec4(1u, 2u, 3u, 4u);
}

@shader vector_whole
@local 64
@groups 8
@in vec4 a 512 whole
@in vec4 b 512 whole
@out float r 2048 value
@out vec4 c 512 value
void main() {
  uint i = ID;
  r[i * 4u] = dot(a[i], b[i]);
  r[i * 4u + 1u] = dot(a[i].xyz, b[i].zyx);
  r[i * 4u + 2u] = dot(a[i].xy, b[i].yw);
  r[i * 4u + 3u] = a[i].x * b[i].y - a[i].z * b[i].w;
  c[i] = vec4(cross(a[i].xyz, b[i].xyz), dot(a[i] - b[i], a[i] + b[i]));
}

@shader vector_geometry
@why normalize divides by a square root; reflect, refract and faceforward are formulas of several roundings.
@local 64
@groups 4
@in vec4 a 256 range:-2:2
@in vec4 b 256 range:0.1:2
@out vec4 r 768 ulp=16,abs=4e-6
void main() {
  uint i = ID;
  r[i * 3u] = normalize(b[i]);
  r[i * 3u + 1u] = vec4(reflect(a[i].xyz, normalize(b[i].xyz)), length(a[i]));
  r[i * 3u + 2u] = vec4(refract(normalize(-b[i].xyz), normalize(b[i].xyz), 0.75), distance(a[i], b[i]));
}

@shader matrix_whole
@local 32
@groups 4
@in vec4 a 512 whole
@in vec4 b 512 whole
@out vec4 r 512 value
@out vec4 t 256 value
@out float d 128 value
void main() {
  uint i = ID;
  mat4 m = mat4(a[i * 4u], a[i * 4u + 1u], a[i * 4u + 2u], a[i * 4u + 3u]);
  mat4 n = mat4(b[i * 4u], b[i * 4u + 1u], b[i * 4u + 2u], b[i * 4u + 3u]);
  mat4 p = m * n;
  for (int k = 0; k < 4; ++k) r[i * 4u + uint(k)] = p[k];
  mat4 sum = transpose(m) + matrixCompMult(m, n) - n * 2.0;
  t[i * 2u] = sum * vec4(1.0, -2.0, 3.0, 1.0);
  mat3x2 narrow = mat3x2(a[i].xy, b[i].zw, a[i].zx);
  mat2x3 outer = outerProduct(b[i].xyz, a[i].zw);
  t[i * 2u + 1u] = vec4(narrow * b[i].xyz, outer[1].xz);
  d[i] = determinant(mat3(m)) + determinant(mat2(n));
}

@shader matrix_inverse
@why the inverse of a matrix that is near 4 times the unit matrix: well conditioned, a few dozen roundings.
@local 32
@groups 4
@in vec4 a 512 range:-0.5:0.5
@out vec4 r 512 abs=2e-6
void main() {
  uint i = ID;
  mat4 m = mat4(a[i * 4u], a[i * 4u + 1u], a[i * 4u + 2u], a[i * 4u + 3u]) + mat4(4.0);
  mat4 n = inverse(m);
  for (int k = 0; k < 4; ++k) r[i * 4u + uint(k)] = n[k];
}

@shader vector_loads
@local 64
@groups 4
@in uint a 4096 any
@in uvec4 b 256 any
@in vec2 c 256 any
@uniform uvec4 table 16 any
@out uvec4 r 1024 exact
@out vec2 q 256 exact
void main() {
  uint i = ID;
  r[i * 4u] = uvec4(a[i * 4u], a[i * 4u + 1u], a[i * 4u + 2u], a[i * 4u + 3u]);
  r[i * 4u + 1u] = b[i] ^ table[i & 15u];
  r[i * 4u + 2u] = uvec4(a[i * 16u + 3u], a[i * 16u + 1u], a[(i * 7u) & 4095u], table[3].z);
  r[i * 4u + 3u] = table[gl_WorkGroupID.x] + table[5].wwxy;
  q[i] = c[255u - i].yx;
}
