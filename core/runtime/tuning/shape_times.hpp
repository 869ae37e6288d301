// ShapeTimes: how long each shape ran on each device in this process, so that what took most is tuned first.
//
// Thread-safety: every method from any thread; a run pays one lock, for a look-up. Ownership: values. Bounded: after
// 4,096 shapes no new one is taken in. Specs of users' own kernels, which only their own files can measure, are not.
#pragma once

#include <kiln/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace kiln {

struct RanShape {
  std::string device;  // an id
  KernelSpec spec;
  std::string name;  // of the job that ran it first

  bool operator==(const RanShape& other) const { return device == other.device && spec == other.spec; }
};

class ShapeTimes {
 public:
  void ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t ns);
  // The shape that took most time of those that wait; absent: none waits.
  std::optional<RanShape> next() const;
  std::size_t waiting() const;
  // It waits no longer. wait_again(): those that ran since do again.
  void settle(const RanShape& shape);
  void wait_again();
  // It never does.
  void give_up(const RanShape& shape);

 private:
  struct Hash {
    std::size_t operator()(const RanShape& shape) const noexcept;
  };
  struct Times {
    std::uint64_t ns = 0;
    bool waits = true;
    bool ran_since = false;  // it was settled
    bool given_up = false;
  };

  mutable std::mutex mutex_;
  std::unordered_map<RanShape, Times, Hash> shapes_;
};

}  // namespace kiln
