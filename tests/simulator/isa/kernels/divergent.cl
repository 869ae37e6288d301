__attribute__((reqd_work_group_size(64, 1, 1))) kernel void mandelbrot(global uint* out, uint width, float scale) {
  uint id = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  float cx = (float)(id % width) * scale - 2.0f, cy = (float)(id / width) * scale - 1.0f;
  float x = 0, y = 0;
  uint count = 0;
  while (x * x + y * y < 4.0f && count < 255) {
    float next = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = next;
    ++count;
  }
  out[id] = count;
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void branches(global int* out, global const int* in, int n) {
  uint id = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  int v = in[id], r = 0;
  switch (v & 7) {
    case 0: r = v * 2; break;
    case 1:
      for (int i = 0; i < v; ++i) {
        if (in[i] == 3) continue;
        if (in[i] > n) break;
        r += in[i];
      }
      break;
    case 2: r = v > n ? v - n : n - v; break;
    case 5: do r += in[r & 15]; while (r < n);
    case 6: r ^= 0x55AA; break;
    default: r = -v;
  }
  if (v > 100 && (v & 1) != (n & 1)) {
    if (r < 0) return;
    r = r * 31 + 0x12345678;
  }
  out[id] = r;
}
