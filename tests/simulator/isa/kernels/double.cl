#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define ID (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void bodies(global double4* force, global const double4* at, uint n) {
  double4 me = at[ID];
  double x = 0, y = 0, z = 0;
  for (uint i = 0; i < n; ++i) {
    double dx = at[i].x - me.x, dy = at[i].y - me.y, dz = at[i].z - me.z;
    double r2 = dx * dx + dy * dy + dz * dz + 1e-9;
    double inverse = 1.0 / __builtin_sqrt(r2);
    double scale = at[i].w * inverse * inverse * inverse;
    x += dx * scale;
    y += dy * scale;
    z += dz * scale;
  }
  force[ID] = (double4)(x, y, z, __builtin_floor(x) + __builtin_fmax(y, z) - 4.0);
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void convert(global double* d, global const int* a,
                                                                     global const float* f, global long* l) {
  d[ID] = (double)a[ID] + (double)f[ID] + (double)(uint)a[ID] * 0.25;
  l[ID] = (long)d[ID] + (int)d[ID + 1] + (uint)f[ID];
  d[ID + 1] = __builtin_ldexp(d[ID], 3) + (d[ID] < 0 ? -d[ID] : 2.5) + (double)l[ID];
}
