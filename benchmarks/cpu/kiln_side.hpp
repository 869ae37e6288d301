// Kiln's side of a comparison: its cpu device, and one problem on it by submit() and wait().
//
// Thread-safety: one thread. Ownership: a KilnCall wraps its problem's memory and dies before it and before the device.
#pragma once

#include "cpu/problem.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kiln::bench {

// The device, and what it says of its choices.
class KilnCpu {
 public:
  KilnCpu();  // throws std::runtime_error
  Device& device() { return *device_; }
  // The layout that the last program to choose has chosen; "the only one" where there was nothing to choose since
  // forget().
  std::string chosen() const;
  void forget() { notes_.last.clear(); }

 private:
  class Notes : public LogSink {
   public:
    void write(LogLevel, std::string_view, std::string_view message) noexcept override { last = message; }
    std::string last;
  };

  Notes notes_;
  Registry registry_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
};

// Buffers wrap host memory; the weights are resident, and packed by the first run.
class KilnCall {
 public:
  KilnCall(Device& device, Problem& problem);
  void run();  // throws std::runtime_error

 private:
  void wrap(Tensor& tensor, BufferUsage usage);

  Device& device_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> bindings_;
};

}  // namespace kiln::bench
