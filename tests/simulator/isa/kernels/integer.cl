#define ID (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())

__attribute__((reqd_work_group_size(256, 1, 1))) kernel void histogram(global uint* bins, global const uchar* in, uint n) {
  local uint counts[256];
  uint lane = __builtin_amdgcn_workitem_id_x();
  counts[lane] = 0;
  __builtin_amdgcn_s_barrier();
  for (uint i = ID; i < n; i += 65536) {
    __opencl_atomic_fetch_add((volatile local atomic_uint*)&counts[in[i]], 1u, memory_order_relaxed,
                              memory_scope_work_group);
  }
  __builtin_amdgcn_s_barrier();
  __opencl_atomic_fetch_add((volatile global atomic_uint*)&bins[lane], counts[lane], memory_order_relaxed,
                            memory_scope_device);
}

__attribute__((reqd_work_group_size(256, 1, 1))) kernel void mixed(global long* out, global const int* a,
                                                                    global const uint* b, global const long* c) {
  uint i = ID;
  int x = a[i];
  uint y = b[i] | 1;
  long z = c[i];
  long r = x / (int)(y & 0xFF) + x % 17 + (long)(y / 7) + (y % 1000);
  r += (long)x * z + ((ulong)z >> (y & 63)) + (z << (x & 31)) + (z >> 3);
  r ^= __builtin_clz(y) + __builtin_ctz(y) + __builtin_popcount(y) + __builtin_popcountl(z);
  r += __builtin_bitreverse32(y) + (long)((ulong)x * y >> 32) + (x > (int)y ? x : (int)y);
  r += __builtin_rotateleft32(y, 7) + __builtin_amdgcn_ubfe(y, 3, 9) + __builtin_amdgcn_sad_u8(y, x, 3);
  r += __builtin_amdgcn_perm(y, x, 0x01020304) + __builtin_amdgcn_alignbit(y, x, 5) + __builtin_elementwise_add_sat(x, 77);
  out[i] = r / (z | 1);
}

__attribute__((reqd_work_group_size(256, 1, 1))) kernel void narrow(global short* out, global const char* a,
                                                                     global const ushort* b, global char4* d) {
  uint i = ID;
  short v = a[i];
  ushort w = b[i];
  v = v * 3 + (short)(w >> 2) - (short)(v << 1) + (v > (short)w ? v : 4);
  out[i] = v;
  d[i] = d[i] + (char4)(1, 2, 3, a[i]);
}

__attribute__((reqd_work_group_size(256, 1, 1))) kernel void exchange(global uint* p, global ulong* q, uint n) {
  uint expected = n;
  __opencl_atomic_compare_exchange_strong((volatile global atomic_uint*)p + ID, &expected, 7u, memory_order_seq_cst,
                                          memory_order_relaxed, memory_scope_device);
  p[ID + n] = expected + __opencl_atomic_fetch_max((volatile global atomic_int*)p, (int)n, memory_order_acq_rel,
                                                   memory_scope_device);
  p[ID] += __opencl_atomic_exchange((volatile global atomic_uint*)p + 5, n, memory_order_relaxed, memory_scope_device);
  __opencl_atomic_fetch_xor((volatile global atomic_ulong*)q, 3ul, memory_order_relaxed, memory_scope_device);
  q[1] = __opencl_atomic_fetch_min((volatile global atomic_ulong*)q, n, memory_order_release, memory_scope_all_svm_devices);
}
