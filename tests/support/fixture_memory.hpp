// FixtureMemory: zeroed memory behind a file descriptor, which a second buffer can map too.
//
// Thread-safety: as memory. Ownership: owns its mapping and a descriptor of its own; the memory goes with the last of
// both.
#pragma once

#include <kiln/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kiln::support {

class FixtureMemory {
 public:
  static Result<FixtureMemory> create(std::uint64_t bytes);
  // Maps what lies behind the descriptor, which stays the caller's. invalid_argument where that is not as much.
  static Result<FixtureMemory> import(int fd, std::uint64_t bytes);

  std::span<std::byte> bytes() const noexcept { return {memory_.get(), size_}; }
  Result<UniqueFd> export_fd() const;

 private:
  struct Unmap {
    std::size_t length;
    void operator()(std::byte* memory) const noexcept;
  };

  static Result<FixtureMemory> map(UniqueFd fd, std::uint64_t bytes);

  UniqueFd fd_;
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, Unmap> memory_{nullptr, Unmap{0}};
};

}  // namespace kiln::support
