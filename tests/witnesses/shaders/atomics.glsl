Atomics of buffers and of shared memory. Which invocation comes first is open, so what is compared is what every order gives.

@shader buffer_atomics
@local 64
@groups 16
@in uint a 1024 edges
@inout uint r 8 any exact
@inout int s 4 any exact
void main() {
  uint v = a[ID];
  atomicAdd(r[0], v);
  atomicMin(r[1], v);
  atomicMax(r[2], v);
  atomicAnd(r[3], v | 0xffff0fffu);
  atomicOr(r[4], v & 0x00f0ff00u);
  atomicXor(r[5], v);
  atomicAdd(r[6], 1u);
  atomicAdd(r[7], ID);
  atomicMin(s[0], int(v));
  atomicMax(s[1], int(v));
  atomicAdd(s[2], int(v));
  atomicXor(s[3], int(ID));
}

@shader atomic_returns
@local 64
@groups 16
@passes 2
@inout uint counters 4 zero exact
@out uint tickets 1024 exact
@out uint sums 3 exact
@inout uint taken 64 zero exact
void main() {
  if (parameters.pass == 1u) {
    // The last value exchanged stays; with it, the sum of all that was seen is the sum of all that was given.
    if (ID == 0u) {
      sums[0] += counters[1];
      counters[1] = 0u;
    }
    return;
  }
  uint ticket = atomicAdd(counters[0], 1u);
  tickets[ticket] = ticket * 3u + 1u;
  atomicAdd(sums[0], atomicExchange(counters[1], ID + 1u));
  if (atomicCompSwap(taken[ID & 63u], 0u, 5u) == 0u) atomicAdd(counters[2], 1u);
  uint before = atomicOr(counters[3], 1u << (ID & 31u));
  if ((before >> (ID & 31u) & 1u) == 0u) atomicAdd(sums[1], 1u);
  if (atomicMax(sums[2], ID) < 1024u) atomicAdd(taken[0], 0u);
}

@shader atomic_float_sum
@why every addend is a whole number: each order of summing gives the same.
@local 64
@groups 4
@in float a 256 whole
@inout uint r 4 zero exact
void main() {
  uint slot = ID & 3u;
  uint seen = r[slot];
  for (int tries = 0; tries < 100000; ++tries) {
    uint next = floatBitsToUint(uintBitsToFloat(seen) + a[ID]);
    uint found = atomicCompSwap(r[slot], seen, next);
    if (found == seen) break;
    seen = found;
  }
}

@shader shared_atomics
@local 128
@groups 4
@in uint a 512 edges
@out uint r 32 exact
@out int s 8 exact
shared uint box[8];
shared int low, high;
void main() {
  uint l = gl_LocalInvocationID.x;
  if (l < 8u) box[l] = l == 1u || l == 3u ? 0xffffffffu : 0u;
  if (l == 0u) {
    low = 0x7fffffff;
    high = -0x7fffffff;
  }
  meet();
  uint v = a[ID];
  atomicAdd(box[0], v);
  atomicMin(box[1], v);
  atomicMax(box[2], v);
  atomicAnd(box[3], v | 0xfff0ffffu);
  atomicOr(box[4], v & 0x0f0f0f0fu);
  atomicXor(box[5], v);
  uint old = atomicAdd(box[6], 2u);
  atomicXor(box[7], old);
  atomicMin(low, int(v));
  atomicMax(high, int(v));
  meet();
  if (l < 8u) r[gl_WorkGroupID.x * 8u + l] = box[l];
  if (l == 0u) s[gl_WorkGroupID.x * 2u] = low;
  if (l == 1u) s[gl_WorkGroupID.x * 2u + 1u] = high;
}

@shader shared_lock_free
@local 64
@groups 4
@in uint a 256 any
@out uint r 256 exact
shared uint slots[128];
shared uint order;
void main() {
  uint l = gl_LocalInvocationID.x;
  slots[l] = 0u;
  slots[l + 64u] = 0u;
  if (l == 0u) order = 0u;
  meet();
  // An open-addressed set: where each key lands depends on the order, that it is there exactly once does not.
  uint key = (a[ID] & 0xffffff00u) | (l + 1u);
  uint at = key >> 20 & 127u;
  for (int k = 0; k < 128; ++k) {
    uint seen = atomicCompSwap(slots[at], 0u, key);
    if (seen == 0u || seen == key) break;
    at = (at + 1u) & 127u;
  }
  uint last = atomicExchange(order, key);
  meet();
  uint found = 0u;
  for (int k = 0; k < 128; ++k) found += slots[k] == key ? 1u : 0u;
  r[ID] = found * 1000u + (last == key ? 1u : 0u);
}

@shader histogram
@local 64
@groups 16
@in uint a 4096 any
@inout uint r 256 zero exact
shared uint bins[256];
void main() {
  uint l = gl_LocalInvocationID.x;
  for (uint k = l; k < 256u; k += 64u) bins[k] = 0u;
  meet();
  for (uint k = 0u; k < 4u; ++k) {
    uint v = a[ID * 4u + k];
    atomicAdd(bins[(v ^ v >> 9) & 255u & (v >> 3)], 1u);
  }
  meet();
  for (uint k = l; k < 256u; k += 64u) {
    if (bins[k] != 0u) atomicAdd(r[k], bins[k]);
  }
}
