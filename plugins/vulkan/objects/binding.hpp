// What the launches of a dispatch bind: as words, to find an equal dispatch, and as descriptors.
//
// Thread-safety: LaunchKeys is immutable; bind() from any thread. Ownership: borrows programs and buffers, which
// outlive the submission.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "objects/queue.hpp"

namespace kiln::vulkan {

// The launches of a dispatch as words: what each binds, then its grid. Numbers stand for programs and buffers, so equal
// words name the same objects.
class LaunchKeys {
 public:
  LaunchKeys(const Dispatch& dispatch, const Gpu& gpu);

  // false: a launch lacks an object or has one of another device; bind() refuses it.
  bool complete() const noexcept { return complete_; }
  std::span<const std::uint64_t> words() const noexcept { return words_; }
  // Of what a launch binds: program, buffers and sources, without the grid.
  bool equal(std::size_t a, std::size_t b) const;
  std::uint64_t hash(std::size_t launch) const;

 private:
  bool add(const PassLaunch& launch, const Gpu& gpu);
  std::span<const std::uint64_t> binds(std::size_t launch) const;

  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> ends_;
  bool complete_ = true;
};

// invalid_argument or unsupported names the pass and the resource.
Result<Submission> bind(const Dispatch& dispatch, const LaunchKeys& keys, const DeviceInfo& info, const Gpu& gpu);

}  // namespace kiln::vulkan
