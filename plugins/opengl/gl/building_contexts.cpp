#include "gl/building_contexts.hpp"

#include <algorithm>

namespace kiln::opengl {

BuildingContexts::BuildingContexts(std::size_t most, std::function<void()> at_start, std::chrono::nanoseconds patience)
    : most_(std::max<std::size_t>(most, 1)), at_start_(std::move(at_start)), patience_(patience) {}

BuildingContexts::~BuildingContexts() {
  for (const auto& one : all_) {
    try {
      one->thread->call([&one] { one->context.reset(); });
    } catch (...) {  // out of memory: the context is destroyed on this thread
    }
  }
}

Result<BuildingContexts::Lease> BuildingContexts::take(const EglContext& first) {
  std::unique_lock lock(mutex_);
  for (;;) {
    for (const auto& one : all_) {
      if (!std::exchange(one->lent, true)) return Lease(this, one.get());
    }
    if (all_.size() < most_) break;
    // Somebody else may be first to take what comes back: what counts is that it goes on.
    const std::uint64_t before = times_given_back_;
    if (!given_back_.wait_for(lock, patience_, [&] { return times_given_back_ != before; })) return all_are_lent();
  }
  auto thread = ContextThread::start();
  if (!thread) return std::move(thread).error();
  all_.push_back(std::make_unique<One>());
  One& one = *all_.back();
  one.thread = std::move(*thread);
  one.lent = true;
  lock.unlock();
  const auto make = [&first]() -> Result<std::unique_ptr<EglContext>> {
    try {
      return EglContext::create_shared(first);
    } catch (...) {
      return caught();
    }
  };
  auto context = one.thread->call(make);
  if (context) {
    one.context = std::move(context).value();
    one.thread->post(at_start_);
    return Lease(this, &one);
  }
  // Those that wait try for themselves: what made this one fail may be over.
  std::unique_ptr<One> failed;
  lock.lock();
  const auto at = std::find_if(all_.begin(), all_.end(), [&one](const auto& each) { return each.get() == &one; });
  failed = std::move(*at);
  all_.erase(at);
  ++times_given_back_;
  given_back_.notify_all();
  return context.error();
}

Status BuildingContexts::all_are_lent() const {
  const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience_).count();
  return timed_out("all " + std::to_string(most_) + " are in use, and for " + std::to_string(waited_ms) +
                   " ms none came back");
}

void BuildingContexts::give_back(One* one) {
  const std::lock_guard lock(mutex_);
  one->lent = false;
  ++times_given_back_;
  given_back_.notify_one();
}

}  // namespace kiln::opengl
