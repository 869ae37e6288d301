// Specs and a device that the tests of the generator share with the process that prints sources.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string>
#include <vector>

namespace kiln::dynamic_shaders {

// A device as OpenGL describes llvmpipe.
DeviceInfo sample_device();
// With views of every kind, and lanes of a software device.
DeviceInfo viewing_device();

Conv2dSpec resnet_layer();     // 64 channels of 56 x 56, 3 x 3 taps, padded
Conv2dSpec depthwise_layer();  // stride, dilation, bias and ReLU, no padding along x
GemmSpec small_gemm();

std::vector<KernelSpec> sample_specs();

// Every source of the plans of sample_specs(), one after the other.
std::string all_sources();

}  // namespace kiln::dynamic_shaders
