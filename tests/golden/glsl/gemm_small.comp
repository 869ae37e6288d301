#version 430
// gemm/plain: column and row are those of the product.
layout(local_size_x = 64, local_size_y = 1) in;
layout(std430, binding = 0) readonly restrict buffer Of_a { float a[]; };
layout(std430, binding = 1) readonly restrict buffer Of_b { float b[]; };
layout(std430, binding = 2) readonly restrict buffer Of_bias { float bias[]; };
layout(std430, binding = 3) writeonly restrict buffer Of_c { float c[]; };

void main() {
  int column = int(gl_GlobalInvocationID.x);
  int row = int(gl_GlobalInvocationID.y);
  int layer = int(gl_GlobalInvocationID.z);
  if (column >= 33) return;
  int at = row * 33 + column;
  float sum = 0.0;
  for (int k = 0; k < 65; ++k) {
    sum += a[row * 65 + k] * b[k * 33 + column];
  }
  sum += bias[column];
  c[at] = sum;
}
