#define ID (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void waves(global float* out, global const float* in) {
  float x = in[ID];
  out[ID] = __builtin_sinf(x) + __builtin_cosf(x * 0.5f) + __builtin_expf(-x) + __builtin_logf(x) + __builtin_log2f(x) +
            __builtin_exp2f(x);
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void roots(global float* out, global const float* in, int e) {
  float x = in[ID], y = in[ID + 1];
  out[ID] = __builtin_sqrtf(x) + x / y + __builtin_truncf(x) + __builtin_rintf(y) + __builtin_ceilf(x) +
            __builtin_fabsf(y) + __builtin_copysignf(x, y) + __builtin_ldexpf(x, e) + __builtin_amdgcn_rsqf(y) +
            __builtin_amdgcn_fractf(x) + __builtin_amdgcn_fmed3f(x, y, 0.5f) + __builtin_fminf(x, -y);
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void classes(global uint* out, global const float* in, global uchar* b) {
  float x = in[ID];
  uint r = __builtin_isnan(x) ? 1 : __builtin_isinf(x) ? 2 : x != x + 1.0f ? 4 : 8;
  r += (uint)x + (uint)(int)(x * 2.0f) + (uint)(float)b[ID] + __builtin_amdgcn_cvt_pk_u8_f32(x, 1, r);
  float mean = ((float)b[4 * ID] + (float)b[4 * ID + 1] + (float)b[4 * ID + 2]) * 0x1p-8f;
  out[ID] = r + (uint)mean + (x >= -1.0f && x <= 1.0f);
}
