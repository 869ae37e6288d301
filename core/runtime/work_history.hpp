// WorkHistory: records for each spec and device in this process whether it ran, is ready, or failed to build.
//
// Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace kiln {

class WorkHistory {
 public:
  // Marks the work as run and ready. Returns whether it ran before.
  bool begin_run(const KernelSpec& spec, const std::string& device);
  // Returns whether the programs are in memory and were dispatched, by a run or with an empty grid.
  bool is_ready(const KernelSpec& spec, const std::string& device) const;
  void set_ready(const KernelSpec& spec, const std::string& device);
  // Whether a build ahead failed. The job that needs the programs builds again and reports the error.
  bool failed_ahead(const KernelSpec& spec, const std::string& device) const;
  void set_failed_ahead(const KernelSpec& spec, const std::string& device);

  // The variant used for a kernel whose preferred variant cannot be built, for one revision of the generator.
  std::optional<std::string> fallback_variant(const KernelSpec& spec, const std::string& device,
                                              std::uint64_t revision) const;
  void set_fallback_variant(const KernelSpec& spec, const std::string& device, std::uint64_t revision,
                            std::string variant);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> ran_, ready_, failed_ahead_;  // keys: work_name()
  std::map<std::string, std::string> variants_;
};

// "<device>|<canonical text of the spec>"
std::string work_name(const KernelSpec& spec, const std::string& device);

}  // namespace kiln
