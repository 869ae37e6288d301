#version 430
// direct/plain: column is a pixel of the result's plane, row its channel, layer the image.
layout(local_size_x = 64, local_size_y = 1) in;
layout(std430, binding = 0) readonly restrict buffer Of_x { float x[]; };
layout(std430, binding = 1) readonly restrict buffer Of_weights { float weights[]; };
layout(std430, binding = 2) writeonly restrict buffer Of_y { float y[]; };

void main() {
  int column = int(gl_GlobalInvocationID.x);
  int row = int(gl_GlobalInvocationID.y);
  int layer = int(gl_GlobalInvocationID.z);
  int top = column / 56 * 1 - 1;
  int left = column % 56 * 1 - 1;
  int at = (layer * 64 + row) * 3136 + column;
  int first = layer * 64;
  float sum = 0.0;
  for (int c = 0; c < 64; ++c) {
    int plane = (first + c) * 3136;
    int taps = (row * 64 + c) * 9;
    for (int r = 0; r < 3; ++r) {
      int iy = top + r * 1;
      if (iy < 0 || iy >= 56) continue;
      int line = plane + iy * 56;
      for (int s = 0; s < 3; ++s) {
        int ix = left + s * 1;
        if (ix < 0 || ix >= 56) continue;
        sum += x[line + ix] * weights[taps + r * 3 + s];
      }
    }
  }
  y[at] = sum;
}
