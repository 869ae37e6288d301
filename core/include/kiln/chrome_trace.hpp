// ChromeTrace: collects trace spans and writes them as Chrome trace events, for Perfetto and chrome://tracing.
//
// Each device is a process with one lane per slot. A job contains its stages. One more process has one lane per area and
// thread. An arrow connects a choice of device with the first job after it. Times are in microseconds since the first
// event, on the host's clock. Events of a lane are sorted by time, and outer events come before inner events.
// Thread-safety: every method from any thread. Ownership: a value that owns all spans.
//
//   kiln::ChromeTrace spans;
//   auto traced = kiln::Runtime::create(config, registry, {}, &spans);
//   std::cout << spans.json();
#pragma once

#include <kiln/trace.hpp>

#include <array>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

class ChromeTrace final : public TraceSink {
 public:
  void add_job(std::span<const StageSpan> stages) noexcept override;
  void add_event(const TraceEvent& event) noexcept override;
  void add_link(const TraceLink& link) noexcept override;
  std::string json() const;
  // Returns json() and removes all spans.
  std::string take_json();

 private:
  friend class ChromeTraceText;
  struct Times {
    std::uint64_t begin_ns = 0, end_ns = 0;  // both 0: not recorded
  };
  struct Job {
    std::uint32_t device = 0, label = 0;  // indices into the lists of names
    std::uint32_t slot = 0;
    std::uint64_t fence = 0;
    std::array<Times, 7> stages;  // from Stage::job on
  };
  struct Figure {
    std::string name;
    std::variant<std::uint64_t, double, std::string> value;
  };
  struct Lane {  // of the process that is not a device
    TraceArea area = TraceArea::invalid;
    std::uint32_t thread = 0;  // numbered by first use
    auto operator<=>(const Lane&) const = default;
  };
  struct Event {
    Lane lane;
    std::string name;
    std::uint64_t begin_ns = 0;
    std::optional<std::uint64_t> end_ns;
    std::size_t figures = 0, first_figure = 0;  // number, and index of the first in figures_
  };
  struct Link {
    Lane lane;
    std::uint64_t at_ns = 0;
    std::uint32_t device = 0;
    std::uint64_t fence = 0;
  };

  static std::uint32_t index_of(std::vector<std::string>& names, std::string_view name);
  Lane lane_of(TraceArea area);  // for the calling thread

  mutable std::mutex mutex_;  // guards the following members
  std::vector<std::string> devices_, labels_;
  std::vector<std::thread::id> threads_;
  std::deque<Job> jobs_;  // a deque, so that adding a job never copies earlier ones
  std::deque<Event> events_;
  std::deque<Figure> figures_;
  std::deque<Link> links_;
  std::uint64_t dropped_ = 0;  // out of memory
};

}  // namespace kiln
