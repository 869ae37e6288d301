// The plans and the spaces of the families are the stored ones, line by line: a change of a text, a grid, a binding, an
// order or a cost shows which variant or shape it concerns. KILN_UPDATE_GOLDEN=1 stores those of today.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/family_plans.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/space_samples.hpp"

namespace kiln::dynamic_shaders {
namespace {

using GoldenLines = std::vector<std::string>;

// FNV-1a with 64 bits.
class Fnv {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    value_ = (value_ ^ 0x100u) * 0x100000001b3u;  // so that ("a", "bc") differs from ("ab", "c")
  }
  void add(std::uint64_t number) { add(std::to_string(number)); }
  std::string text() const {
    char digits[20];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value_));
    return digits;
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::string triple_text(const std::array<std::uint32_t, 3>& triple) {
  return std::to_string(triple[0]) + "x" + std::to_string(triple[1]) + "x" + std::to_string(triple[2]);
}

std::string digest_of_pass(const Pass& pass) {
  Fnv digest;
  digest.add(pass.source.text);
  digest.add(pass.source.entry);
  for (const Define& define : pass.source.constants) {
    digest.add(define.name);
    digest.add(define.text);
  }
  for (const Access access : pass.source.bindings) digest.add(static_cast<std::uint64_t>(access));
  for (const View view : pass.source.views) digest.add(static_cast<std::uint64_t>(view));
  for (const Binding& binding : pass.bindings) {
    digest.add(static_cast<std::uint64_t>(binding.source));
    digest.add(binding.index);
  }
  digest.add(triple_text(pass.source.workgroup));
  return digest.text();
}

std::string line_of_plan(const KernelPlan& plan) {
  std::string line = plan.variant;
  for (const ScratchDecl& scratch : plan.scratch) line += " scratch " + std::to_string(scratch.bytes);
  for (const PreparedDecl& prepared : plan.prepared) {
    Fnv layout;
    layout.add(prepared.layout);
    line +=
        " prepared " + std::to_string(prepared.bytes) + " of " + std::to_string(prepared.tensor) + " " + layout.text();
  }
  for (const auto& constant : plan.constants) {
    const std::span<const std::byte> bytes = constant->tensor().bytes();
    Fnv digest;
    digest.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    line += " constant " + digest.text();
  }
  for (const Pass& pass : passes_of({plan})) line += " pass " + triple_text(pass.grid) + " " + digest_of_pass(pass);
  return line;
}

// The lines of the stored file, or those of today where they are to be stored.
GoldenLines stored_lines(const std::string& name, const GoldenLines& today) {
  const std::string path = KILN_SOURCE_DIR "/tests/golden/glsl/" + name;
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(path);
    for (const std::string& line : today) file << line << "\n";
  }
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file.good());
  GoldenLines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void check_stored(const std::string& name, const GoldenLines& today) {
  const GoldenLines expected = stored_lines(name, today);
  for (std::size_t i = 0; i < std::min(expected.size(), today.size()); ++i) CHECK(today[i] == expected[i]);
  CHECK(today.size() == expected.size());
}

template <class Spec>
std::string space_line(const Spec& spec, const std::string& device_name, const DeviceInfo& device,
                       const std::vector<Candidate>& space) {
  Fnv order;
  double predicted = 0, build = 0;
  for (const Candidate& point : space) {
    order.add(point.variant);
    predicted += point.predicted;
    build += point.build;
  }
  char sums[80];
  std::snprintf(sums, sizeof sums, "%.9g %.9g", predicted, build);
  return canonical_text(KernelSpec(spec)) + " on " + device_name + ": " + std::to_string(space.size()) + " " +
         order.text() + " " + sums + " " + default_variant(spec, device);
}

