// TracedWork: a scope whose time a trace sink is told as one span, with figures that became known on the way.
//
// Thread-safety: one thread, which made it and ends it. Ownership: borrows the sink, and the texts of its figures until
// it ends. Without a sink it does nothing and reads no clock.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/trace.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

namespace kiln {

class TracedWork {
 public:
  TracedWork(TraceSink* sink, TraceArea area, std::string_view name) noexcept : sink_(sink), area_(area), name_(name) {
    if (sink_ != nullptr) begin_ns_ = now_ns();
  }
  TracedWork(const TracedWork&) = delete;
  TracedWork& operator=(const TracedWork&) = delete;
  ~TracedWork() { end(); }

  // Those beyond the eighth are left out.
  void figure(std::string_view name, std::variant<std::uint64_t, double, std::string_view> value) noexcept {
    if (sink_ != nullptr && count_ < most) std::construct_at(&figures_.all[count_++], TraceFigure{name, value});
  }
  // Tells the sink; a second time does nothing.
  void end() noexcept {
    TraceSink* const sink = std::exchange(sink_, nullptr);
    if (sink != nullptr) sink->add_event({area_, name_, begin_ns_, now_ns(), std::span(figures_.all, count_)});
  }
  // 0 without a sink.
  std::uint64_t begin_ns() const noexcept { return begin_ns_; }

 private:
  static constexpr std::size_t most = 8;
  union Figures {  // those that are there alone are made: what nobody wants costs nothing
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
