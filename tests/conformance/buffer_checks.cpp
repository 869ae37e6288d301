#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "conformance/checks.hpp"

namespace kiln::conformance {
namespace {

constexpr BufferUsage usages[] = {BufferUsage::upload, BufferUsage::readback, BufferUsage::storage,
                                  BufferUsage::constant};

std::unique_ptr<Buffer> make(std::uint64_t bytes, BufferUsage usage) {
  BufferDesc desc;
  desc.bytes = bytes;
  desc.usage = usage;
  auto buffer = subject().device->create_buffer(desc);
  INFO((buffer ? std::string() : buffer.error().text()));
  REQUIRE(buffer.has_value());
  REQUIRE((*buffer)->bytes() == bytes);
  return std::move(buffer).value();
}

std::vector<float> contents(Buffer& buffer) {
  std::vector<float> values(static_cast<std::size_t>(buffer.bytes() / sizeof(float)));
  REQUIRE(buffer.read(0, bytes_of(values)).ok());
  return values;
}

}  // namespace

TEST_CASE("conformance: what is written to a buffer is read back, for every usage and size", "[conformance][buffer]") {
  if (!present()) return;
  for (const BufferUsage usage : usages) {
    for (const std::uint64_t count : {1u, 3u, 16u, 1021u, 262147u}) {
      INFO("usage " << static_cast<int>(usage) << ", " << count << " floats");
      const auto buffer = make(count * sizeof(float), usage);
      const std::vector<float> values = random_values(count, count);
      REQUIRE(buffer->write(0, bytes_of(values)).ok());
      CHECK(contents(*buffer) == values);
    }
  }
}

TEST_CASE("conformance: a part of a buffer is written and read without touching the rest", "[conformance][buffer]") {
  if (!present()) return;
  const auto buffer = make(101 * sizeof(float), BufferUsage::storage);
  std::vector<float> expected = random_values(1, 101);
  REQUIRE(buffer->write(0, bytes_of(expected)).ok());
  const std::vector<float> part = random_values(2, 13);
  REQUIRE(buffer->write(17 * sizeof(float), bytes_of(part)).ok());
  std::copy(part.begin(), part.end(), expected.begin() + 17);
  CHECK(contents(*buffer) == expected);
  std::vector<float> read(5);
  REQUIRE(buffer->read(20 * sizeof(float), bytes_of(read)).ok());
  CHECK(std::equal(read.begin(), read.end(), expected.begin() + 20));
  // Bytes, not words: a range may begin and end anywhere.
  const std::byte odd[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::byte back[3] = {};
  REQUIRE(buffer->write(7, odd).ok());
  REQUIRE(buffer->read(7, back).ok());
  CHECK(std::memcmp(odd, back, sizeof odd) == 0);
}

TEST_CASE("conformance: a buffer that is a part of another has the first bytes of its memory", "[conformance][buffer]") {
  if (!present()) return;
  const auto whole = make(40'001 * sizeof(float), BufferUsage::storage);
  BufferDesc desc;
  desc.bytes = 17'003 * sizeof(float);
  desc.usage = BufferUsage::storage;
  desc.part_of = whole.get();
  auto part = subject().device->create_buffer(desc);
  if (!subject().device->info().shares_buffers) {
    REQUIRE(!part);
    CHECK(part.error().code == StatusCode::unsupported);
    return;
  }
  INFO((part ? std::string() : part.error().text()));
  REQUIRE(part.has_value());
  REQUIRE((*part)->bytes() == desc.bytes);
  std::vector<float> expected = random_values(21, 40'001);
  REQUIRE(whole->write(0, bytes_of(expected)).ok());
  CHECK(contents(**part) == std::vector<float>(expected.begin(), expected.begin() + 17'003));
  const std::vector<float> other = random_values(22, 17'003);
  REQUIRE((*part)->write(0, bytes_of(other)).ok());
  std::copy(other.begin(), other.end(), expected.begin());
  CHECK(contents(*whole) == expected);
  part = Result<std::unique_ptr<Buffer>>(std::unique_ptr<Buffer>());  // the memory stays
  CHECK(contents(*whole) == expected);
  desc.bytes = 40'002 * sizeof(float);
  const auto larger = subject().device->create_buffer(desc);
  REQUIRE(!larger);
  CHECK(larger.error().code == StatusCode::invalid_argument);
}

TEST_CASE("conformance: a range that leaves the buffer is refused and transfers nothing", "[conformance][buffer]") {
  if (!present()) return;
  const auto buffer = make(16 * sizeof(float), BufferUsage::storage);
  const std::vector<float> values = random_values(3, 16);
  REQUIRE(buffer->write(0, bytes_of(values)).ok());
  const std::vector<float> other = random_values(4, 4);
  const std::uint64_t offsets[] = {13 * sizeof(float), 16 * sizeof(float), 17 * sizeof(float),
                                   std::numeric_limits<std::uint64_t>::max() - 7,
                                   std::numeric_limits<std::uint64_t>::max()};
  for (const std::uint64_t offset : offsets) {
    INFO("offset " << offset);
    const Status written = buffer->write(offset, bytes_of(other));
    CHECK(written.code == StatusCode::invalid_argument);
    CHECK_FALSE(written.message.empty());
    std::vector<float> untouched = other;
    const Status read = buffer->read(offset, bytes_of(untouched));
    CHECK(read.code == StatusCode::invalid_argument);
    CHECK_FALSE(read.message.empty());
    CHECK(untouched == other);
  }
  CHECK(contents(*buffer) == values);
}

TEST_CASE("conformance: an empty range is allowed up to the buffer's end", "[conformance][buffer]") {
  if (!present()) return;
  const auto buffer = make(8 * sizeof(float), BufferUsage::upload);
  const std::vector<float> values = random_values(5, 8);
  REQUIRE(buffer->write(0, bytes_of(values)).ok());
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4}, buffer->bytes()}) {
    CHECK(buffer->write(offset, {}).ok());
    CHECK(buffer->read(offset, {}).ok());
  }
  CHECK(buffer->write(buffer->bytes() + 1, {}).code == StatusCode::invalid_argument);
  CHECK(contents(*buffer) == values);
}

TEST_CASE("conformance: a buffer that cannot be is a typed error", "[conformance][buffer]") {
  if (!present()) return;
  BufferDesc without_usage;
  without_usage.bytes = 64;
  const auto nameless = subject().device->create_buffer(without_usage);
  REQUIRE_FALSE(nameless.has_value());
  CHECK(nameless.error().code == StatusCode::invalid_argument);

  BufferDesc huge;
  huge.usage = BufferUsage::storage;
  huge.bytes = std::uint64_t{1} << 60;
  const auto too_large = subject().device->create_buffer(huge);
  REQUIRE_FALSE(too_large.has_value());
  INFO(too_large.error().text());
  CHECK(is_one_of(too_large.error(), {StatusCode::invalid_argument, StatusCode::unsupported, StatusCode::unavailable}));
}

TEST_CASE("conformance: mapped memory is the buffer's contents", "[conformance][buffer]") {
  if (!present()) return;
  for (const BufferUsage usage : usages) {
    INFO("usage " << static_cast<int>(usage));
    const auto buffer = make(33 * sizeof(float), usage);
    const std::span<std::byte> mapped = buffer->mapped();
    if (mapped.empty()) continue;
    REQUIRE(mapped.size() == buffer->bytes());
    CHECK(buffer->mapped().data() == mapped.data());
    const std::vector<float> values = random_values(6, 33);
    REQUIRE(buffer->write(0, bytes_of(values)).ok());
    CHECK(std::memcmp(mapped.data(), values.data(), mapped.size()) == 0);
    const std::vector<float> others = random_values(7, 33);
    std::memcpy(mapped.data(), others.data(), mapped.size());
    CHECK(contents(*buffer) == others);
  }
}

TEST_CASE("conformance: host memory is wrapped without a copy, or refused as unsupported", "[conformance][buffer]") {
  if (!present()) return;
  constexpr std::size_t bytes = 64 * sizeof(float);
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(static_cast<std::byte*>(std::aligned_alloc(64, bytes)),
                                                                &std::free);
  const std::vector<float> values = random_values(8, 64);
  std::memcpy(memory.get(), values.data(), bytes);
  for (const BufferUsage usage : usages) {
    INFO("usage " << static_cast<int>(usage));
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = usage;
    desc.host = {memory.get(), bytes};
    auto buffer = subject().device->create_buffer(desc);
    if (!subject().device->info().wraps_host_memory) {
      REQUIRE_FALSE(buffer.has_value());
      CHECK(buffer.error().code == StatusCode::unsupported);
      continue;
    }
    REQUIRE(buffer.has_value());
    CHECK((*buffer)->mapped().data() == memory.get());
    CHECK((*buffer)->mapped().size() == bytes);
    CHECK(contents(**buffer) == values);
    const std::vector<float> part = random_values(9, 8);
    REQUIRE((*buffer)->write(0, bytes_of(part)).ok());
    CHECK(std::memcmp(memory.get(), part.data(), part.size() * sizeof(float)) == 0);
    REQUIRE((*buffer)->write(0, bytes_of(values)).ok());
  }
  std::vector<float> after(64);  // the memory is the caller's also once the buffers are gone
  std::memcpy(after.data(), memory.get(), bytes);
  CHECK(after == values);
}

TEST_CASE("conformance: a buffer is exported and imported, or both are refused as unsupported",
          "[conformance][buffer]") {
  if (!present()) return;
  const auto buffer = make(64 * sizeof(float), BufferUsage::storage);
  const std::vector<float> values = random_values(10, 64);
  REQUIRE(buffer->write(0, bytes_of(values)).ok());
  auto exported = buffer->export_fd();
  BufferDesc desc;
  desc.bytes = buffer->bytes();
  desc.usage = BufferUsage::storage;
  if (!subject().device->info().shares_memory) {
    REQUIRE_FALSE(exported.has_value());
    CHECK(exported.error().code == StatusCode::unsupported);
    desc.import_fd = 0;
    const auto imported = subject().device->create_buffer(desc);
    REQUIRE_FALSE(imported.has_value());
    CHECK(imported.error().code == StatusCode::unsupported);
    return;
  }
  REQUIRE(exported.has_value());
  desc.import_fd = exported->get();
  auto imported = subject().device->create_buffer(desc);
  REQUIRE(imported.has_value());
  *exported = UniqueFd();  // the device has a descriptor of its own
  CHECK(contents(**imported) == values);
  const std::vector<float> others = random_values(11, 64);  // one memory, seen by both
  REQUIRE((*imported)->write(0, bytes_of(others)).ok());
  CHECK(contents(*buffer) == others);
  desc.import_fd = -1;
  const auto fresh = subject().device->create_buffer(desc);
  REQUIRE(fresh.has_value());
  REQUIRE((*fresh)->write(0, bytes_of(values)).ok());
  CHECK(contents(*buffer) == others);
}

}  // namespace kiln::conformance
