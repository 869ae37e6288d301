#include <catch2/catch.hpp>

#include <fstream>
#include <random>
#include <sstream>

#include "cpu/cpu_under_test.hpp"

namespace kiln::cpu_test {
namespace {

void check_right(Device& device, const Conv2dSpec& spec, std::uint64_t seed) {
  INFO(canonical_text(spec));
  Job job(device, spec, seed);
  const Status status = job.run();
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(job.difference() == "");
}

Conv2dSpec conv(std::int64_t c, std::int64_t extent, std::int64_t k, std::int64_t taps) {
  Conv2dSpec spec;
  spec.c = c, spec.h = extent, spec.w = extent + 1, spec.k = k, spec.r = taps, spec.s = taps;
  spec.pad_y = spec.pad_x = taps / 2;
  return spec;
}

Conv2dSpec random_conv(std::mt19937& random) {
  const auto one_to = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  Conv2dSpec spec;
  spec.n = one_to(3);
  spec.groups = one_to(4) == 1 ? one_to(17) : 1;
  const bool depthwise = spec.groups > 1 && one_to(2) == 1;
  spec.c = spec.groups * (depthwise ? 1 : one_to(19));
  spec.k = spec.groups * (depthwise ? one_to(2) : one_to(21));
  spec.r = one_to(5), spec.s = one_to(5);
  spec.dilation_y = one_to(4) == 1 ? one_to(3) : 1;
  spec.dilation_x = one_to(4) == 1 ? one_to(3) : 1;
  spec.stride_y = one_to(3), spec.stride_x = one_to(3);
  spec.pad_y = one_to(4) - 1, spec.pad_x = one_to(4) - 1;
  spec.h = spec.dilation_y * (spec.r - 1) + one_to(17);
  spec.w = spec.dilation_x * (spec.s - 1) + one_to(17);
  spec.bias = one_to(2) == 1 ? Bias::per_channel : Bias::none;
  spec.activation = one_to(2) == 1 ? Activation::relu : Activation::none;
  return spec;
}

}  // namespace

TEST_CASE("random convolutions are right, whichever layout they run in") {
  for (const std::string layout : {"auto", "nChw16c", "nhwc", "nchw"}) {
    const OpenedCpu cpu({{"layout", layout}, {"tuning_ms", std::int64_t{1}}});
    std::mt19937 random(7);
    for (std::uint64_t i = 0; i < 300; ++i) {
      INFO("layout " << layout << ", shape " << i);
      check_right(*cpu.device, random_conv(random), i);
    }
  }
}

TEST_CASE("bias, relu, groups, depthwise, dilation and pointwise strides") {
  Device& device = *shared_cpu().device;
  Conv2dSpec spec = conv(16, 20, 32, 3);
  spec.bias = Bias::per_channel;
  spec.activation = Activation::relu;
  check_right(device, spec, 1);
  spec.groups = 4;
  check_right(device, spec, 2);
  spec = conv(24, 17, 24, 3);
  spec.groups = 24;
  spec.stride_y = spec.stride_x = 2;
  check_right(device, spec, 3);
  spec = conv(8, 25, 16, 3);
  spec.dilation_y = 2, spec.dilation_x = 3;
  spec.pad_y = 2, spec.pad_x = 3;
  check_right(device, spec, 4);
  spec = conv(48, 14, 40, 1);
  spec.bias = Bias::per_channel;
  spec.activation = Activation::relu;
  check_right(device, spec, 5);
  spec.n = 3;
  check_right(device, spec, 6);
  spec.stride_y = 2, spec.stride_x = 3;
  check_right(device, spec, 7);
}

TEST_CASE("Winograd's class of accuracy is kept") {
  Device& device = *shared_cpu().device;
  for (const std::int64_t extent : {12, 21, 28}) {
    Conv2dSpec spec = conv(32, extent, 48, 3);
    spec.accuracy = Accuracy::winograd;
    spec.bias = Bias::per_channel;
    check_right(device, spec, 8);
  }
}

}  // namespace kiln::cpu_test
