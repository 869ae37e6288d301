// What a [plugin.simulated] section makes of the device, through the plugin's own door.
#include "support/plugin_under_test.hpp"

#include <catch2/catch.hpp>

#include <cstring>

namespace kiln::support {
namespace {

// b1 = b0 * 2 over 64 floats on one device, and what it took of the device's clock.
class Doubling {
 public:
  explicit Doubling(const PluginSettings& settings) : plugin_("simulated", settings, KILN_FIXTURE_DIR) {
    device_ = plugin_.open("simulated:0");
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text = "scale";
    source.constants = {{"FACTOR", "2"}};
    program_ = device_->build(source).value();
    input_ = device_->create_buffer({bytes, BufferUsage::upload, {}, -1}).value();
    output_ = device_->create_buffer({bytes, BufferUsage::readback, {}, -1}).value();
  }

  Status upload() { return input_->write(0, std::as_bytes(std::span(ones_))); }
  Result<FenceResult> run(Deadline deadline = Deadline::never()) {
    Buffer* const bound[] = {input_.get(), output_.get()};
    const PassLaunch launch{program_.get(), bound, {1, 1, 1}};
    const auto value = device_->submit({std::span(&launch, 1)});
    if (!value) return value.error();
    return device_->wait(*value, deadline);
  }
  std::vector<float> result() {
    std::vector<float> values(64);
    REQUIRE(output_->read(0, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }
  Device& device() { return *device_; }

  static constexpr std::uint64_t bytes = 64 * sizeof(float);

 private:
  PluginUnderTest plugin_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Buffer> input_, output_;
  std::vector<float> ones_ = std::vector<float>(64, 1.0f);
};

const std::vector<float> twos(64, 2.0f);

}  // namespace

TEST_CASE("simulated: each stage costs a + b·bytes on the device's clock", "[simulated]") {
  Doubling job({{"upload_fixed_ns", 100.0},
                {"upload_byte_ns", 2.0},
                {"device_fixed_ns", 1000.0},
                {"device_byte_ns", 1.0},
                {"readback_fixed_ns", 10.0},
                {"readback_byte_ns", 0.5}});
  const std::uint64_t start = job.device().clock_ns();
  REQUIRE(job.upload().ok());
  CHECK(job.device().clock_ns() - start == 100 + 2 * 256);
  const auto fence = job.run();
  REQUIRE(fence);
  CHECK(fence->device_ns == 1000 + 2 * 256);  // two buffers are bound
  CHECK(fence->begun_ns == start + 612);
  CHECK(job.device().clock_ns() == start + 612 + 1512);
  CHECK(job.result() == twos);
  CHECK(job.device().clock_ns() == start + 612 + 1512 + 138);
}

TEST_CASE("simulated: what the script says happens to the submission it names", "[simulated]") {
  SECTION("slower for a while") {
    Doubling job({{"device_fixed_ns", 100.0},
                  {"slow_from", std::int64_t{2}},
                  {"slow_until", std::int64_t{3}},
                  {"slow_factor", 4.0}});
    CHECK(job.run()->device_ns == 100);
    CHECK(job.run()->device_ns == 400);
    CHECK(job.run()->device_ns == 100);
  }
  SECTION("never ends") {
    Doubling job({{"hang_at", std::int64_t{1}}});
    const auto hung = job.run(Deadline::after(std::chrono::milliseconds(5)));
    REQUIRE_FALSE(hung);
    CHECK(hung.error().code == StatusCode::timeout);
  }
  SECTION("loses the device") {
    Doubling job({{"lose_at", std::int64_t{2}}});
    REQUIRE(job.run());
    CHECK(job.run().error().code == StatusCode::device_lost);
    CHECK(job.upload().code == StatusCode::device_lost);
    CHECK(job.device().create_buffer({64, BufferUsage::upload, {}, -1}).error().code == StatusCode::device_lost);
  }
  SECTION("fails") {
    Doubling job({{"fail_at", std::int64_t{1}}});
    CHECK(job.run().error().code == StatusCode::internal);
    CHECK(job.run());
  }
  SECTION("a wrong bit") {
    Doubling job({{"wrong_at", std::int64_t{2}}});
    REQUIRE(job.upload().ok());
    REQUIRE(job.run());
    CHECK(job.result() == twos);
    REQUIRE(job.run());
    CHECK(job.result() != twos);
  }
  SECTION("out of memory") {
    Doubling job({{"memory_bytes", std::int64_t{1024}}});
    const auto refused = job.device().create_buffer({1024, BufferUsage::storage, {}, -1});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == StatusCode::unavailable);
    CHECK_THAT(refused.error().message, Catch::Contains("512 of 1024 are free"));
  }
}

TEST_CASE("simulated: noise is the same for the same seed", "[simulated]") {
  const auto times = [](std::int64_t seed) {
    Doubling job({{"device_fixed_ns", 1e6}, {"noise", 0.1}, {"seed", seed}});
    std::vector<std::uint64_t> ns;
    for (int i = 0; i < 20; ++i) ns.push_back(job.run()->device_ns);
    return ns;
  };
  CHECK(times(3) == times(3));
  CHECK(times(3) != times(4));
}

TEST_CASE("simulated: devices of one driver differ by their factor and share a clock", "[simulated]") {
  PluginUnderTest plugin("simulated", {{"devices", std::int64_t{2}}, {"slower", std::vector<std::string>{"1", "2.5"}}},
                         KILN_FIXTURE_DIR);
  CHECK(plugin.driver().enumerate().size() == 2);
  CHECK(plugin.open("simulated:1")->clock_ns() == plugin.open("simulated:0")->clock_ns());
  CHECK_THROWS_WITH(plugin.open("simulated:2"), Catch::Contains("no such device"));
}

}  // namespace kiln::support
