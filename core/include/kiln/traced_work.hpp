// TracedWork: a scope that reports its duration and figures to a trace sink as one span.
//
// Without a sink, the object does nothing and reads no clock.
// Thread-safety: one thread creates and ends it. Ownership: the object borrows the sink, and the texts of figures until it
// ends.
//
//   kiln::TracedWork work(trace, kiln::TraceArea::build, "build");
//   work.figure("bytes", std::uint64_t{4096});
#pragma once

#include <kiln/clock.hpp>
#include <kiln/trace.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

namespace [[gnu::visibility("default")]] kiln {

class TracedWork {
 public:
  TracedWork(TraceSink* sink, TraceArea area, std::string_view name) noexcept : sink_(sink), area_(area), name_(name) {
    if (sink_ != nullptr) begin_ns_ = now_ns();
  }
  TracedWork(const TracedWork&) = delete;
  TracedWork& operator=(const TracedWork&) = delete;
  ~TracedWork() { end(); }

  // Figures after the eighth are dropped.
  void figure(std::string_view name, std::variant<std::uint64_t, double, std::string_view> value) noexcept {
    if (sink_ != nullptr && count_ < most) std::construct_at(&figures_.all[count_++], TraceFigure{name, value});
  }
  // Reports the span; a second call does nothing.
  void end() noexcept {
    TraceSink* const sink = std::exchange(sink_, nullptr);
    if (sink != nullptr) sink->add_event({area_, name_, begin_ns_, now_ns(), std::span(figures_.all, count_)});
  }
  // Start time in nanoseconds; 0 without a sink.
  std::uint64_t begin_ns() const noexcept { return begin_ns_; }

 private:
  static constexpr std::size_t most = 8;
  union Figures {  // constructs only the figures in use
    Figures() noexcept {}
    TraceFigure all[most];
  };

  TraceSink* sink_;
  const TraceArea area_;
  const std::string_view name_;
  std::uint64_t begin_ns_ = 0;
  std::size_t count_ = 0;
  Figures figures_;
};

}  // namespace kiln
