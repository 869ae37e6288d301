Control flow that parts the invocations of a wave, and what the dispatch itself brings.

@shader collatz
@local 64
@groups 8
@out uint r 1024 exact
void main() {
  uint i = ID;
  uint v = i + 1u, steps = 0u, top = v;
  while (v != 1u) {
    v = (v & 1u) == 0u ? v >> 1 : v * 3u + 1u;
    top = max(top, v);
    ++steps;
  }
  r[i * 2u] = steps;
  r[i * 2u + 1u] = top;
}

@shader nested_loops
@local 64
@groups 4
@in uint a 256 range:0:12
@in uint b 256 range:1:9
@out uint r 256 exact
void main() {
  uint i = ID;
  uint sum = 1u;
  for (uint x = 0u; x < a[i]; ++x) {
    for (uint y = x; y < a[i] + 3u; y += b[i]) {
      if ((x + y) % 5u == 4u) continue;
      for (uint z = 0u; z < (x ^ y) % 4u; ++z) {
        sum = sum * 31u + x * 7u + y * 3u + z;
        if (sum % 11u == 3u) break;
      }
      if (sum % 97u == 13u) break;
    }
  }
  r[i] = sum;
}

@shader switches
@local 64
@groups 8
@in uint a 512 range:0:11
@in int b 512 any
@out int r 512 exact
void main() {
  uint i = ID;
  int v = b[i];
  for (uint k = 0u; k < 3u; ++k) {
    switch (a[(i + k * 37u) & 511u]) {
      case 0u: v += 5; break;
      case 1u: v ^= 0x1234;  // falls through
      case 2u: v -= 77; break;
      case 3u: v = v << 3 | int(uint(v) >> 29); break;
      case 7u:
        if (v < 0) break;
        v = -v;
        break;
      case 9u: v *= 3; break;
      case 10u: v = int(bitfieldReverse(uint(v)));  // falls through
      default: v += int(k) * 1001; break;
    }
  }
  r[i] = v;
}

@shader early_returns
@local 64
@groups 8
@in uint a 512 any
@inout uint r 512 index exact
uint classify(uint v) {
  if (v % 3u == 0u) return 1u;
  for (uint k = 0u; k < 8u; ++k) {
    if ((v >> k) % 5u == 2u) return 10u + k;
  }
  if (v > 0x80000000u) return 2u;
  return 3u;
}
void main() {
  uint i = ID;
  if (i % 7u == 3u) return;
  uint v = classify(a[i]);
  if (v == 1u) {
    r[i] += 1000u;
    return;
  }
  r[i] = v * 65536u + classify(a[i] / 3u);
}

@shader data_loops
@local 64
@groups 4
@in uint a 256 any
@out uint r 512 exact
void main() {
  uint i = ID;
  uint x = a[i] % 10000u + 1u, y = a[i] / 10000u % 10000u + 1u;
  uint p = x, q = y, steps = 0u;
  do {
    if (p > q) {
      p -= q * (p / q > 3u ? 3u : 1u);
      if (p == 0u) break;
    } else {
      q -= p;
    }
    ++steps;
  } while (p != 0u && q != 0u);
  uint s = 0u, n = a[i];
  while (true) {
    if (n == 0u) break;
    if ((n & 3u) == 2u) {
      n >>= 2;
      continue;
    }
    s += n & 7u;
    n = n >> 1 ^ (s & 1u);
    if (s > 60u) break;
  }
  r[i * 2u] = (p + q) * 100000u + steps;
  r[i * 2u + 1u] = s;
}

@shader stack_machine
@local 32
@groups 4
@in uint a 128 range:0:3
@in uint b 128 range:0:4
@out uint r 128 exact
void main() {
  // The function of Ackermann and Peter, its recursion kept by hand.
  uint stack[64];
  uint m = a[ID] > 2u ? 2u : a[ID], n = b[ID], depth = 0u, steps = 0u;
  stack[depth++] = m;
  while (depth > 0u && steps < 4000u) {
    ++steps;
    m = stack[--depth];
    if (m == 0u) {
      n += 1u;
    } else if (n == 0u) {
      n = 1u;
      stack[depth++] = m - 1u;
    } else {
      stack[depth++] = m - 1u;
      stack[depth++] = m;
      n -= 1u;
    }
  }
  r[ID] = n * 10000u + steps;
}

@shader uniform_branches
@local 64
@groups 12
@in int a 768 any
@parameter int limit 5
@parameter uint flags 10
@parameter float factor 0.375
@parameter vec4 offsets 1.5 -2 0.25 8
@out int r 768 exact
@out float f 768 value
void main() {
  uint w = gl_WorkGroupID.x;
  int v = a[ID];
  for (int k = 0; k < parameters.limit; ++k) {
    if ((w & 1u) != 0u) v = v * 5 + k;
    if ((parameters.flags >> k & 1u) != 0u) v ^= int(w) << k;
  }
  r[ID] = v;
  f[ID] = float(v & 1023) * parameters.factor + parameters.offsets[w & 3u];
}

@shader grid_numbers
@local 4 2 3
@groups 3 4 2
@out uint r 2304 exact
void main() {
  uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize, g = gl_GlobalInvocationID;
  uint at = (g.z * size.y + g.y) * size.x + g.x;
  r[at * 4u] = gl_LocalInvocationIndex;
  r[at * 4u + 1u] = gl_WorkGroupID.x | gl_WorkGroupID.y << 8 | gl_WorkGroupID.z << 16;
  r[at * 4u + 2u] = gl_LocalInvocationID.x | gl_LocalInvocationID.y << 8 | gl_LocalInvocationID.z << 16;
  r[at * 4u + 3u] = gl_NumWorkGroups.x | gl_NumWorkGroups.y << 8 | gl_NumWorkGroups.z << 16;
}

@shader indirect_dispatch
@local 16 2
@groups 5 3 2
@indirect host
@out uint r 960 exact
void main() {
  uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize, g = gl_GlobalInvocationID;
  uint at = (g.z * size.y + g.y) * size.x + g.x;
  r[at] = at * 3u + gl_NumWorkGroups.x * 1000u + gl_NumWorkGroups.y * 10000u + gl_NumWorkGroups.z * 100000u;
}

@shader indirect_from_device
@local 64
@groups 1
@passes 2
@indirect counts
@in uint a 64 range:0:9
@inout uint counts 3 zero exact
@out uint r 1024 exact
void main() {
  if (parameters.pass == 0u) {
    // Between 1 and 16 groups, by the numbers of the first: the second pass is as large as the first one says.
    atomicAdd(counts[1], a[ID] & 1u);
    atomicAdd(counts[0], a[ID] == 3u ? 1u : 0u);
    meet();
    memoryBarrierBuffer();
    meet();
    if (ID == 0u) {
      counts[0] = min(atomicAdd(counts[0], 0u) + 2u, 16u);
      counts[1] = 1u;
      counts[2] = 1u;
    }
    return;
  }
  r[ID] = ID ^ gl_NumWorkGroups.x * 65536u;
}

@shader passes_with_barriers
@local 64
@groups 4
@passes 6
@inout uint r 256 any exact
@inout uint s 256 zero exact
void main() {
  uint i = ID;
  uint step = 1u << parameters.pass;
  if ((parameters.pass & 1u) == 0u) {
    s[i] = r[i] * 3u + r[(i + step) & 255u];
  } else {
    r[i] = s[i] ^ s[(i + 256u - step) & 255u] >> 1;
  }
}
