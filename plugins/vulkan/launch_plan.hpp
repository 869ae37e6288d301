// The launches of a dispatch, with what they bind each once: to find an equal dispatch, and to bind it.
//
// Thread-safety: any thread. Ownership: borrows programs and buffers during the call; a plan names them by number.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <vector>

#include "gpu.hpp"

namespace kiln::vulkan {

// A launch of a dispatch. Launches that bind the same to the same program have the same pass; passes are numbered in
// the order of their first launches.
struct LaunchStep {
  std::uint64_t low = 0, high = 0;  // bit 0: PassLaunch::waits, then 31 bits pass, then the grid's x, y and z

  bool is_nothing() const noexcept { return (low >> 32 | high) == 0; }  // PassLaunch::nothing
  bool same_grid(const LaunchStep& other) const noexcept {
    return ((low ^ other.low) >> 32 | (high ^ other.high)) == 0;
  }
  bool waits() const noexcept { return (low & 1) != 0; }
  std::uint32_t pass() const noexcept { return static_cast<std::uint32_t>(low) >> 1; }
  std::array<std::uint32_t, 3> grid() const noexcept {
    return {static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
  }
};

// Names all that the commands of a dispatch depend on: equal keys, equal commands. Numbers stand for programs and
// buffers, so that an object in the place of a destroyed one has another key.
struct DispatchKey {
  std::uint64_t hash = 0;            // of the rest
  std::vector<std::uint64_t> words;  // what the passes bind, one after the other
  std::vector<LaunchStep> steps;

  bool operator==(const DispatchKey& other) const noexcept;
};

struct LaunchPlan {
  DispatchKey key;
  std::vector<std::size_t> checks;  // the launches that begin a pass or have another grid than the one before
  // false: the launch behind key.steps lacks an object or has one of another device; bind() refuses it.
  bool complete = true;
};

// REQUIRES: fewer than 2^31 launches.
LaunchPlan plan_launches(const Dispatch& dispatch, const Gpu& gpu);

}  // namespace kiln::vulkan
