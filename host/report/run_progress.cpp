#include "report/run_progress.hpp"

#include <chrono>

namespace kiln::host {
namespace {

constexpr std::chrono::milliseconds redraw{100};
constexpr std::size_t bar_width = 20;

}  // namespace

std::string warming_text(const WarmingState& state) {
  if (!state.running || state.of == 0) return {};
  const std::size_t full = state.done * bar_width / state.of;
  return "warming [" + std::string(full, '#') + std::string(bar_width - full, '-') + "] " + std::to_string(state.done) +
         " of " + std::to_string(state.of);
}

RunProgress::RunProgress(Progress progress, const Runtime& runtime) : runtime_(runtime), line_(progress) {
  if (line_.is_redrawn() && runtime_.warming().running) thread_ = std::thread([this] { follow(); });
}

RunProgress::~RunProgress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RunProgress::job(std::string text) {
  const std::lock_guard lock(mutex_);
  job_ = std::move(text);
  draw();
}

void RunProgress::follow() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, redraw, [this] { return ended_; })) {
    draw();
    if (!runtime_.warming().running) break;
  }
}

void RunProgress::draw() {
  const std::string warming = line_.is_redrawn() ? warming_text(runtime_.warming()) : std::string();
  line_.show(warming.empty() ? job_ : job_ + "; " + warming);
}

}  // namespace kiln::host
