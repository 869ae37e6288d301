// Buffers and grids against the limits of a device: what is refused, and with which words.
#include <kiln/device_checks.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace kiln;

namespace {

class SizedBuffer final : public Buffer {
 public:
  explicit SizedBuffer(std::uint64_t size) : size_(size) {}
  std::uint64_t bytes() const noexcept override { return size_; }
  Status write(std::uint64_t, std::span<const std::byte>) noexcept override { return {}; }
  Status read(std::uint64_t, std::span<std::byte>) noexcept override { return {}; }
  std::span<std::byte> mapped() noexcept override { return {}; }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("a buffer without memory"); }

 private:
  std::uint64_t size_;
};

DeviceInfo checked_device() {
  DeviceInfo info;
  info.id = "d:0";
  return info;
}

BufferDesc storage_buffer(std::uint64_t size) {
  BufferDesc desc;
  desc.bytes = size;
  desc.usage = BufferUsage::storage;
  return desc;
}

constexpr std::uint64_t more_than_any_device = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("device checks: a buffer uses other memory only on devices that support it", "[contract]") {
  std::array<std::byte, 64> memory{};
  SizedBuffer whole(64);
  struct Case {
    std::function<void(BufferDesc&)> change;
    bool DeviceInfo::*needs;
    std::string refusal;
  };
  const std::string not_imported = "unsupported: d:0: memory cannot be imported by file descriptor";
  const std::vector<Case> cases{
      {[&](BufferDesc& desc) { desc.host = memory; }, &DeviceInfo::wraps_host_memory,
       "unsupported: d:0: host memory cannot be wrapped as a buffer"},
      {[](BufferDesc& desc) { desc.import_fd = 0; }, &DeviceInfo::shares_memory, not_imported},
      {[](BufferDesc& desc) { desc.import_fd = 1; }, &DeviceInfo::shares_memory, not_imported},
      {[&](BufferDesc& desc) { desc.part_of = &whole; }, &DeviceInfo::shares_buffers,
       "unsupported: d:0: a buffer cannot be a part of another buffer"}};
  for (const Case& one : cases) {
    CAPTURE(one.refusal);
    BufferDesc desc = storage_buffer(64);
    one.change(desc);
    DeviceInfo info = checked_device();
    CHECK(check_buffer(info, desc).text() == one.refusal);
    info.*one.needs = true;
    CHECK(check_buffer(info, desc).text() == "ok");
  }
  CHECK(check_buffer(checked_device(), storage_buffer(64)).text() == "ok");
}

TEST_CASE("device checks: a buffer needs a usage and a size from 1 byte to the device's limit", "[contract]") {
  DeviceInfo info = checked_device();
  BufferDesc desc = storage_buffer(64);
  desc.usage = BufferUsage::invalid;
  CHECK(check_buffer(info, desc).text() == "invalid_argument: d:0: buffer usage is not set");
  CHECK(check_buffer(info, storage_buffer(0)).text() ==
        "invalid_argument: d:0: buffer size is 0 bytes, expected at least 1 byte");
  CHECK(check_buffer(info, storage_buffer(1)).text() == "ok");
  CHECK(check_buffer(info, storage_buffer(more_than_any_device)).text() == "ok");  // the most is not known
  info.max_buffer_bytes = 64;
  CHECK(check_buffer(info, storage_buffer(64)).text() == "ok");
  CHECK(check_buffer(info, storage_buffer(65)).text() ==
        "invalid_argument: d:0: buffer size is 65 bytes, expected at most 64");
}

TEST_CASE("device checks: each axis of a grid is from 1 to the device's limit", "[contract]") {
  DeviceInfo info = checked_device();
  info.max_grid = {4, 5, 6};
  PassLaunch launch;
  const auto answer = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    launch.grid = {x, y, z};
    return check_grid(info, 3, launch).text();
  };
  CHECK(answer(1, 1, 1) == "ok");
  CHECK(answer(4, 5, 6) == "ok");
  CHECK(answer(0, 1, 1) == "invalid_argument: d:0: pass 3: grid x = 0, expected 1 to 4");
  CHECK(answer(1, 0, 1) == "invalid_argument: d:0: pass 3: grid y = 0, expected 1 to 5");
  CHECK(answer(1, 1, 0) == "invalid_argument: d:0: pass 3: grid z = 0, expected 1 to 6");
  CHECK(answer(5, 5, 6) == "invalid_argument: d:0: pass 3: grid x = 5, expected 1 to 4");
  CHECK(answer(4, 6, 6) == "invalid_argument: d:0: pass 3: grid y = 6, expected 1 to 5");
  CHECK(answer(4, 5, 7) == "invalid_argument: d:0: pass 3: grid z = 7, expected 1 to 6");
}

TEST_CASE("device checks: counts of an indirect grid are from 0 to the device's limit", "[contract]") {
  const std::array<std::uint32_t, 3> most{4, 5, 6};
  CHECK(check_counts(2, {0, 0, 0}, most).text() == "ok");
  CHECK(check_counts(2, {4, 5, 6}, most).text() == "ok");
  CHECK(check_counts(2, {5, 5, 6}, most).text() == "invalid_argument: pass 2: reads grid x = 5, expected 0 to 4");
  CHECK(check_counts(2, {4, 6, 6}, most).text() == "invalid_argument: pass 2: reads grid y = 6, expected 0 to 5");
  CHECK(check_counts(2, {4, 5, 7}, most).text() == "invalid_argument: pass 2: reads grid z = 7, expected 0 to 6");
}

TEST_CASE("device checks: an indirect grid is three words inside a buffer of the pass", "[contract]") {
  DeviceInfo info = checked_device();
  SizedBuffer counts(24);
  Buffer* const bindings[] = {nullptr, &counts};
  PassLaunch launch;
  launch.bindings = bindings;
  const auto answer = [&](std::uint32_t binding, std::uint64_t offset) {
    launch.indirect = IndirectGrid{binding, offset};
    return check_grid(info, 1, launch).text();
  };
  CHECK(answer(1, 0) == "unsupported: d:0: pass 1: reads the grid from a buffer, which the device does not support");
  info.indirect_grids = true;
  for (const std::uint64_t offset : {0u, 4u, 8u, 12u}) CHECK(answer(1, offset) == "ok");
  std::vector<std::uint64_t> wrong{2, 13, 16, 24, 28};
  wrong.push_back(more_than_any_device - 3);
  for (const std::uint64_t offset : wrong) {
    CHECK(answer(1, offset) == "invalid_argument: d:0: pass 1: reads the grid at byte " + std::to_string(offset) +
                                   " of 24, expected a multiple of 4 and at least 12 bytes to the end of the buffer");
  }
  CHECK(answer(0, 0) ==
        "invalid_argument: d:0: pass 1: reads the grid from binding 0, which has no buffer (found 2 bindings)");
  CHECK(answer(2, 0) ==
        "invalid_argument: d:0: pass 1: reads the grid from binding 2, which has no buffer (found 2 bindings)");
}
