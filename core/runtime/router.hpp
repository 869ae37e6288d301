// Router: which device serves a job, and what a failure there means.
//
// Thread-safety: every method from any thread; a job belongs to one thread. Ownership: borrows everything.
#pragma once

#include "runtime/job.hpp"
#include "runtime/metrics.hpp"
#include "runtime/planner.hpp"
#include "runtime/programs.hpp"
#include "runtime/runner.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class Router {
 public:
  Router(const Config& config, TraceSink* trace, DeviceTable& devices, const Executor& executor,
         DeviceSelector& selector, const Planner& planner, Programs& programs, const WorkHistory& history,
         JobMetrics& metrics);

  // The device to try next, opened. nullptr: none is left, or the job is invalid; the report says why.
  std::shared_ptr<Device> next(Job& job);
  // Whether the job ends here, with this outcome. false: another device may serve it.
  bool settled(Job& job, const Device& device, const RunOutcome& outcome);

  // See Runtime::explain().
  Result<Explanation> explain(const RunRequest& request);

 private:
  bool ends(Job& job, const Device* device, const RunOutcome& outcome);
  // The id of the device to try next; the report says why it was chosen.
  Result<std::string> choose(Job& job);
  // The device that was requested while it can serve, else all that are usable.
  Result<std::vector<DeviceInfo>> candidates(Job& job);
  std::vector<Candidate> offer(const RunRequest& request, const std::vector<DeviceInfo>& able);
  // Why no device can serve, with every device.
  Status nothing_offered(const Job& job);
  // Where no device is offered: one that is set aside and could serve. Its pause ends.
  std::optional<std::string> last_resort(const Job& job);
  // What waits for the device, and for others that compete with it.
  std::uint64_t backlog_ns(const DeviceInfo& device, const std::vector<DeviceInfo>& all);
  JobTerms terms_of(const RunRequest& request, const std::vector<Candidate>& offered) const;
  // The requested device, else the preferred one; "auto": any.
  const std::string& wanted(const RunRequest& request) const;

  const Config& config_;
  TraceSink* const trace_;
  DeviceTable& devices_;
  const Executor& executor_;
  DeviceSelector& selector_;
  const Planner& planner_;
  Programs& programs_;
  const WorkHistory& history_;
  JobMetrics& metrics_;
};

}  // namespace kiln
