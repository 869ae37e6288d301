#version 430
// direct/plain: column is a pixel of the result's plane, row its channel, layer the image.
layout(local_size_x = 64, local_size_y = 1) in;
layout(std430, binding = 0) readonly restrict buffer Of_x { float x[]; };
layout(std430, binding = 1) readonly restrict buffer Of_weights { float weights[]; };
layout(std430, binding = 2) readonly restrict buffer Of_bias { float bias[]; };
layout(std430, binding = 3) writeonly restrict buffer Of_y { float y[]; };

void main() {
  int column = int(gl_GlobalInvocationID.x);
  int row = int(gl_GlobalInvocationID.y);
  int layer = int(gl_GlobalInvocationID.z);
  if (column >= 40) return;
  int top = column / 8 * 2 - 1;
  int left = column % 8 * 1 - 0;
  int at = (layer * 12 + row) * 40 + column;
  int first = layer * 6 + row / 2 * 1;
  float sum = 0.0;
  for (int c = 0; c < 1; ++c) {
    int plane = (first + c) * 99;
    int taps = (row * 1 + c) * 6;
    for (int r = 0; r < 3; ++r) {
      int iy = top + r * 1;
      if (iy < 0 || iy >= 9) continue;
      int line = plane + iy * 11;
      for (int s = 0; s < 2; ++s) {
        int ix = left + s * 3;
        sum += x[line + ix] * weights[taps + r * 2 + s];
      }
    }
  }
  sum += bias[row];
  sum = max(sum, 0.0);
  y[at] = sum;
}
