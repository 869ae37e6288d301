// The layer tables that are measured: one convolution a row, f32, NCHW.
//
// Thread-safety: values; reading is a pure function of the file.
#pragma once

#include <kiln/kernel.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::bench {

struct Layer {
  std::string name;
  Conv2dSpec spec;
};

// Throws std::runtime_error that names the file, and the row that cannot be read.
inline std::vector<Layer> read_layer_table(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::vector<Layer> layers;
  std::string line;
  for (std::getline(file, line); std::getline(file, line);) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    Layer layer;
    Conv2dSpec& spec = layer.spec;
    words >> layer.name >> spec.n >> spec.c >> spec.h >> spec.w >> spec.k >> spec.r >> spec.s >> spec.stride_y >>
        spec.pad_y >> spec.groups;
    if (!words) throw std::runtime_error(path + ": row '" + line + "'");
    spec.stride_x = spec.stride_y;
    spec.pad_x = spec.pad_y;
    layers.push_back(layer);
  }
  return layers;
}

}  // namespace kiln::bench
