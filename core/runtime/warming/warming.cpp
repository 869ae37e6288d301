#include "runtime/warming/warming.hpp"

#include "cache/driver_cache/driver_scratch.hpp"

#include <kiln/clock.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

namespace kiln {
namespace {

// A slot of the process table has marks for a few more: what each thread does is told to other processes.
constexpr unsigned most_building_threads = 16;

// A driver that makes a program's code while it is built writes it to its own cache on a thread of its own. The first
// dispatch finds it there a little later, and would make it again at once.
constexpr std::size_t most_behind_builds = 4;

}  // namespace

WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request, unsigned threads,
                         const std::function<void(const WarmReport&)>& told, std::chrono::nanoseconds patience,
                         TraceSink* trace) {
  WarmReport report;
  report.found = programs.size();
  bool hangs = false;
  const auto stop = [&] { return hangs || (request.stop != nullptr && request.stop->load()); };
  if (stop()) return report;
  std::vector<ProgramRequest> wanted;
  wanted.reserve(programs.size());
  for (const KeptProgram& program : programs) wanted.push_back({&program.key, &program.source, &device, true});
  const auto fail = [&](const KeptProgram& program, const Status& status) {
    ++report.failed;
    if (report.first_failure.ok()) {
      report.first_failure = Status(status).within("program '" + program.key.label + "'");
    }
  };
  std::size_t done = 0;
  const auto finish_one = [&] {
    if (request.progress) request.progress(++done, report.found);
  };
  const auto make_ready = [&](const KeptProgram& program, const Program& linked) {
    TracedWork dispatching(trace, TraceArea::cache, "first dispatch");
    dispatching.figure("program", program.key.label);
    const std::uint64_t begun = now_ns();
    const Status status = dispatch_nothing(device, linked, patience);
    report.ready_ns += now_ns() - begun;
    if (status.ok()) {
      ++report.ready;
    } else {
      hangs = status.code == StatusCode::timeout;
      fail(program, status);
    }
    finish_one();
  };
  std::deque<std::pair<std::size_t, ProgramHandle>> behind;
  const auto catch_up = [&](std::size_t most_behind) {
    for (; behind.size() > most_behind && !hangs; behind.pop_front()) {
      make_ready(programs[behind.front().first], *behind.front().second);
    }
  };
  const std::uint64_t begun = now_ns();
  cache.get_or_build_all(wanted, threads, [&](std::size_t place, Result<Acquired> acquired) {
    if (!acquired) {
      fail(programs[place], acquired.error());
      finish_one();
    } else {
      ++report.linked;
      if (acquired->tier == Tier::built) {
        ++report.built;
        behind.emplace_back(place, std::move(acquired->program));
        catch_up(most_behind_builds);
      } else {
        make_ready(programs[place], *acquired->program);
      }
    }
    if (told) told(report);
    return !stop();
  });
  if (!stop()) catch_up(0);
  if (told) told(report);
  report.link_ns = now_ns() - begun - report.ready_ns;
  return report;
}

unsigned building_threads() noexcept {
  return std::clamp(std::thread::hardware_concurrency(), 1u, most_building_threads);
}

}  // namespace kiln
