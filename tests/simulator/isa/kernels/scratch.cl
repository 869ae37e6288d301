// An array that is indexed by data lives in scratch memory.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void scatter(global int* out, global const int* in, int n) {
  uint id = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  int table[64];
  char small[32];
  for (int i = 0; i < 64; ++i) table[i] = in[(id + i) & 1023];
  for (int i = 0; i < 32; ++i) small[i] = (char)(in[i] + i);
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    int at = (in[i] ^ sum) & 63;
    sum += table[at];
    table[(at * 7) & 63] = sum;
    small[at & 31] += (char)sum;
  }
  out[id] = sum + table[n & 63] + small[n & 31];
}

__attribute__((noinline)) int depth(int a, global int* p) { return a < 2 ? p[a & 1] : p[a & 63] + a * 3; }

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void calls(global int* out, int n) {
  uint id = __builtin_amdgcn_workitem_id_x();
  out[id] = depth(n + id, out) + depth(n * 5, out + 7);
}
