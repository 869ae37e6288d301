// 32 x 32 of the result for 256 work items, 2 x 2 each.
__attribute__((reqd_work_group_size(16, 16, 1))) kernel void gemm(global float* c, global const float* a,
                                                                   global const float* b, uint m, uint n, uint k) {
  local float as[16][33], bs[16][32];
  uint tx = __builtin_amdgcn_workitem_id_x(), ty = __builtin_amdgcn_workitem_id_y();
  uint row = __builtin_amdgcn_workgroup_id_y() * 32, column = __builtin_amdgcn_workgroup_id_x() * 32;
  float sum[2][2] = {{0, 0}, {0, 0}};
  for (uint kk = 0; kk < k; kk += 16) {
    for (uint i = 0; i < 2; ++i) {
      as[tx][ty + 16 * i] = row + ty + 16 * i < m && kk + tx < k ? a[(row + ty + 16 * i) * k + kk + tx] : 0.0f;
      bs[ty][tx + 16 * i] = column + tx + 16 * i < n && kk + ty < k ? b[(kk + ty) * n + column + tx + 16 * i] : 0.0f;
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    for (uint p = 0; p < 16; ++p) {
      for (uint i = 0; i < 2; ++i) {
        for (uint j = 0; j < 2; ++j) sum[i][j] = __builtin_fmaf(as[p][ty * 2 + i], bs[p][tx * 2 + j], sum[i][j]);
      }
    }
    __builtin_amdgcn_s_barrier();
  }
  for (uint i = 0; i < 2; ++i) {
    for (uint j = 0; j < 2; ++j) {
      if (row + ty * 2 + i < m && column + tx * 2 + j < n) c[(row + ty * 2 + i) * n + column + tx * 2 + j] = sum[i][j];
    }
  }
}
