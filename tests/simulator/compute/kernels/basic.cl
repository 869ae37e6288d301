// Kernels of the compute tests: arithmetic, LDS, barriers, atomics, divergence, scratch. Compiled without libraries:
// clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=TARGET -nogpulib -O3 -o OUT basic.cl
#define KERNEL(n) __kernel __attribute__((reqd_work_group_size(n, 1, 1)))
#define LOCAL_ID __builtin_amdgcn_workitem_id_x()
#define GROUP_ID __builtin_amdgcn_workgroup_id_x()

static void barrier_of_group(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL(64) void saxpy(__global const float* x, __global float* y, float a, uint n) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL(256) void reduce(__global const int* in, __global int* out) {
  __local int part[256];
  uint l = LOCAL_ID;
  part[l] = in[GROUP_ID * 256 + l];
  barrier_of_group();
  for (uint step = 128; step > 0; step >>= 1) {
    if (l < step) part[l] += part[l + step];
    barrier_of_group();
  }
  if (l == 0) out[GROUP_ID] = part[0];
}

KERNEL(128) void histogram(__global const uint* in, __global uint* bins, __global ulong* wide) {
  uint i = GROUP_ID * 128 + LOCAL_ID;
  uint value = in[i];
  __opencl_atomic_fetch_add((__global volatile atomic_uint*)&bins[value & 31], 1u, __ATOMIC_RELAXED, memory_scope_device);
  __opencl_atomic_fetch_max((__global volatile atomic_uint*)&bins[32], value, __ATOMIC_RELAXED, memory_scope_device);
  __opencl_atomic_fetch_add((__global volatile atomic_ulong*)wide, (ulong)value << 20, __ATOMIC_RELAXED, memory_scope_device);
}

// Steps of the Collatz sequence: every lane leaves its loop at another time.
KERNEL(64) void collatz(__global const uint* in, __global uint* out) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  uint value = in[i], steps = 0;
  while (value != 1) {
    if (value & 1) value = 3 * value + 1;
    else value >>= 1;
    ++steps;
  }
  out[i] = steps;
}

// An array that no register can hold, for its index is not known.
KERNEL(64) void spill(__global const uint* in, __global uint* out, uint rounds) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  volatile uint table[40];
  for (uint k = 0; k < 40; ++k) table[k] = in[i] * (k + 1);
  uint at = in[i] % 40;
  for (uint r = 0; r < rounds; ++r) {
    table[(at + r) % 40] += table[at];
    at = table[at] % 40;
  }
  uint sum = 0;
  for (uint k = 0; k < 40; ++k) sum = sum * 31 + table[k];
  out[i] = sum;
}

// Three dimensions of groups and threads, all ids.
__kernel __attribute__((reqd_work_group_size(4, 3, 5))) void ids(__global uint* out, uint groups_x, uint groups_y) {
  uint gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
  uint x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  uint group = (gz * groups_y + gy) * groups_x + gx;
  out[group * 60 + (z * 3 + y) * 4 + x] = gx | gy << 4 | gz << 8 | x << 16 | y << 20 | z << 24;
}

KERNEL(64) void integers(__global const int* in, __global int* out) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  int a = in[2 * i], b = in[2 * i + 1] | 1;
  long wide = (long)a * b;
  int quotient = a / b, rest = a % b;
  uint unsigned_quotient = (uint)a / (uint)b;
  int lanes = __builtin_amdgcn_ds_bpermute((int)((i ^ 5) << 2), a);
  out[8 * i] = quotient;
  out[8 * i + 1] = rest;
  out[8 * i + 2] = (int)unsigned_quotient;
  out[8 * i + 3] = (int)(wide >> 32);
  out[8 * i + 4] = (int)(wide / (b | 7));
  out[8 * i + 5] = lanes;
  out[8 * i + 6] = __builtin_popcount(a) + __builtin_clz(b | 1) + __builtin_ctz(a | 0x10000);
  out[8 * i + 7] = (int)((uint)a << (b & 31)) ^ (a >> (b & 31));
}
