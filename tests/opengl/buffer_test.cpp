#include <catch2/catch.hpp>
#include <limits>
#include <numeric>

#include "opengl/support/kernels.hpp"

namespace kiln::support {
namespace {

PluginSettings with_mapping(const char* mapping) { return {{"persistent_mapping", std::string(mapping)}}; }

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

}  // namespace

TEST_CASE("opengl: bytes reach buffers and come back in every mode of transfer", "[opengl][buffer]") {
  for (const char* mapping : {"auto", "always", "staging", "never"}) {
    INFO("persistent_mapping = " << mapping);
    OpenGl gl(with_mapping(mapping));
    if (!gl.usable()) return;
    Device& device = gl.device();
    const auto program = build(device, saxpy());
    // Larger than a staging area, and no multiple of it.
    const std::size_t count = (std::size_t{9} << 20) / sizeof(float) + 17;
    const std::vector<float> values = ramp(count);
    const auto x = buffer_of(device, std::vector<float>(count, 0.0f));
    const auto y = buffer_of(device, std::vector<float>(count, 1.0f), BufferUsage::readback);
    const auto stored = buffer_of(device, std::vector<float>(count, 0.0f), BufferUsage::storage);
    for (const auto& written : {x.get(), stored.get()}) {
      REQUIRE(written->write(0, std::as_bytes(std::span(values))).ok());
      CHECK(contents(*written) == values);
    }
    REQUIRE(run(device, *program, {x.get(), y.get()}, {static_cast<std::uint32_t>(count / 64 + 1), 1, 1}).has_value());
    const std::vector<float> out = contents(*y);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += out[i] != 2.5f * values[i] + 1.0f ? 1 : 0;
    CHECK(wrong == 0);
    // A second write and run: what a mapping or a staging half held before does not come back.
    const auto small = buffer_of(device, {1.0f, 2.0f, 3.0f});
    REQUIRE(small->write(4, std::as_bytes(std::span(values).first(1))).ok());
    CHECK(contents(*small) == std::vector<float>{1.0f, 0.5f, 3.0f});
    const bool maps = std::string(mapping) == "always" ||
                      (std::string(mapping) == "auto" && device.info().kind == DeviceKind::software);
    CHECK((small->mapped().size() == 12) == maps);
    CHECK(small->mapped().empty() == !maps);
  }
}

TEST_CASE("opengl: a mapped buffer's memory is what programs see, both ways", "[opengl][buffer]") {
  OpenGl gl(with_mapping("always"));
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, std::vector<float>(64, 0.0f));
  const auto y = buffer_of(device, std::vector<float>(64, 0.0f), BufferUsage::readback);
  REQUIRE(x->mapped().size() == x->bytes());
  const std::vector<float> ones(64, 1.0f);
  for (const float value : {1.0f, 2.0f}) {
    auto* floats = reinterpret_cast<float*>(x->mapped().data());
    std::fill(floats, floats + 64, value);
    REQUIRE(y->write(0, std::as_bytes(std::span(ones))).ok());
    REQUIRE(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
    CHECK(reinterpret_cast<const float*>(y->mapped().data())[63] == 2.5f * value + 1.0f);
  }
}

TEST_CASE("opengl: a buffer that was a part of another takes no other with it", "[opengl][buffer]") {
  const std::vector<float> values = ramp(64);
  for (const char* mapping : {"always", "staging", "never"}) {
    INFO("persistent_mapping = " << mapping);
    OpenGl gl(with_mapping(mapping));
    if (!gl.usable()) return;
    Device& device = gl.device();
    std::vector<std::unique_ptr<Buffer>> first;  // the names of a new context count from 1
    for (int i = 0; i < 4; ++i) first.push_back(buffer_of(device, values));
    const auto whole = buffer_of(device, values, BufferUsage::storage);
    BufferDesc desc;
    desc.bytes = 64;
    desc.usage = BufferUsage::storage;
    desc.part_of = whole.get();
    REQUIRE(device.create_buffer(desc).has_value());
    REQUIRE(whole->write(0, std::as_bytes(std::span(values))).ok());
    CHECK(contents(*whole) == values);
    for (const auto& buffer : first) CHECK(contents(*buffer) == values);
  }
}

TEST_CASE("opengl: a range that leaves the buffer is refused in every mode", "[opengl][buffer]") {
  for (const char* mapping : {"always", "staging", "never"}) {
    OpenGl gl(with_mapping(mapping));
    if (!gl.usable()) return;
    const auto buffer = buffer_of(gl.device(), {1.0f, 2.0f});
    std::byte bytes[8] = {};
    for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{9}, std::numeric_limits<std::uint64_t>::max()}) {
      const Status written = buffer->write(offset, bytes);
      CHECK(written.code == StatusCode::invalid_argument);
      CHECK_THAT(written.message, Catch::Contains("buffer of 8 bytes") && Catch::Contains(std::to_string(offset)));
      CHECK(buffer->read(offset, bytes).code == StatusCode::invalid_argument);
    }
    CHECK(contents(*buffer) == std::vector<float>{1.0f, 2.0f});
  }
}

TEST_CASE("opengl: a buffer that cannot be is refused by type", "[opengl][buffer]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto refused = [&](const BufferDesc& desc) {
    const auto buffer = device.create_buffer(desc);
    REQUIRE_FALSE(buffer.has_value());
    CHECK_THAT(buffer.error().message, Catch::Contains("opengl:0"));
    return buffer.error().code;
  };
  alignas(64) std::byte host[64];
  CHECK(refused({64, BufferUsage::upload, host, -1}) == StatusCode::unsupported);
  CHECK(refused({64, BufferUsage::upload, {}, 0}) == StatusCode::unsupported);
  CHECK(refused({64, BufferUsage::invalid, {}, -1}) == StatusCode::invalid_argument);
  CHECK(refused({0, BufferUsage::upload, {}, -1}) == StatusCode::invalid_argument);
  CHECK(refused({device.info().max_buffer_bytes + 1, BufferUsage::upload, {}, -1}) == StatusCode::invalid_argument);
  const auto buffer = buffer_of(device, {1.0f});
  CHECK(buffer->export_fd().error().code == StatusCode::unsupported);
}

}  // namespace kiln::support
