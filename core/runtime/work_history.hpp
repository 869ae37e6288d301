// WorkHistory: what this process did with each spec on each device: ran it, made its programs ready, failed to build
// them.
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
  // Marks it as running, and thereby ready. Returns whether it ran before.
  bool begin_run(const KernelSpec& spec, const std::string& device);
  // Whether its programs are in memory and were dispatched, over nothing or by a run.
  bool is_ready(const KernelSpec& spec, const std::string& device) const;
  void set_ready(const KernelSpec& spec, const std::string& device);
  // Building its programs ahead failed. The job that needs them builds again and reports the error.
  bool failed_ahead(const KernelSpec& spec, const std::string& device) const;
  void set_failed_ahead(const KernelSpec& spec, const std::string& device);

  // The variant that runs a kernel whose preferred one cannot be built, for one revision of the generator.
  std::optional<std::string> fallback_variant(const KernelSpec& spec, const std::string& device,
                                              std::uint64_t revision) const;
  void set_fallback_variant(const KernelSpec& spec, const std::string& device, std::uint64_t revision,
                            std::string variant);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> ran_, ready_, failed_ahead_;  // names of work
  std::map<std::string, std::string> variants_;
};

// "<device>|<canonical text of the spec>"
std::string work_name(const KernelSpec& spec, const std::string& device);

}  // namespace kiln
