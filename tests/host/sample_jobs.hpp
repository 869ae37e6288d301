// Jobs that the host's tests run: small, with random data, and verified.
//
// Thread-safety: values. Ownership: values.
#pragma once

#include <string>

namespace kiln::test {

struct ConvExtents {
  int channels = 3;
  int size = 32;  // height and width
  int filters = 16;
};

// A convolution 3x3, stride 1, padded, as one [[job]] of a file; keys of its own or tables may follow.
inline std::string conv_3x3(const std::string& name, ConvExtents extents = {}) {
  const std::string size = std::to_string(extents.size);
  return "\n[[job]]\nname = \"" + name + "\"\nop = \"conv2d\"\nc = " + std::to_string(extents.channels) +
         "\nh = " + size + "\nw = " + size + "\nk = " + std::to_string(extents.filters) +
         "\nr = 3\ns = 3\npad = 1\ninput = \"random:1\"\nweights = \"random:2\"\nverify = true\n";
}

// Layers that tests of several files run.
inline const std::string tiny_layer = conv_3x3("tiny");
inline const std::string small_layer = conv_3x3("layer", {16, 16, 32});
inline const std::string wide_layer = conv_3x3("layer", {8, 40, 32});

// A product too small for anything but the plain kernel: one program, and the same text whatever the device's vectors.
inline std::string tiny_gemm(const std::string& name, int rows = 4) {
  return "\n[[job]]\nname = \"" + name + "\"\nop = \"gemm\"\nm = " + std::to_string(rows) +
         "\nn = 4\nk = 4\ninput = \"random:1\"\nweights = \"random:2\"\nverify = true\n";
}

}  // namespace kiln::test
