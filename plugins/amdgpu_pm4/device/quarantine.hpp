// Quarantine: kernels that are known to have hung a device, by the digest of their code object and name. They are
// refused for a week, also in later processes where the driver was lent notes.
//
// Thread-safety: every method from any thread. Ownership: borrows the notes, which outlive it.
#pragma once

#include <kiln/digest.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace kiln::amdgpu_pm4 {

class Quarantine {
 public:
  // `device`: what a verdict depends on besides the code, which is the chip. notes may be null.
  Quarantine(DriverNotes* notes, const std::string& device);

  // now, when: seconds since 1970.
  bool holds(const Digest& kernel, std::int64_t now = std::time(nullptr)) const;
  // unsupported where it holds the kernel, which is called `name`: until when, and what ends it earlier.
  Status check(const Digest& kernel, const std::string& name, std::int64_t now = std::time(nullptr)) const;
  void add(const Digest& kernel, std::int64_t when = std::time(nullptr));

  // One of several that may have hung the device: it runs alone from now on, so that a second time tells.
  bool is_suspect(const Digest& kernel) const;
  void suspect(const Digest& kernel);
  // Changes with the answers of is_suspect().
  std::uint64_t suspicions() const;

 private:
  DriverNotes* const notes_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::map<Digest, std::int64_t> guilty_;  // and since when
  std::set<Digest> suspects_;
  std::uint64_t suspicions_ = 0;
};

}  // namespace kiln::amdgpu_pm4
