#define LANE __builtin_amdgcn_workitem_id_x()
#define BARRIER                                           \
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
  __builtin_amdgcn_s_barrier();                          \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")

__attribute__((reqd_work_group_size(256, 1, 1))) kernel void reduce_tree(global float* out, global const float* in, uint n) {
  local float part[256];
  float sum = 0;
  for (uint i = __builtin_amdgcn_workgroup_id_x() * 256 + LANE; i < n; i += 4096) sum += in[i];
  part[LANE] = sum;
  BARRIER;
  for (uint half_size = 128; half_size > 0; half_size >>= 1) {
    if (LANE < half_size) part[LANE] += part[LANE + half_size];
    BARRIER;
  }
  if (LANE == 0) out[__builtin_amdgcn_workgroup_id_x()] = part[0];
}

// Within a wave by DPP and permutes, between waves by an atomic.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void reduce_lanes(global int* out, global const int* in) {
  int v = in[__builtin_amdgcn_workgroup_id_x() * 64 + LANE];
  v += __builtin_amdgcn_update_dpp(0, v, 0xB1, 0xF, 0xF, true);
  v += __builtin_amdgcn_update_dpp(0, v, 0x4E, 0xF, 0xF, true);
  v += __builtin_amdgcn_update_dpp(0, v, 0x141, 0xF, 0xF, false);
  v += __builtin_amdgcn_update_dpp(0, v, 0x140, 0xF, 0x5, false);
  v += __builtin_amdgcn_mov_dpp8(v, 0xFAC688);
  v += __builtin_amdgcn_permlanex16(v, v, 0x76543210, 0xFEDCBA98, false, true);
  v += __builtin_amdgcn_ds_bpermute((int)((LANE ^ 5) * 4), v);
  v += __builtin_amdgcn_ds_swizzle(v, 0x041F);
  v += __builtin_amdgcn_readlane(v, 3) + __builtin_amdgcn_readfirstlane(v);
  int m = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  if (m == 0) __opencl_atomic_fetch_add((volatile global atomic_int*)out, v, memory_order_relaxed, memory_scope_device);
}
