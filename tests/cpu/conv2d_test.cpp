#include <catch2/catch.hpp>

#include "cpu/cpu_under_test.hpp"
#include "support/conv_cases.hpp"

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

class Sink final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message) noexcept override { text += message; }
  std::string text;
};

// What the device says of a spec's candidates: it names each when it has timed them.
std::string candidates_of(Conv2dSpec spec, Accuracy accuracy) {
  Sink sink;
  const OpenedCpu cpu({{"tuning_ms", std::int64_t{2}}}, {&sink, LogLevel::info});
  spec.accuracy = accuracy;
  check_right(*cpu.device, spec, 8);
  return sink.text;
}

void check_random_cases(const PluginSettings& settings, std::size_t count, std::uint64_t seed) {
  const OpenedCpu cpu(settings);
  std::uint64_t at = 0;
  for (const Conv2dSpec& spec : support::random_cases(count, seed, 400000)) {
    INFO("shape " << at);
    check_right(*cpu.device, spec, at++);
  }
}

}  // namespace

TEST_CASE("every layer of the workload tables is right") {
  const OpenedCpu cpu({{"tuning_ms", std::int64_t{5}}});
  const std::string table = GENERATE("resnet50", "mobilenet_v2", "vgg16", "prior_system");
  const auto layers = support::workload_cases(table);
  REQUIRE(layers.size() >= 4);
  for (const support::NamedConv& layer : layers) {
    INFO(table << ", layer " << layer.name);
    check_right(*cpu.device, layer.spec, 3);
  }
}

TEST_CASE("random convolutions are right by the layout that timing chooses") {
  check_random_cases({{"tuning_ms", std::int64_t{1}}}, 300, 1);
}

TEST_CASE("random convolutions are right in every layout") {
  const std::string layout = GENERATE("nChw16c", "nchw>nChw16c", "nhwc", "nchw", "nChw8c", "product");
  INFO("layout " << layout);
  check_random_cases({{"layout", layout}, {"tuning_ms", std::int64_t{0}}, {"threads", std::int64_t{1}}}, 100, 2);
}

TEST_CASE("random convolutions are right in tiles") {
  const std::int64_t threads = GENERATE(2, 3);
  check_random_cases({{"tuning_ms", std::int64_t{0}}, {"threads", threads}}, 100, 3);
}

TEST_CASE("tiles of channels are right, where there are too few rows for tiles of rows") {
  const OpenedCpu cpu({{"tuning_ms", std::int64_t{0}}, {"threads", std::int64_t{2}}});
  Conv2dSpec spec = conv(24, 5, 75, 3);  // the last block of channels is not full
  spec.bias = Bias::per_channel;
  check_right(*cpu.device, spec, 1);
  spec.n = 2;
  check_right(*cpu.device, spec, 2);
  spec.r = spec.s = 1;
  spec.pad_y = spec.pad_x = 0;
  check_right(*cpu.device, spec, 3);
  spec.h = spec.w = 10;
  spec.stride_y = spec.stride_x = 2;
  check_right(*cpu.device, spec, 4);
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

TEST_CASE("Winograd is a candidate only where the job's class of accuracy allows it") {
  for (const std::int64_t extent : {14, 28, 56}) {
    const Conv2dSpec spec = conv(64, extent, 64, 3);
    const std::string direct = candidates_of(spec, Accuracy::direct);
    CHECK_THAT(direct, Catch::Contains("chosen ") && Catch::Contains("nhwc"));
    CHECK_THAT(direct, !Catch::Contains("wino", Catch::CaseSensitive::No));
    // The class that allows it shows that the device would have named it.
    if (candidates_of(spec, Accuracy::winograd).find("winograd ") == std::string::npos) {
      WARN("skipped: oneDNN has no Winograd here for " << canonical_text(spec));
    }
  }
}

}  // namespace kiln::cpu_test
