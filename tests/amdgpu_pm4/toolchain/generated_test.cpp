// What the generator writes in OpenCL C compiles for both generations without a warning, into kernels that are offered.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/dispatch_needs.hpp"
#include "amdgpu_pm4/code_object/read_code_object.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "dynamic_shaders/families/depthwise/depthwise.hpp"
#include "dynamic_shaders/families/direct_blocked.hpp"
#include "dynamic_shaders/families/product/gemm_blocked.hpp"
#include "dynamic_shaders/families/product/implicit.hpp"
#include "dynamic_shaders/families/winograd/winograd.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using namespace dynamic_shaders;

DeviceInfo device() {
  DeviceInfo info;
  info.max_workgroup = {1024, 1024, 1024};
  info.max_workgroup_lanes = 1024;
  info.max_bindings = 16;
  info.max_buffer_bytes = std::uint64_t{1} << 32;
  info.max_shared_bytes = 65536;
  info.simd_lanes = 32;
  return info;
}

Conv2dSpec layer() {
  Conv2dSpec spec;
  spec.n = 1, spec.c = 64, spec.h = 28, spec.w = 28;
  spec.k = 64, spec.r = 3, spec.s = 3;
  spec.pad_y = spec.pad_x = 1;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  return spec;
}

std::vector<KernelPlan> plans() {
  std::vector<KernelPlan> made;
  const auto add = [&made](Result<KernelPlan> plan) {
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    made.push_back(std::move(*plan));
  };
  Conv2dSpec winograd_layer = layer(), depth = layer();
  winograd_layer.accuracy = Accuracy::winograd;
  depth.groups = 64;
  GemmSpec product;
  product.m = 64, product.n = 64, product.k = 64;
  product.bias = Bias::per_channel, product.activation = Activation::relu;
  const Dialect opencl_c = Dialect::opencl_c;
  add(direct_blocked(layer(),
                     {Lanes::channels, 4, 8, 4, Packing::pixels, View::storage, Rows::unrolled, Border::padded, 16},
                     device(), opencl_c));
  add(winograd(winograd_layer, 4,
               {Lanes::channels, 8, 12, 1, Packing::plane, View::storage, Rows::looped, Border::padded, 8}, device(),
               opencl_c));
  add(depthwise(depth, {0, 0, 8, 4, View::storage}, device(), opencl_c));
  add(depthwise(depth, {0, 2, 0, 0, View::storage}, device(), opencl_c));
  add(implicit_product(layer(), {Staging::shared, 4, 4, 8, 16, 8}, device(), opencl_c));
  add(gemm_blocked(product, {8, 2, 16, View::storage}, device(), opencl_c));
  return made;
}

}  // namespace

TEST_CASE("generated: every family compiles for gfx1100 and gfx1030 into kernels that are offered") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  std::size_t compiled_passes = 0;
  for (const KernelPlan& plan : plans()) {
    std::vector<Pass> passes = plan.prepare;
    passes.insert(passes.end(), plan.passes.begin(), plan.passes.end());
    for (const Pass& pass : passes) {
      for (const Target target : {Target::gfx1100, Target::gfx1030}) {
        INFO(plan.variant << " for " << to_string(target));
        const auto compiled = compile_kernel(*clang, pass.source, plan.variant, target, soon());
        INFO((compiled ? compiled->said : compiled.error().text()));
        REQUIRE(compiled.has_value());
        CHECK(compiled->said.empty());
        const auto object = read_code_object(compiled->object);
        REQUIRE(object.has_value());
        const KernelCode* const kernel = find_kernel(*object, pass.source.entry);
        REQUIRE(kernel != nullptr);
        CHECK(check_dispatch(*object, *kernel).text() == "ok");
        CHECK(kernel->required_workgroup == pass.source.workgroup);
        CHECK(kernel->arguments.size() == pass.source.bindings.size());
        ++compiled_passes;
      }
    }
  }
  CHECK(compiled_passes >= 2 * 5);
}

}  // namespace kiln::amdgpu_pm4
