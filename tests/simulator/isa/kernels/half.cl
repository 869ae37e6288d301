#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define ID (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())
typedef half half2v __attribute__((ext_vector_type(2)));
typedef short short2v __attribute__((ext_vector_type(2)));

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void half_scalar(global half* out, global const half* a,
                                                                         global const half* b, float scale) {
  half x = a[ID], y = b[ID];
  half r = x * y + (half)1.5h;
  r = __builtin_fmaf16(r, x, y) - x / y;
  r = __builtin_fminf16(r, __builtin_sqrtf16(y)) + __builtin_floorf16(x) + (half)((float)x * scale);
  out[ID] = r > (half)0 ? r : -r;
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void half_packed(global half2v* out, global const half2v* a,
                                                                         global float* f, global short2v* s) {
  half2v x = a[ID], y = a[ID + 64];
  half2v r = x * y + (half2v)(0.5h, 2.0h);
  r += x.yx;
  r = __builtin_elementwise_max(r, y);
  out[ID] = r;
  f[ID] = __builtin_amdgcn_fdot2(x, y, f[ID], true) + (float)x.x * (float)y.y + f[ID + 1];
  short2v t = s[ID];
  s[ID] = t * t + (short2v)(1, -1) - (t >> (short2v)(2, 3)) + __builtin_elementwise_min(t, (short2v)(9, 8));
  out[ID + 99] = __builtin_amdgcn_cvt_pkrtz(f[ID], 3.0f);
}

#if __has_builtin(__builtin_amdgcn_sudot4) && defined(__GFX11__)
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void dots(global int* out, global const int* a) {
  out[ID] = __builtin_amdgcn_sudot4(true, a[ID], false, a[ID + 64], out[ID], true) + __builtin_amdgcn_udot4(a[ID], 77, 1, false);
}
#endif
