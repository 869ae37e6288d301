// Launcher: loads a kernel into fake memory, gives it its arguments, and dispatches it as a driver's registers would.
//
// Thread-safety: one thread. Ownership: owns memory and engine.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "simulator/compute/engine.hpp"
#include "tests/simulator/compute/kernel_code.hpp"
#include "tests/simulator/wave/fake_memory.hpp"

namespace kiln::simulator::test {

class Arguments {  // of a kernel, by natural alignment
 public:
  template <class T>
  Arguments& add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    bytes_.resize(bytes_.size() + sizeof(T));
    std::memcpy(bytes_.data() + bytes_.size() - sizeof(T), &value, sizeof(T));
    return *this;
  }
  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct Grid {
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::array<std::uint32_t, 3> threads{64, 1, 1};
};

class Launcher {
 public:
  explicit Launcher(ComputeLimits limits = {}) : engine(limits) {}

  FakeMemory memory;
  ComputeEngine engine;

  // The registers that a dispatch of `code` needs; the kernel and its arguments are put into memory.
  DispatchState prepare(const KernelCode& code, const Arguments& arguments, const Grid& grid);
  std::optional<Fault> run(const KernelCode& code, const Arguments& arguments, const Grid& grid) {
    return engine.run_dispatch(prepare(code, arguments, grid), memory);
  }

 private:
  void give_scratch(const KernelCode& code, const Grid& grid, DispatchState& state);

  std::uint64_t scratch_ = 0;
  std::uint64_t scratch_bytes_ = 0;
};

}  // namespace kiln::simulator::test
