// TraceSink: receives the timing of jobs and the work and decisions of Kiln's components.
//
// Times are in nanoseconds of now_ns(); devices convert their times to this clock. Without a sink, components read no clock.
// The program cache does not trace memory hits, so a sink does not slow them down.
// Thread-safety: components call the methods from several threads at once. Ownership: the sink must outlive the objects
// that have it. Arguments are valid only during the call.
//
//   struct CountJobs final : kiln::TraceSink {
//     std::atomic<int> jobs{0};
//     void add_job(std::span<const kiln::StageSpan>) noexcept override { ++jobs; }
//   };
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace [[gnu::visibility("default")]] kiln {

// job: from the assignment of a slot to its release. The other stages are inside it, in this order.
enum class Stage : std::uint8_t { invalid = 0, job, queue, build, upload, submit, device, readback };

std::string_view to_string(Stage stage) noexcept;

// Stages of one slot do not overlap, except with their job.
struct StageSpan {
  std::string_view device;  // its id
  std::string_view label;   // variant of the plan
  std::uint32_t slot = 0;   // from 0
  std::uint64_t fence = 0;  // value of the job on its queue's timeline
  Stage stage = Stage::invalid;
  std::uint64_t begin_ns = 0, end_ns = 0;  // by Device::clock_ns(), which is now_ns() for a real device
};

// Component of work outside the slots. runtime: whole requests; cache: lookup, storage and first dispatches; build:
// compilers; selector and tuner: choice of device and variant.
enum class TraceArea : std::uint8_t { invalid = 0, runtime, cache, build, selector, tuner };

std::string_view to_string(TraceArea area) noexcept;

struct TraceFigure {
  std::string_view name;  // includes the unit: "cost_ms"
  std::variant<std::uint64_t, double, std::string_view> value;
};

// Work of the calling thread. Without end_ns, the event is a decision at one point in time. Spans of one thread and area
// nest.
struct TraceEvent {
  TraceArea area = TraceArea::invalid;
  std::string_view name;
  std::uint64_t begin_ns = 0;
  std::optional<std::uint64_t> end_ns;
  std::span<const TraceFigure> figures;
};

// Connects a job with the span of the calling thread and area that contains `at_ns`.
struct TraceLink {
  TraceArea area = TraceArea::invalid;
  std::uint64_t at_ns = 0;
  std::string_view device;  // device of the job, as in StageSpan
  std::uint64_t fence = 0;
};

class TraceSink {
 public:
  TraceSink() = default;
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;
  virtual ~TraceSink();

  // Reports all stages of one job, the stage `job` first.
  virtual void add_job(std::span<const StageSpan> stages) noexcept = 0;
  // The default implementations do nothing.
  virtual void add_event(const TraceEvent& event) noexcept;
  virtual void add_link(const TraceLink& link) noexcept;
};

}  // namespace kiln
