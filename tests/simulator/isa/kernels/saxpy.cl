#define ID (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void saxpy(global float* y, global const float* x, float a,
                                                                    uint n) {
  uint i = ID;
  if (i < n) y[i] = a * x[i] + y[i];
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void saxpy4(global float4* y, global const float4* x, float a) {
  y[ID] = a * x[ID] + y[ID];
}
