#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  REQUIRE(pipe != nullptr);
  std::string all;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe.get())) all.append(part.data(), got);
  return all;
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string source_of(const KernelSpec& spec, std::string_view variant) {
  const auto plan = Generator().generate_variant(spec, sample_device(), Dialect::glsl, variant);
  REQUIRE(plan.has_value());
  REQUIRE(plan->passes.size() == 1);
  return plan->passes.front().source.text;
}

}  // namespace

TEST_CASE("dynamic_shaders: the same spec gives the same bytes, here and in another process") {
  const std::string here = all_sources();
  REQUIRE(here.starts_with("#version 430\n"));
  CHECK(here == all_sources());
  const std::string program = "'" KILN_BINARY_DIR "/tests/kiln_print_sources'";
  CHECK(here == output_of(program));
  CHECK(here == output_of("LC_ALL=de_DE.UTF-8 MALLOC_PERTURB_=165 TZ=Asia/Tokyo " + program));
}

TEST_CASE("dynamic_shaders: sources are those kept as golden") {
  const std::string folder = KILN_SOURCE_DIR "/tests/golden/glsl/";
  CHECK(source_of(resnet_layer(), "direct/plain") == contents_of(folder + "conv2d_resnet_layer.comp"));
  CHECK(source_of(depthwise_layer(), "direct/plain") == contents_of(folder + "conv2d_depthwise_layer.comp"));
  CHECK(source_of(small_gemm(), "gemm/plain") == contents_of(folder + "gemm_small.comp"));
  CHECK(source_of(resnet_layer(), "direct/plain@any") == contents_of(folder + "conv2d_any_shape.comp"));
  Conv2dSpec other = depthwise_layer();
  other.bias = Bias::none, other.activation = Activation::none;
  CHECK(source_of(other, "direct/plain@any") == contents_of(folder + "conv2d_any_shape.comp"));
}

}  // namespace kiln::dynamic_shaders
