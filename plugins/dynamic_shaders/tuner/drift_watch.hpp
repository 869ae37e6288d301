// DriftWatch: whether tuned winners still take the time that they took when they won.
//
// Told of every run, so a run costs a lookup: what a winner's runs are compared with is asked for once a revision.
// Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

namespace kiln::dynamic_shaders {

class DriftWatch {
 public:
  static constexpr std::uint32_t slow_runs = 8;  // in a row: a busy machine slows some, not all
  // That they last at least: the first runs of a process are slow, and machines have moods of a second or two.
  static constexpr std::chrono::nanoseconds slow_span = std::chrono::seconds(5);
  static constexpr double slow_factor = 1.5;

  using Spec = std::variant<Conv2dSpec, GemmSpec, std::string>;  // a user's kernel: its record_spec()
  static constexpr std::size_t most_specs = 4096;                // beyond them it begins anew

  struct Winner {
    std::string variant;
    std::uint64_t device_ns = 0;  // the median when it won; 0 where there is no winner
  };

  explicit DriftWatch(std::chrono::nanoseconds span = slow_span) : span_ns_(static_cast<std::uint64_t>(span.count())) {}

  // True once for each winner, with the last of slow_runs or more runs in a row, over slow_span, that took over
  // slow_factor times its median. now: of the steady clock. `find` is asked where this device's spec was not met since
  // `revision` changed.
  bool drifts(const std::string& device_id, const Spec& spec, std::uint64_t revision, std::string_view variant,
              std::uint64_t device_ns, std::uint64_t now_ns, const std::function<Winner()>& find);

 private:
  struct Key {
    std::string device_id;
    Spec spec;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Watched {
    Winner winner;
    std::uint32_t slow = 0;           // runs in a row
    std::uint64_t slow_since_ns = 0;  // the first of them
    bool told = false;
  };

  const std::uint64_t span_ns_;
  std::mutex mutex_;
  std::uint64_t revision_ = 0;
  std::unordered_map<Key, Watched, Hash> watched_;
};

}  // namespace kiln::dynamic_shaders
