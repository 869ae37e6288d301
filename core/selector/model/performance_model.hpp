// PerformanceModel: what has been measured, by (operation, device, driver, shape bucket), and what it lets expect.
//
// Steady runs, first runs, transfers, builds and loads are kept apart. Thread-safety: none; the selector locks.
// Ownership: values. Bounded: beyond the limit the arm unused for longest goes. Devices are known by id and by what
// they and their driver are identified with; what they are called or what kind they are of is never looked at.
#pragma once

#include "selector/model/average.hpp"
#include "selector/model/run_average.hpp"
#include "selector/model/shape_bucket.hpp"

#include <kiln/device.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kiln::selector {

// Shapes of the arms that hold what it costs to get a program, of whatever shape.
inline constexpr std::string_view build_shape = "(build)";  // by the compiler
inline constexpr std::string_view load_shape = "(load)";    // from disk, or made by a library

struct ArmKey {
  std::string operation;
  std::string device;  // id
  std::string driver;  // its words, and a digest of the identities that a program's key takes in
  std::string shape;   // of the bucket, or one of the above

  auto operator<=>(const ArmKey&) const = default;
};

struct Arm {
  RunAverage run;        // from the submission to the output in host memory, without the wait in the queue
  Average log_transfer;  // of that, moving data
  Average log_first;     // first runs in a process
  double log_flops = 0;  // means of the runs', so that a time can be scaled to a spec of the same bucket; 0: unknown
  double log_bytes = 0;
  std::uint32_t looks = 0;  // times that the device was chosen for want of knowledge
  std::uint64_t used = 0;   // when it was last of use: microseconds since 1970, growing
};

enum class Evidence : std::uint8_t {
  invalid = 0,
  own,         // steady runs of this bucket
  first,       // first runs of this bucket alone: later ones are hardly slower
  regression,  // runs of other shapes
  compared,    // another device's runs of this bucket, and how the two compare on other shapes
  roof,        // no runs: what the device could do at best
  nothing,
};

struct Estimate {
  Evidence evidence = Evidence::nothing;
  double log_ns = 0;          // undefined for nothing
  double log_deviation = 0;   // of log_ns
  std::uint64_t runs = 0;     // of this bucket, first runs included where there are no others
  std::size_t shapes = 0;     // of a regression or a comparison
  double transfer_ns = 0;     // part of the time
  double first_extra_ns = 0;  // what a first run takes beyond a later one
  bool drifted = false;       // the device was noticed to have changed: it may change again

  bool known() const noexcept { return evidence != Evidence::nothing; }
  // It rests on runs. A roof does not: what a device could do at best says little of what it does.
  bool measured() const noexcept { return known() && evidence != Evidence::roof; }
};

class PerformanceModel {
 public:
  static constexpr std::size_t most_arms = 4096;

  explicit PerformanceModel(double alpha) : alpha_(alpha) {}

  Estimate estimate(const ShapeBucket& bucket, const DeviceInfo& device) const;
  // What `known`, another device's estimate by its own runs of the bucket, lets expect of `device`.
  Estimate compared(const ShapeBucket& bucket, const DeviceInfo& device, const DeviceInfo& other,
                    const Estimate& known) const;
  // To get a program: 0 where it is not known. A bucket that ran on the device is taken to lie on its disk.
  double build_ns(const ShapeBucket& bucket, const DeviceInfo& device) const;
  std::uint32_t looks(const ShapeBucket& bucket, const DeviceInfo& device) const;

  void count_look(const ShapeBucket& bucket, const DeviceInfo& device);
  Drift learn_run(const ShapeBucket& bucket, const DeviceInfo& device, double ns, double transfer_ns);
  void learn_first(const ShapeBucket& bucket, const DeviceInfo& device, double ns);
  void learn_build(const ShapeBucket& bucket, const DeviceInfo& device, std::string_view shape, double ns);
  // The device has been opened, so its driver is known now: looks counted under what was known before become its own.
  void settle_driver(const ShapeBucket& bucket, const DeviceInfo& device);

  const std::map<ArmKey, Arm>& arms() const noexcept { return arms_; }
  // What other processes learned beside what this one did.
  void replace(std::map<ArmKey, Arm> arms);

 private:
  ArmKey key_of(const ShapeBucket& bucket, const DeviceInfo& device, std::string_view shape) const;
  const Arm* find(const ArmKey& key) const;
  Arm& touch(const ArmKey& key);
  Estimate from_other_shapes(const ArmKey& key, const ShapeBucket& bucket) const;

  double alpha_;
  std::map<ArmKey, Arm> arms_;
  std::uint64_t step_ = 0;
};

// "Mesa 22.3.6 #1f2e3d4c"; the words alone where the device has told no identity yet.
std::string fingerprint(const DeviceInfo& device);

// At most `most_arms`: those unused for longest go.
void bound(std::map<ArmKey, Arm>& arms);

}  // namespace kiln::selector
