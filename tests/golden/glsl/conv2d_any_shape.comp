#version 430
// direct/plain: column is a pixel of the result's plane, row its channel, layer the image.
layout(local_size_x = 64, local_size_y = 1) in;
layout(std430, binding = 0) readonly restrict buffer Of_x { float x[]; };
layout(std430, binding = 1) readonly restrict buffer Of_weights { float weights[]; };
layout(std430, binding = 2) writeonly restrict buffer Of_y { float y[]; };
layout(std430, binding = 3) readonly restrict buffer Of_numbers { int numbers[]; };

void main() {
  int n_channels = numbers[0];
  int n_columns = numbers[1];
  int n_dilation_x = numbers[2];
  int n_dilation_y = numbers[3];
  int n_end_channel = numbers[4];
  int n_filters = numbers[5];
  int n_first_channel = numbers[6];
  int n_group_channels = numbers[7];
  int n_group_filters = numbers[8];
  int n_height = numbers[9];
  int n_out_plane = numbers[10];
  int n_out_width = numbers[11];
  int n_pad_x = numbers[12];
  int n_pad_y = numbers[13];
  int n_plane = numbers[14];
  int n_stride_x = numbers[15];
  int n_stride_y = numbers[16];
  int n_taps = numbers[17];
  int n_taps_x = numbers[18];
  int n_taps_y = numbers[19];
  int n_width = numbers[20];
  int column = int(gl_GlobalInvocationID.x);
  int row = int(gl_GlobalInvocationID.y);
  int layer = int(gl_GlobalInvocationID.z);
  if (column >= n_columns) return;
  int top = column / n_out_width * n_stride_y - n_pad_y;
  int left = column % n_out_width * n_stride_x - n_pad_x;
  int at = (layer * n_filters + row) * n_out_plane + column;
  int first = layer * n_channels + row / n_group_filters * n_group_channels;
  float sum = 0.0;
  for (int c = n_first_channel; c < n_end_channel; ++c) {
    int plane = (first + c) * n_plane;
    int taps = (row * n_group_channels + c) * n_taps;
    for (int r = 0; r < n_taps_y; ++r) {
      int iy = top + r * n_dilation_y;
      if (iy < 0 || iy >= n_height) continue;
      int line = plane + iy * n_width;
      for (int s = 0; s < n_taps_x; ++s) {
        int ix = left + s * n_dilation_x;
        if (ix < 0 || ix >= n_width) continue;
        sum += x[line + ix] * weights[taps + r * n_taps_x + s];
      }
    }
  }
  y[at] = sum;
}
