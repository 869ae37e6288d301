// Router: selects the device for a job and decides whether a failure allows another device.
//
// Thread-safety: every method from any thread; one thread per job. Ownership: borrows everything.
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

  // Returns the next device to try, opened. nullptr: none is left or the job is invalid; the report has the reason.
  std::shared_ptr<Device> next(Job& job);
  // Returns whether the job ends with this outcome. false: try another device.
  bool settled(Job& job, const Device& device, const RunOutcome& outcome);
  // Counts the end of a replay for or against its device, as settled() does for a job.
  void replayed(const Device& device, const Status& status, bool of_layers);

  // See Runtime::explain(). Ignores the status of the job's report.
  Result<Explanation> explain(Job& job);

 private:
  bool ends(Job& job, const Device* device, const RunOutcome& outcome);
  // Returns the id of the next device and records the reason in the report.
  Result<std::string> choose(Job& job);
  // Returns the requested device if it can run the job, else all usable devices.
  Result<std::vector<DeviceInfo>> candidates(Job& job);
  std::vector<Candidate> offer(const Job& job, const std::vector<DeviceInfo>& able);
  // Returns the error that no device can run the job; it lists every device.
  Status nothing_offered(Job& job);
  // If no device is offered, ends the pause of one that is set aside and could run the job.
  std::optional<std::string> last_resort(const Job& job);
  // Time of the work queued for this device and for devices that compete with it.
  std::uint64_t backlog_ns(const DeviceInfo& device, const std::vector<DeviceInfo>& all);
  JobTerms terms_of(const Job& job, const std::vector<Candidate>& offered) const;
  // Returns the requested device, else the preferred one; "auto": any.
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
