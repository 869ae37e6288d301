Shared memory, barriers, private arrays and registers that do not suffice.

@shader shared_reduce
@local 256
@groups 8
@in int a 2048 edges
@out int r 24 exact
shared int sums[256];
shared int lows[256];
shared int masks[256];
void main() {
  uint l = gl_LocalInvocationID.x;
  sums[l] = a[ID];
  lows[l] = a[ID];
  masks[l] = a[ID];
  meet();
  for (uint s = 128u; s > 0u; s >>= 1) {
    if (l < s) {
      sums[l] += sums[l + s];
      lows[l] = min(lows[l], lows[l + s]);
      masks[l] ^= masks[l + s];
    }
    meet();
  }
  if (l == 0u) {
    r[gl_WorkGroupID.x * 3u] = sums[0];
    r[gl_WorkGroupID.x * 3u + 1u] = lows[0];
    r[gl_WorkGroupID.x * 3u + 2u] = masks[0];
  }
}

@shader shared_scan
@local 128
@groups 8
@in uint a 1024 any
@out uint r 1024 exact
shared uint row[2][128];
void main() {
  uint l = gl_LocalInvocationID.x;
  uint from = 0u;
  row[0][l] = a[ID];
  meet();
  for (uint s = 1u; s < 128u; s <<= 1) {
    uint v = row[from][l];
    if (l >= s) v += row[from][l - s];
    row[1u - from][l] = v;
    from = 1u - from;
    meet();
  }
  r[ID] = row[from][l];
}

@shader shared_transpose
@local 16 16
@groups 4 4
@in float a 4096 any
@out float r 4096 exact
shared float tile[16][17];
void main() {
  uvec2 l = gl_LocalInvocationID.xy, w = gl_WorkGroupID.xy * 16u;
  tile[l.y][l.x] = a[(w.y + l.y) * 64u + w.x + l.x];
  meet();
  r[(w.x + l.y) * 64u + w.y + l.x] = tile[l.x][l.y];
}

@shader shared_rounds
@local 96
@groups 4
@in uint a 384 any
@out uint r 384 exact
shared uint ring[96];
void main() {
  uint l = gl_LocalInvocationID.x;
  ring[l] = a[ID];
  for (uint k = 0u; k < 24u; ++k) {
    meet();
    uint left = ring[(l + 95u) % 96u], right = ring[(l + 1u) % 96u], own = ring[l];
    meet();
    ring[l] = left ^ (own << 3) ^ (right >> 5) ^ (own + k * 0x9e3779b9u);
  }
  meet();
  r[ID] = ring[95u - l];
}

@shader shared_vectors
@local 64
@groups 4
@in vec4 a 256 any
@in uvec2 b 256 any
@out vec4 r 256 exact
@out uvec2 u 256 exact
struct Entry {
  vec4 v;
  uvec2 u;
  float single;
};
shared Entry entries[64];
void main() {
  uint l = gl_LocalInvocationID.x;
  entries[l].v = a[ID];
  entries[l].u = b[ID];
  entries[l].single = a[ID].z;
  meet();
  uint other = (l * 29u + 7u) & 63u;
  r[ID] = vec4(entries[other].v.xyz, entries[63u - l].single);
  u[ID] = entries[other].u.yx + entries[l].u;
}

@shader private_array
@local 64
@groups 4
@in uint a 256 any
@out uint r 1024 exact
@parameter uint rounds 64
void main() {
  uint i = ID;
  uint box[32];
  uint v = a[i];
  for (uint k = 0u; k < 32u; ++k) box[k] = v * (k * 2u + 1u) + (v >> (k & 15u));
  for (uint k = 0u; k < parameters.rounds; ++k) {  // no constant: unrolled, it costs LLVM a minute
    uint x = (v >> (k & 27u)) & 31u, y = (x * 7u + k) & 31u;
    uint keep = box[x];
    box[x] = box[y] + k;
    box[y] = keep ^ (v << (k & 7u));
  }
  uint sum = 0u, mix = 0u;
  for (uint k = 0u; k < 32u; ++k) {
    sum += box[k];
    mix = (mix << 5 | mix >> 27) ^ box[k];
  }
  r[i * 4u] = sum;
  r[i * 4u + 1u] = mix;
  r[i * 4u + 2u] = box[v & 31u];
  r[i * 4u + 3u] = box[(v >> 5) & 31u];
}

@shader register_pressure
@local 64
@groups 2
@in float a 8192 whole
@out float r 8192 value
void main() {
  uint i = ID;
  vec4 rows[16];
  for (int k = 0; k < 16; ++k) rows[k] = vec4(a[i * 64u + uint(k) * 4u], a[i * 64u + uint(k) * 4u + 1u],
                                               a[i * 64u + uint(k) * 4u + 2u], a[i * 64u + uint(k) * 4u + 3u]);
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < 16; ++k) {
      vec4 other = rows[(k * 5 + 3) & 15];
      rows[k] = rows[k] * 0.5 + other.wxyz + rows[15 - k];
    }
  }
  for (int k = 0; k < 16; ++k) {
    for (int c = 0; c < 4; ++c) r[i * 64u + uint(k * 4 + c)] = rows[k][c];
  }
}

@shader copy_unaligned
@local 50
@groups 20
@in uint a 1024 any
@inout uint r 1024 index exact
void main() {
  uint i = ID;
  if (i % 3u == 1u) r[i] = a[i + 7u] ^ r[i];
  if (i % 3u == 2u) r[i] = a[1023u - i];
}

@shader transpose_plain
@local 8 8
@groups 6 5
@in float a 1920 any
@out float r 1920 exact
@parameter uint width 48
@parameter uint height 40
void main() {
  uvec2 g = gl_GlobalInvocationID.xy;
  r[g.x * parameters.height + g.y] = a[g.y * parameters.width + g.x];
}
