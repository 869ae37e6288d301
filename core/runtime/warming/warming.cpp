#include "runtime/warming/warming.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <thread>

namespace kiln {
namespace {

// A slot of the process table has marks for a few more: what each thread does is told to other processes.
constexpr unsigned most_building_threads = 16;

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
                         const WarmRequest& request, unsigned threads) {
  WarmReport report;
  report.found = programs.size();
  const auto stop = [&] { return request.stop != nullptr && request.stop->load(); };
  if (stop()) return report;
  std::vector<ProgramRequest> wanted;
  wanted.reserve(programs.size());
  for (const KeptProgram& program : programs) wanted.push_back({&program.key, &program.source, &device});
  const auto fail = [&](const KeptProgram& program, const Status& status) {
    ++report.failed;
    if (report.first_failure.ok()) {
      report.first_failure = Status(status).within("program '" + program.key.label + "'");
    }
  };
  std::size_t answered = 0;
  const std::uint64_t begun = now_ns();
  cache.get_or_build_all(wanted, threads, [&](std::size_t place, Result<Acquired> acquired) {
    if (!acquired) {
      fail(programs[place], acquired.error());
    } else {
      ++report.linked;
      if (acquired->tier == Tier::built) ++report.built;
      const std::uint64_t linked = now_ns();
      const Status status = dispatch_nothing(device, *acquired->program);
      report.ready_ns += now_ns() - linked;
      if (status.ok()) {
        ++report.ready;
      } else {
        fail(programs[place], status);
      }
    }
    if (request.progress) request.progress(++answered, report.found);
    return !stop();
  });
  report.link_ns = now_ns() - begun - report.ready_ns;
  return report;
}

unsigned building_threads() noexcept {
  return std::clamp(std::thread::hardware_concurrency(), 1u, most_building_threads);
}

}  // namespace kiln
