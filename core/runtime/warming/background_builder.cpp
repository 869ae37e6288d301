#include "runtime/warming/background_builder.hpp"

#include <kiln/process_limits.hpp>

namespace kiln {

BackgroundBuilder::~BackgroundBuilder() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundBuilder::ask(const std::string& name, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (ending_ || asked_.contains(name)) return false;
  if (!thread_.joinable()) {
    auto thread = start_thread([this] { serve(); });
    if (!thread) return false;  // it may be asked for again
    thread_ = std::move(*thread);
  }
  waiting_.push_back(std::move(work));
  asked_.insert(name);
  changed_.notify_all();
  return true;
}

bool BackgroundBuilder::was_asked(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return asked_.contains(name);
}

bool BackgroundBuilder::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !busy_;
}

void BackgroundBuilder::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    try {
      work();
    } catch (...) {  // out of memory: it is what can be done without
    }
    lock.lock();
    busy_ = false;
  }
}

}  // namespace kiln
