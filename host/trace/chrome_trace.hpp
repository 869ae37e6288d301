// ChromeTrace: collects what an executor tells and writes it as Chrome trace events, which Perfetto and
// chrome://tracing open: a process a device, a lane a slot, each job with its stages inside.
//
// Thread-safety: add() from any thread; json() when nothing is told any more. Ownership: a value that holds all spans.
// Times are microseconds from the first span; the device's own stamps have been laid on the host's clock by then.
#pragma once

#include <kiln/trace.hpp>

#include <mutex>
#include <string>
#include <vector>

namespace kiln::host {

class ChromeTrace final : public TraceSink {
 public:
  void add(const StageSpan& span) noexcept override;
  std::string json() const;

 private:
  struct Span {
    std::size_t device = 0, label = 0;  // into the two lists of names
    std::uint32_t slot = 0;
    Stage stage = Stage::invalid;
    std::uint64_t fence = 0, begin_ns = 0, end_ns = 0;
  };
  static std::size_t index_of(std::vector<std::string>& names, std::string_view name);

  mutable std::mutex mutex_;
  std::vector<std::string> devices_, labels_;
  std::vector<Span> spans_;
  std::uint64_t dropped_ = 0;  // for want of memory
};

}  // namespace kiln::host
