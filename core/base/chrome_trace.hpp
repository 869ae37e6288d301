// ChromeTrace: collects what Kiln's parts tell and writes it as Chrome trace events, which Perfetto and
// chrome://tracing open: a process a device, with a lane a slot, each job with its stages inside; and one process for
// the rest, with a lane for each area and thread. An arrow leads from a choice of device to the first job that followed
// it.
//
// Thread-safety: every method from any thread. Ownership: a value that
// holds all of it. Times are microseconds from the first event; devices' own stamps have been laid on the host's clock
// by then. In a lane events stand in the order of their times, an outer one before those inside it.
#pragma once

#include <kiln/trace.hpp>

#include <array>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kiln {

class ChromeTrace final : public TraceSink {
 public:
  void add_job(std::span<const StageSpan> stages) noexcept override;
  void add_event(const TraceEvent& event) noexcept override;
  void add_link(const TraceLink& link) noexcept override;
  std::string json() const;
  // The same, and forgets it.
  std::string take_json();

 private:
  friend class ChromeTraceText;
  struct Times {
    std::uint64_t begin_ns = 0, end_ns = 0;  // both 0: not told
  };
  struct Job {
    std::uint32_t device = 0, label = 0;  // into the two lists of names
    std::uint32_t slot = 0;
    std::uint64_t fence = 0;
    std::array<Times, 7> stages;  // from Stage::job on
  };
  struct Figure {
    std::string name;
    std::variant<std::uint64_t, double, std::string> value;
  };
  struct Lane {  // of the process that is no device's
    TraceArea area = TraceArea::invalid;
    std::uint32_t thread = 0;  // in the order in which they were met
    auto operator<=>(const Lane&) const = default;
  };
  struct Event {
    Lane lane;
    std::string name;
    std::uint64_t begin_ns = 0;
    std::optional<std::uint64_t> end_ns;
    std::size_t figures = 0, first_figure = 0;  // so many, from there in figures_
  };
  struct Link {
    Lane lane;
    std::uint64_t at_ns = 0;
    std::uint32_t device = 0;
    std::uint64_t fence = 0;
  };

  static std::uint32_t index_of(std::vector<std::string>& names, std::string_view name);
  Lane lane_of(TraceArea area);  // for the thread that asks

  mutable std::mutex mutex_;  // guards all that follows
  std::vector<std::string> devices_, labels_;
  std::vector<std::thread::id> threads_;
  std::deque<Job> jobs_;  // never moved: who tells waits for no copy of what was told before
  std::deque<Event> events_;
  std::deque<Figure> figures_;
  std::deque<Link> links_;
  std::uint64_t dropped_ = 0;  // for want of memory
};

}  // namespace kiln
