// The families in OpenCL C: the same description as for GLSL, in the other dialect. Where a compiler for it is
// installed, it says whether the text is OpenCL C.
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "dynamic_shaders/families/depthwise/depthwise.hpp"
#include "dynamic_shaders/families/direct_blocked.hpp"
#include "dynamic_shaders/families/direct_plain.hpp"
#include "dynamic_shaders/families/product/gemm_blocked.hpp"
#include "dynamic_shaders/families/product/gemm_plain.hpp"
#include "dynamic_shaders/families/product/implicit.hpp"
#include "dynamic_shaders/families/winograd/winograd.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

DeviceInfo opencl_device() {
  DeviceInfo device = sample_device();
  device.max_bindings = 16;
  device.max_texel_bindings = device.max_image_bindings = 8;
  device.max_view_texels = 1u << 27;
  device.max_shared_bytes = 32768;
  return device;
}

std::vector<KernelPlan> plans_in(Dialect dialect) {
  Conv2dSpec layer = resnet_layer();
  layer.bias = Bias::per_channel, layer.activation = Activation::relu;
  Conv2dSpec strided = layer;
  strided.stride_y = strided.stride_x = 2, strided.groups = 2;
  Conv2dSpec winograd_layer = layer;
  winograd_layer.accuracy = Accuracy::winograd;
  Conv2dSpec depth = layer;
  depth.groups = depth.c = depth.k = 32;
  Conv2dSpec small = depth;
  small.h = small.w = 7;
  const DeviceInfo device = opencl_device();
  std::vector<KernelPlan> plans;
  const auto add = [&plans](Result<KernelPlan> plan) {
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    plans.push_back(std::move(*plan));
  };
  add(direct_plain(strided, device, dialect));
  add(direct_blocked(layer,
                     {Lanes::channels, 4, 8, 4, Packing::pixels, View::texels, Rows::unrolled, Border::padded, 16},
                     device, dialect));
  add(direct_blocked(strided,
                     {Lanes::places, 8, 7, 2, Packing::channels, View::image, Rows::looped, Border::guarded, 16},
                     device, dialect));
  add(winograd(winograd_layer, 4,
               {Lanes::channels, 8, 12, 1, Packing::plane, View::texels, Rows::looped, Border::padded, 8}, device,
               dialect));
  add(depthwise(depth, {0, 0, 8, 4, View::texels}, device, dialect));
  add(depthwise(depth, {0, 2, 0, 0, View::texels}, device, dialect));
  add(implicit_product(strided, {Staging::registers, 8, 2, 4, 16, 4}, device, dialect));
  add(implicit_product(layer, {Staging::shared, 4, 4, 8, 16, 8}, device, dialect));
  GemmSpec product = small_gemm();
  product.bias = Bias::per_channel, product.activation = Activation::relu;
  add(gemm_plain(product, device, dialect));
  add(gemm_blocked(product, {8, 2, 16, View::texels}, device, dialect));
  product.n = 30, product.k = 21;
  add(gemm_blocked(product, {4, 1, 8, View::storage}, device, dialect));
  add(depthwise(small, {4, 0, 0, 0, View::storage}, device, dialect));
  for (const KernelSpec& spec : {KernelSpec(layer), KernelSpec(strided), KernelSpec(depth), KernelSpec(product)}) {
    for (KernelPlan& plan : Generator().stand_ins(spec, device, dialect)) plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<Pass> passes_of(const std::vector<KernelPlan>& plans) {
  std::vector<Pass> passes;
  for (const KernelPlan& plan : plans) {
    passes.insert(passes.end(), plan.prepare.begin(), plan.prepare.end());
    passes.insert(passes.end(), plan.passes.begin(), plan.passes.end());
  }
  return passes;
}

// How the compiler judges the text; empty: it takes it.
std::string judgement(const std::string& text) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "kiln-opencl-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/kernel.cl") << text;
  const std::string command = "clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Werror '" +
                              folder + "/kernel.cl' 2>&1";
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) said.append(part.data(), got);
  const int status = pclose(pipe);
  fs::remove_all(folder);
  return status == 0 ? std::string() : "status " + std::to_string(status) + "\n" + said.substr(0, 2000);
}

}  // namespace

TEST_CASE("opencl: every family's plan is valid, and nothing of GLSL is left in it") {
  const std::regex glsl(R"(\b(vec4|gl_\w+|texelFetch|imageLoad|layout|uniform|buffer|void main)\b|#version)");
  for (const Pass& pass : passes_of(plans_in(Dialect::opencl_c))) {
    CHECK(pass.source.dialect == Dialect::opencl_c);
    CHECK(pass.source.entry == "kiln_kernel");
    CHECK(pass.source.views.empty());
    std::smatch found;
    const bool left = std::regex_search(pass.source.text, found, glsl);
    INFO((left ? found.str() : std::string()));
    CHECK_FALSE(left);
    CHECK_THAT(pass.source.text, Catch::Contains("__kernel __attribute__((reqd_work_group_size("));
  }
  for (const KernelPlan& plan : plans_in(Dialect::opencl_c)) CHECK(validate(plan).text() == "ok");
}

TEST_CASE("opencl: both dialects have the same passes, bindings and geometry") {
  const auto glsl = passes_of(plans_in(Dialect::glsl)), opencl = passes_of(plans_in(Dialect::opencl_c));
  REQUIRE(glsl.size() == opencl.size());
  for (std::size_t i = 0; i < glsl.size(); ++i) {
    CHECK(glsl[i].source.bindings == opencl[i].source.bindings);
    CHECK(glsl[i].source.workgroup == opencl[i].source.workgroup);
    CHECK(glsl[i].grid == opencl[i].grid);
  }
}

TEST_CASE("opencl: a compiler takes every text") {
  if (std::system("clang --version > /dev/null 2>&1") != 0) {
    WARN("skipped: no clang to judge OpenCL C");
    return;
  }
  std::string all;
  std::size_t number = 0;
  for (const Pass& pass : passes_of(plans_in(Dialect::opencl_c))) {
    std::string text = pass.source.text;
    const std::string entry = "kiln_kernel(";
    text.replace(text.find(entry), entry.size(), "kernel_" + std::to_string(number++) + "(");
    all += text;
  }
  CHECK(judgement(all) == "");
  CHECK(judgement("__kernel void broken() { float4 a = 1.0.xyzq; }") != "");
}

}  // namespace kiln::dynamic_shaders
