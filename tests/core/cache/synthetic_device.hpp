// SyntheticDevice: a codec without a driver. A program is its source's text; a binary is the text behind a tag. It
// counts, refuses and waits as told, and it knows whether bytes that it is given are bytes that it once made.
//
// Thread-safety: as Device; what is told to it is set before it is used. Ownership: a test's.
#pragma once

#include <kiln/device.hpp>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
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

  std::function<void(const KernelSource&)> on_build;  // runs inside build(), on its thread
  std::atomic<bool> fail_builds{false};
  std::atomic<StatusCode> load_answers{StatusCode::ok};
  std::uint64_t charge = 100;
  std::atomic<int> builds{0}, loads{0}, live{0};
  std::atomic<int> false_bytes{0};  // load() was handed bytes that serialize() would not have made

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc&) noexcept override {
    return unsupported("synthetic device: has no buffers");
  }
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override {
    ++builds;
    if (on_build) on_build(source);
    if (fail_builds) return invalid_argument("synthetic: line 1: what is '" + source.text + "'?");
    return program(source.text);
  }
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override {
    ++loads;
    if (binary.format != format || binary.bytes != bytes_of(source.text)) ++false_bytes;
    if (load_answers != StatusCode::ok) return Status{load_answers, "synthetic: told to refuse"};
    return program(source.text);
  }
  Result<ProgramBinary> serialize(const Program& made) noexcept override {
    if (!info_.serializes) return unsupported("synthetic device: keeps nothing");
    return ProgramBinary{format, bytes_of(static_cast<const SyntheticProgram&>(made).text())};
  }
  Result<std::uint64_t> submit(const Dispatch&) noexcept override {
    return unsupported("synthetic device: has no queue");
  }
  Result<FenceResult> wait(std::uint64_t, Deadline) noexcept override {
    return unsupported("synthetic device: has no queue");
  }

 private:
  static constexpr const char* format = "synthetic:1";

  static std::vector<std::byte> bytes_of(const std::string& text) {
    const std::string whole = "SYN1" + text;
    std::vector<std::byte> bytes(whole.size());
    std::memcpy(bytes.data(), whole.data(), whole.size());
    return bytes;
  }
  std::unique_ptr<Program> program(const std::string& text) {
    return std::make_unique<SyntheticProgram>(text, charge, live);
  }

  DeviceInfo info_;
};

}  // namespace kiln::test
