// TraceSink: where Kiln's parts tell what they did and when: an executor every stage of every job, the others their
// work and what they decided, with the numbers behind it.
//
// Thread-safety: every method is called from any thread, also from several at once. Ownership: the sink outlives
// whoever was given it; what it is told is borrowed for the call. All times are by one clock: now_ns(), on which
// devices lay their own. Who was given no sink looks at that once and reads no clock; hits in the program cache's
// memory are told by nobody, so that their path is the same with a sink and without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace kiln {

// job: from the moment a slot was given to it until its slot is free again; the others lie within it, in this order.
enum class Stage : std::uint8_t { invalid = 0, job, queue, build, upload, submit, device, readback };

std::string_view to_string(Stage stage) noexcept;

// Stages of one slot never overlap: a slot is one lane of a drawing.
struct StageSpan {
  std::string_view device;  // its id
  std::string_view label;   // the plan's variant
  std::uint32_t slot = 0;   // from 0
  std::uint64_t fence = 0;  // the job's value on its queue's timeline
  Stage stage = Stage::invalid;
  std::uint64_t begin_ns = 0, end_ns = 0;  // by Device::clock_ns(), which for a device of this machine is now_ns()
};

// What a part of Kiln works at outside the slots. runtime: requests as a whole; cache: finding and keeping programs,
// and their first dispatches; build: compilers; selector and tuner: which device and which variant serve.
enum class TraceArea : std::uint8_t { invalid = 0, runtime, cache, build, selector, tuner };

std::string_view to_string(TraceArea area) noexcept;

struct TraceFigure {
  std::string_view name;  // with its unit: "cost_ms"
  std::variant<std::uint64_t, double, std::string_view> value;
};

// Work of the thread that tells it, or, where it has no end, a moment at which something was decided. What one thread
// tells of one area nests: spans never cross.
struct TraceEvent {
  TraceArea area = TraceArea::invalid;
  std::string_view name;
  std::uint64_t begin_ns = 0;
  std::optional<std::uint64_t> end_ns;
  std::span<const TraceFigure> figures;
};

// A job followed from what the telling thread was at: at that moment, which lies in a span that this thread tells of
// that area.
struct TraceLink {
  TraceArea area = TraceArea::invalid;
  std::uint64_t at_ns = 0;
  std::string_view device;  // of the job, as in StageSpan
  std::uint64_t fence = 0;
};

class TraceSink {
 public:
  TraceSink() = default;
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;
  virtual ~TraceSink();

  // All stages of one job, the job itself first.
  virtual void add_job(std::span<const StageSpan> stages) noexcept = 0;
  // By default passed over, as by a sink that is about jobs alone.
  virtual void add_event(const TraceEvent& event) noexcept;
  virtual void add_link(const TraceLink& link) noexcept;
};

}  // namespace kiln
