// SyntheticDevice: a codec without a driver. A program is its source's text; a binary is a tag, a checksum such as
// drivers have (CRC-32), the number of the build and the text. It counts, refuses, waits, lies and dies as told, and it
// knows whether bytes that it is given are bytes that it once made.
//
// Thread-safety: as Device; what is told to it is set before it is used. Ownership: a test's.
#pragma once

#include <kiln/device.hpp>

#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace kiln::test {

class SyntheticProgram final : public Program {
 public:
  SyntheticProgram(std::string text, std::uint64_t charge, std::atomic<int>& live)
      : text_(std::move(text)), charge_(charge), live_(live) {
    ++live_;
  }
  ~SyntheticProgram() override { --live_; }

  std::uint64_t charge() const noexcept override { return charge_; }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::uint64_t charge_;
  std::atomic<int>& live_;
};

class SyntheticDevice final : public Device {
 public:
  SyntheticDevice() {
    info_.id = "synthetic:0";
    info_.kind = DeviceKind::software;
    info_.name = "Synthetic (test, 1 lane)";
    info_.driver = "Synthetic 1.0";
    info_.usable = true;
    info_.device_identity = {{"vendor", "Kiln"}, {"renderer", "Synthetic / lane"}};
    info_.driver_identity = {{"version", "1.0"}, {"sha", std::string("\x00\xff\x80z", 4)}};
    info_.dialects = {Dialect::glsl};
    info_.serializes = true;
  }

  DeviceInfo& facts() noexcept { return info_; }

  std::function<void(const KernelSource&)> on_build;  // runs inside build(), on its thread: may wait, hang or die
  std::function<void(const KernelSource&)> on_load;   // likewise, where the bytes' own checksum is right
  std::function<void()> on_dispatch;                  // likewise, inside submit()
  std::vector<DriverFile> driver_files;               // of every program that it serializes, for driver_setting
  std::string driver_setting;
  std::uint32_t build_number = 0;  // another number makes other bytes of the same text
  std::atomic<bool> fail_builds{false};
  std::function<bool(const std::string&)> refuses;  // sources that do not compile
  std::atomic<StatusCode> load_answers{StatusCode::ok};
  std::uint64_t charge = 100;
  std::atomic<int> builds{0}, loads{0}, live{0}, dispatched_nothing{0};
  std::atomic<int> hangs_after{std::numeric_limits<int>::max()};  // dispatches of nothing; those after it never end
  std::atomic<int> false_bytes{0};  // load() was handed bytes that serialize() would not have made
  std::atomic<StatusCode> fails_with{StatusCode::invalid_argument};  // where builds fail

  // Makes the checksum inside a binary right, as somebody who alters one with care would.
  static void repair_sum(std::span<std::byte> binary) {
    if (binary.size() < sum_end) return;
    std::uint32_t sum = ~0u;
    for (const std::byte byte : binary.subspan(sum_end)) {
      sum ^= static_cast<std::uint32_t>(byte);
      for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (0xEDB88320u & (0u - (sum & 1)));
    }
    std::memcpy(binary.data() + sum_at, &sum, sizeof sum);
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc&) noexcept override {
    return unsupported("synthetic device: has no buffers");
  }
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override {
    ++builds;
    if (on_build) on_build(source);
    if (fail_builds || (refuses && refuses(source.text)))
      return Status{fails_with, "synthetic: line 1: what is '" + source.text + "'?"};
    return program(source.text);
  }
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override {
    ++loads;
    if (binary.format != format || !is_mine(binary.bytes, source.text)) ++false_bytes;
    if (!sum_is_right(binary.bytes)) return corrupt("synthetic: the binary's own checksum is wrong");
    if (on_load) on_load(source);
    if (load_answers != StatusCode::ok) return Status{load_answers, "synthetic: told to refuse"};
    return program(source.text);
  }
  Result<ProgramBinary> serialize(const Program& made) noexcept override {
    if (!info_.serializes) return unsupported("synthetic device: keeps nothing");
    return ProgramBinary{format, bytes_of(static_cast<const SyntheticProgram&>(made).text(), build_number),
                         driver_files, driver_setting};
  }
  // Its queue runs nothing, and that it does.
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override {
    for (const PassLaunch& pass : dispatch.passes) {
      if (pass.grid != PassLaunch::nothing) return unsupported("synthetic device: its queue runs nothing");
    }
    if (on_dispatch) on_dispatch();
    return static_cast<std::uint64_t>(++dispatched_nothing);
  }
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override {
    if (value <= static_cast<std::uint64_t>(hangs_after.load())) return FenceResult{};
    std::this_thread::sleep_until(deadline.at);
    return Status{StatusCode::timeout, "synthetic device: it hangs"};
  }

 private:
  static constexpr const char* format = "synthetic:2";
  static constexpr std::size_t sum_at = 4, sum_end = 8;

  static std::vector<std::byte> bytes_of(const std::string& text, std::uint32_t number) {
    std::vector<std::byte> bytes(sum_end + sizeof number + text.size());
    std::memcpy(bytes.data(), "SYN2", sum_at);
    std::memcpy(bytes.data() + sum_end, &number, sizeof number);
    std::memcpy(bytes.data() + sum_end + sizeof number, text.data(), text.size());
    repair_sum(bytes);
    return bytes;
  }
  static bool is_mine(const std::vector<std::byte>& bytes, const std::string& text) {
    std::uint32_t number = 0;
    if (bytes.size() != sum_end + sizeof number + text.size()) return false;
    std::memcpy(&number, bytes.data() + sum_end, sizeof number);
    return bytes == bytes_of(text, number);
  }
  static bool sum_is_right(std::vector<std::byte> bytes) {
    const auto before = bytes;
    repair_sum(bytes);
    return bytes == before;
  }
  std::unique_ptr<Program> program(const std::string& text) {
    return std::make_unique<SyntheticProgram>(text, charge, live);
  }

  DeviceInfo info_;
};

}  // namespace kiln::test
