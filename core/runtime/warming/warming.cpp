#include "runtime/warming/warming.hpp"

#include <kiln/clock.hpp>

namespace kiln {
namespace {

// By way of the device's own queue: it is the context that runs jobs which has to have dispatched.
Status dispatch_nothing(Device& device, const Program& program) {
  const PassLaunch launch{&program, {}, PassLaunch::nothing};
  const auto value = device.submit({std::span(&launch, 1)});
  if (!value) return value.error();
  const auto fence = device.wait(*value, Deadline::never());
  return fence ? ok_status() : fence.error();
}

}  // namespace

WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request) {
  WarmReport report;
  report.found = programs.size();
  const auto fail = [&](const KeptProgram& program, const Status& status) {
    ++report.failed;
    if (report.first_failure.ok()) {
      report.first_failure = Status(status).within("program '" + program.key.label + "'");
    }
  };
  for (const KeptProgram& program : programs) {
    if (request.stop != nullptr && request.stop->load()) break;
    const std::uint64_t begun = now_ns();
    const auto acquired = cache.get_or_build(program.key, program.source, device);
    const std::uint64_t linked = now_ns();
    report.link_ns += linked - begun;
    if (!acquired) {
      fail(program, acquired.error());
    } else {
      ++report.linked;
      if (acquired->tier == Tier::built) ++report.built;
      const Status status = dispatch_nothing(device, *acquired->program);
      report.ready_ns += now_ns() - linked;
      if (status.ok()) {
        ++report.ready;
      } else {
        fail(program, status);
      }
    }
    if (request.progress) request.progress(report.linked + report.failed, report.found);
  }
  return report;
}

}  // namespace kiln
