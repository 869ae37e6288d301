// Generic bounds at every tap.
__attribute__((reqd_work_group_size(8, 8, 1))) kernel void conv3x3(global float* out, global const float* in,
                                                                    global const float* weights, int channels, int height,
                                                                    int width, int stride, int pad) {
  int x = __builtin_amdgcn_workgroup_id_x() * 8 + __builtin_amdgcn_workitem_id_x();
  int y = __builtin_amdgcn_workgroup_id_y() * 8 + __builtin_amdgcn_workitem_id_y();
  int k = __builtin_amdgcn_workgroup_id_z();
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int c = 0; c < channels; ++c) {
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        int yy = y * stride + r - pad, xx = x * stride + s - pad;
        if (yy >= 0 && yy < height && xx >= 0 && xx < width) {
          sum = __builtin_fmaf(in[(c * height + yy) * width + xx], weights[((k * channels + c) * 3 + r) * 3 + s], sum);
        }
      }
    }
  }
  out[(k * height + y) * width + x] = sum > 0 ? sum : 0;
}

// A tile of the input in LDS.
__attribute__((reqd_work_group_size(16, 16, 1))) kernel void conv3x3_lds(global float* out, global const float* in,
                                                                         global const float* weights, int channels,
                                                                         int height, int width) {
  local float tile[18][18];
  int tx = __builtin_amdgcn_workitem_id_x(), ty = __builtin_amdgcn_workitem_id_y();
  int x0 = __builtin_amdgcn_workgroup_id_x() * 16, y0 = __builtin_amdgcn_workgroup_id_y() * 16;
  int k = __builtin_amdgcn_workgroup_id_z();
  float sum = 0;
  for (int c = 0; c < channels; ++c) {
    for (int i = ty * 16 + tx; i < 18 * 18; i += 256) {
      int yy = y0 + i / 18 - 1, xx = x0 + i % 18 - 1;
      tile[i / 18][i % 18] =
          yy >= 0 && yy < height && xx >= 0 && xx < width ? in[(c * height + yy) * width + xx] : 0.0f;
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        sum = __builtin_fmaf(tile[ty + r][tx + s], weights[((k * channels + c) * 3 + r) * 3 + s], sum);
      }
    }
    __builtin_amdgcn_s_barrier();
  }
  if (x0 + tx < width && y0 + ty < height) out[(k * height + y0 + ty) * width + x0 + tx] = sum;
}
