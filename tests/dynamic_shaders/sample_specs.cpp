#include "dynamic_shaders/sample_specs.hpp"

#include "dynamic_shaders/generator.hpp"

namespace kiln::dynamic_shaders {

DeviceInfo sample_device() {
  DeviceInfo device;
  device.id = "opengl:0";
  device.kind = DeviceKind::software;
  device.dialects = {Dialect::glsl};
  device.max_workgroup = {1024, 1024, 1024};
  device.max_workgroup_lanes = 1024;
  return device;
}

DeviceInfo viewing_device() {
  DeviceInfo device = sample_device();
  device.max_bindings = 16;
  device.max_texel_bindings = 32, device.max_image_bindings = 8;
  device.max_view_texels = 1u << 27;
  device.simd_lanes = 8;
  return device;
}

Conv2dSpec resnet_layer() {
  Conv2dSpec spec;
  spec.c = 64, spec.h = 56, spec.w = 56, spec.k = 64, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  return spec;
}

Conv2dSpec depthwise_layer() {
  Conv2dSpec spec;
  spec.n = 2, spec.c = 6, spec.h = 9, spec.w = 11, spec.k = 12, spec.r = 3, spec.s = 2, spec.groups = 6;
  spec.stride_y = 2, spec.pad_y = 1, spec.dilation_x = 3;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  return spec;
}

GemmSpec small_gemm() {
  GemmSpec spec;
  spec.m = 17, spec.n = 33, spec.k = 65, spec.bias = Bias::per_channel;
  return spec;
}

std::vector<KernelSpec> sample_specs() {
  Conv2dSpec long_sum = resnet_layer();
  long_sum.c = 10000;
  GemmSpec long_product = small_gemm();
  long_product.k = 200000;
  Conv2dSpec picture = depthwise_layer();
  picture.n = 1, picture.c = 1, picture.k = 2, picture.groups = 1, picture.h = 5000, picture.w = 6000;
  return {resnet_layer(), depthwise_layer(), small_gemm(), long_sum, long_product, picture};
}

std::string all_sources() {
  Generator generator;
  std::string all;
  for (const KernelSpec& spec : sample_specs()) {
    const auto plan = generator.generate(spec, sample_device(), Dialect::glsl);
    if (!plan) return "no plan for " + canonical_text(spec) + ": " + plan.error().text();
    for (const Pass& pass : plan->passes) all += pass.source.text + "--\n";
  }
  return all;
}

}  // namespace kiln::dynamic_shaders