std::vector<std::pair<std::string, DeviceInfo>> golden_devices() {
  DeviceInfo viewless = sharing_device(), wide = sharing_device(), gpu = sharing_device(), rdna = sharing_device();
  viewless.max_texel_bindings = viewless.max_image_bindings = 0;
  viewless.max_view_texels = 0;
  wide.simd_lanes = 16;
  gpu.kind = rdna.kind = DeviceKind::gpu;
  gpu.simd_lanes = rdna.simd_lanes = 32;
  rdna.device_identity = {{"isa", "gfx1100"}};
  DeviceInfo small = viewless;
  small.max_workgroup = {64, 1, 1}, small.max_workgroup_lanes = 64;
  small.max_shared_bytes = 4096;
  small.max_grid = {1000, 1000, 64};
  small.max_buffer_bytes = 1 << 22;
  return {{"llvmpipe", sharing_device()},
          {"llvmpipe of 512 bits", wide},
          {"one without views", viewless},
          {"a GPU", gpu},
          {"gfx1100", rdna},
          {"a small one", small}};
}

std::vector<Conv2dSpec> golden_layers() {
  Conv2dSpec first = layer(32, 56, 7, 2), tiled = layer(32, 14, 3), odd = layer(10, 13, 3), batch = layer(16, 28, 3);
  first.c = 3;
  tiled.accuracy = Accuracy::winograd;
  odd.h = 11, odd.w = 13, odd.dilation_x = 2, odd.stride_y = 2, odd.c = 7, odd.n = 2;
  batch.n = 8;
  batch.bias = Bias::per_channel, batch.activation = Activation::relu;
  return {resnet_layer(),
          depthwise_layer(),
          first,
          tiled,
          odd,
          batch,
          layer(64, 14, 1),
          layer(64, 28, 1, 2),
          layer(32, 14, 3, 1, 4),
          layer(32, 28, 3, 1, 32),
          layer(8, 7, 5, 2, 8),
          layer(4, 2, 3),
          layer(1, 1, 1)};
}

std::vector<GemmSpec> golden_products() {
  std::vector<GemmSpec> specs{small_gemm()};
  constexpr std::int64_t extents[][3] = {{1, 4, 8},    {1, 1, 1},   {3, 5, 7},    {4, 8, 4},        {6, 40, 16},
                                         {16, 16, 16}, {24, 64, 9}, {64, 64, 64}, {256, 1000, 512}, {2, 33, 480001}};
  for (const auto& [m, n, k] : extents) {
    GemmSpec spec;
    spec.m = m, spec.n = n, spec.k = k;
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace

TEST_CASE("golden: the plans of every family in both dialects are the stored ones") {
  GoldenLines lines;
  for (const Dialect dialect : {Dialect::glsl, Dialect::opencl_c}) {
    for (const KernelPlan& plan : plans_of_families(dialect)) {
      lines.push_back(std::string(to_string(dialect)) + " " + line_of_plan(plan));
    }
  }
  check_stored("plans.txt", lines);
}

TEST_CASE("golden: the spaces of variants have the stored order, costs and first choice") {
  GoldenLines lines;
  for (const auto& [name, device] : golden_devices()) {
    for (const Conv2dSpec& spec : golden_layers())
      lines.push_back(space_line(spec, name, device, conv_space(spec, device)));
    for (const GemmSpec& spec : golden_products())
      lines.push_back(space_line(spec, name, device, gemm_space(spec, device)));
  }
  check_stored("spaces.txt", lines);
}

TEST_CASE("space: a product of few columns has a point of the least workgroup") {
  const GemmSpec row{1, 4, 8};
  std::vector<std::string> blocked;
  for (const Candidate& point : gemm_space(row, sample_device())) {
    if (point.variant.starts_with("gemm/blocked:")) blocked.push_back(point.variant);
  }
  std::ranges::sort(blocked);
  // One quad of columns: larger workgroups have lanes without work.
  CHECK(blocked == std::vector<std::string>{"gemm/blocked:rows=1,quads=1,view=storage,workgroup=8",
                                            "gemm/blocked:rows=1,quads=2,view=storage,workgroup=8",
                                            "gemm/blocked:rows=1,quads=4,view=storage,workgroup=8"});
}

}  // namespace kiln::dynamic_shaders
