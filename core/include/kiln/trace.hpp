// TraceSink: where an executor tells when each stage of each job began and ended.
//
// Thread-safety: add() is called from the executor's threads, several at once. Ownership: the sink outlives the
// executor; a span is borrowed for the call. Stages of one slot never overlap: a slot is one lane of a drawing.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln {

// job: from the moment a slot was given to it until its slot is free again; the others lie within it, in this order.
enum class Stage : std::uint8_t { invalid = 0, job, queue, build, upload, submit, device, readback };

std::string_view to_string(Stage stage) noexcept;

struct StageSpan {
  std::string_view device;  // its id
  std::string_view label;   // the plan's variant
  std::uint32_t slot = 0;   // from 0
  std::uint64_t fence = 0;  // the job's value on its queue's timeline
  Stage stage = Stage::invalid;
  std::uint64_t begin_ns = 0, end_ns = 0;  // by Device::clock_ns(), which for a device of this machine is now_ns()
};

class TraceSink {
 public:
  TraceSink() = default;
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;
  virtual ~TraceSink();

  virtual void add(const StageSpan& span) noexcept = 0;
};

}  // namespace kiln
