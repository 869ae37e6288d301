// Pointers of any address space, structs in memory, wide and scalar loads.
struct Row { float4 a; int4 b; ushort2 c; };

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void any_space(global int* out, global struct Row* rows, int pick) {
  local int shared[64];
  private int own[4];
  uint id = __builtin_amdgcn_workitem_id_x();
  shared[id] = id * 2;
  own[pick & 3] = pick;
  own[(pick + 1) & 3] = 4;
  int* p = pick > 5 ? (int*)&shared[id ^ 1] : pick > 2 ? (int*)&own[id & 3] : (int*)&out[id];
  *p += pick;
  out[id] = *p + shared[id] + own[0] + *(volatile int*)p;
  __opencl_atomic_fetch_add((volatile atomic_int*)p, 3, memory_order_relaxed, memory_scope_device);
  rows[id].a = rows[id + 1].a * 2.0f;
  rows[id].b = rows[id + 2].b + (int4)(1, 2, 3, 4);
  rows[id].c.y = rows[id + 3].c.x;
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void constants(global int* out, constant int* table, int at) {
  uint id = __builtin_amdgcn_workitem_id_x();
  out[id] = table[at] + table[at + 1] + table[id] + table[at + 16] + table[at + 17] + table[at + 18] + table[at + 19];
}
