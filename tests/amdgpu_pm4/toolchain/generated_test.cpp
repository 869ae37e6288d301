// What the generator writes in OpenCL C, of every family, compiles for both generations without a warning, into kernels
// that are offered.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "dynamic_shaders/family_plans.hpp"

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

// A small shape of every variant, and layers of a network by blocks that fill a lane's registers.
std::vector<KernelPlan> plans() {
  std::vector<FamilySample> samples;
  const std::vector<FamilySample> small = small_samples();
  for (std::size_t i = 0; i < small.size(); i += shapes_of_variant) samples.push_back(small[i]);
  Conv2dSpec winograd_layer = layer(), depth = layer();
  winograd_layer.accuracy = Accuracy::winograd;
  depth.groups = 64;
  GemmSpec product;
  product.m = 64, product.n = 64, product.k = 64;
  product.bias = Bias::per_channel, product.activation = Activation::relu;
  const std::string blocked =
      "direct/blocked:lanes=channels,k=4,x=8,y=4,packing=pixels,view=storage,rows=unrolled,border=padded,workgroup=16";
  const std::string tiled =
      "winograd/f4:lanes=channels,k=8,x=12,y=1,packing=plane,view=storage,rows=looped,border=padded,workgroup=8";
  samples.insert(samples.end(), {{layer(), blocked},
                                 {winograd_layer, tiled},
                                 {depth, "depthwise/blocked:x=8,y=4,view=storage"},
                                 {depth, "depthwise/bands:rows=2,view=storage"},
                                 {layer(), "implicit/shared:k=4,pixels=4,lanes_k=8,lanes_p=16,depth=8"},
                                 {product, "gemm/blocked:rows=8,quads=2,view=storage,workgroup=16"}});
  std::vector<KernelPlan> made;
  for (const FamilySample& sample : samples) made.push_back(plan_of_sample(sample, device(), Dialect::opencl_c));
  return made;
}

}  // namespace

TEST_CASE("generated: every family compiles for gfx1100 and gfx1030 into kernels that are offered") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  std::size_t compiled_passes = 0;
  const std::vector<KernelPlan> all = plans();
  for (const KernelPlan& plan : all) {
    for (const Pass& pass : passes_of({plan})) {
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
  CHECK(compiled_passes >= 2 * all.size());
}

}  // namespace kiln::amdgpu_pm4
