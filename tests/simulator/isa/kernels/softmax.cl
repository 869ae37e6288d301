__attribute__((reqd_work_group_size(64, 1, 1))) kernel void softmax(global float* out, global const float* in, uint n) {
  local float part[64];
  uint lane = __builtin_amdgcn_workitem_id_x();
  uint row = __builtin_amdgcn_workgroup_id_x() * n;
  float top = -__builtin_inff();
  for (uint i = lane; i < n; i += 64) top = __builtin_fmaxf(top, in[row + i]);
  part[lane] = top;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  for (uint i = 0; i < 64; ++i) top = __builtin_fmaxf(top, part[i]);
  __builtin_amdgcn_s_barrier();
  float sum = 0;
  for (uint i = lane; i < n; i += 64) sum += __builtin_expf(in[row + i] - top);
  part[lane] = sum;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  sum = 0;
  for (uint i = 0; i < 64; ++i) sum += part[i];
  for (uint i = lane; i < n; i += 64) out[row + i] = __builtin_expf(in[row + i] - top) / sum;
}
