// Kernels of the compute tests: convolution, matrix product, f16 and f64. Compiled as basic.cl.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define LOCAL_ID __builtin_amdgcn_workitem_id_x()
#define GROUP_ID __builtin_amdgcn_workgroup_id_x()

static void barrier_of_group(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// 3x3, padded by one, four output channels a thread; out[k][y][x].
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void conv3x3(__global const float* restrict in,
                                                                      __global const float* restrict weights,
                                                                      __global float* restrict out, uint channels,
                                                                      uint height, uint width) {
  uint at = GROUP_ID * 64 + LOCAL_ID;
  uint first = __builtin_amdgcn_workgroup_id_y() * 4;
  if (at >= height * width) return;
  int y = (int)(at / width), x = (int)(at % width);
  float sum[4] = {0, 0, 0, 0};
  for (uint c = 0; c < channels; ++c) {
    __global const float* plane = in + c * height * width;
    float patch[9];
#pragma unroll
    for (int r = 0; r < 3; ++r) {
#pragma unroll
      for (int s = 0; s < 3; ++s) {
        int yy = y + r - 1, xx = x + s - 1;
        bool inside = yy >= 0 && yy < (int)height && xx >= 0 && xx < (int)width;
        patch[r * 3 + s] = inside ? plane[yy * (int)width + xx] : 0.0f;
      }
    }
#pragma unroll
    for (uint k = 0; k < 4; ++k) {
      __global const float* w = weights + ((first + k) * channels + c) * 9;
#pragma unroll
      for (int t = 0; t < 9; ++t) sum[k] = __builtin_fmaf(patch[t], w[t], sum[k]);
    }
  }
#pragma unroll
  for (uint k = 0; k < 4; ++k) out[(first + k) * height * width + at] = sum[k];
}

// Tiles of 16x16 through LDS; n is a multiple of 16. Groups of 256 threads.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void gemm(__global const float* restrict a,
                                                                    __global const float* restrict b,
                                                                    __global float* restrict c, uint n) {
  __local float tile_a[256], tile_b[256];
  uint l = LOCAL_ID, row = l / 16, column = l % 16;
  uint top = __builtin_amdgcn_workgroup_id_y() * 16, left = GROUP_ID * 16;
  float sum = 0;
  for (uint k = 0; k < n; k += 16) {
    tile_a[l] = a[(top + row) * n + k + column];
    tile_b[l] = b[(k + row) * n + left + column];
    barrier_of_group();
#pragma unroll
    for (uint t = 0; t < 16; ++t) sum = __builtin_fmaf(tile_a[row * 16 + t], tile_b[t * 16 + column], sum);
    barrier_of_group();
  }
  c[(top + row) * n + left + column] = sum;
}

// As tuned libraries do: tiles of 64x64, 8x8 sums a thread, 16 of the inner dimension through LDS. n is a multiple of 64.
typedef float float4 __attribute__((ext_vector_type(4)));
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void sgemm(__global const float* restrict a,
                                                                    __global const float* restrict b,
                                                                    __global float* restrict c, uint n) {
  __local float tile_a[16][64] __attribute__((aligned(16))), tile_b[16][64] __attribute__((aligned(16)));
  uint l = LOCAL_ID, right = l % 8, down = l / 8;
  uint top = __builtin_amdgcn_workgroup_id_y() * 64, left = GROUP_ID * 64;
  float sum[8][8];
#pragma unroll
  for (uint i = 0; i < 64; ++i) sum[i / 8][i % 8] = 0;
  for (uint k = 0; k < n; k += 16) {
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
      float4 row = *(__global const float4*)(a + (top + l) * n + k + 4 * i);
#pragma unroll
      for (uint j = 0; j < 4; ++j) tile_a[4 * i + j][l] = row[j];
      uint deep = 4 * i + l / 16;
      *(__local float4*)&tile_b[deep][l % 16 * 4] = *(__global const float4*)(b + (k + deep) * n + left + l % 16 * 4);
    }
    barrier_of_group();
#pragma unroll
    for (uint t = 0; t < 16; ++t) {
      float4 x[2] = {*(__local float4*)&tile_a[t][down * 8], *(__local float4*)&tile_a[t][down * 8 + 4]};
      float4 y[2] = {*(__local float4*)&tile_b[t][right * 8], *(__local float4*)&tile_b[t][right * 8 + 4]};
#pragma unroll
      for (uint i = 0; i < 64; ++i) sum[i / 8][i % 8] = __builtin_fmaf(x[i / 32][i / 8 % 4], y[i % 8 / 4][i % 4], sum[i / 8][i % 8]);
    }
    barrier_of_group();
  }
#pragma unroll
  for (uint i = 0; i < 16; ++i) {
    __private float* s = &sum[i / 2][i % 2 * 4];
    *(__global float4*)(c + (top + down * 8 + i / 2) * n + left + right * 8 + i % 2 * 4) = (float4){s[0], s[1], s[2], s[3]};
  }
}

typedef half half2 __attribute__((ext_vector_type(2)));
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void halves(__global const half* in, __global half* out) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  half a = in[2 * i], b = in[2 * i + 1];
  out[4 * i] = a * b + a;
  out[4 * i + 1] = (half)((float)a - (float)b);
  half2 p = {a, b}, q = {b, (half)2.0f};
  half2 r = p * q + p;
  out[4 * i + 2] = r.x;
  out[4 * i + 3] = r.y;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void doubles(__global const double* in, __global double* out) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  double a = in[2 * i], b = in[2 * i + 1];
  out[4 * i] = a / b;
  out[4 * i + 1] = __builtin_sqrt(a < 0 ? -a : a);
  out[4 * i + 2] = __builtin_fma(a, b, -a);
  out[4 * i + 3] = (double)(long)(a * 1024.0) + (double)(float)b;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void singles(__global const float* in, __global float* out) {
  uint i = GROUP_ID * 64 + LOCAL_ID;
  float a = in[2 * i], b = in[2 * i + 1];
  out[4 * i] = a / b;
  out[4 * i + 1] = __builtin_sqrtf(__builtin_fabsf(a));
  out[4 * i + 2] = __builtin_fminf(a, b) * 3.0f - __builtin_floorf(b);
  out[4 * i + 3] = (float)(int)a + __builtin_rintf(b) + __builtin_ldexpf(a, 3);
}
