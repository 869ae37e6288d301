#include "runtime/warming/background_builder.hpp"

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
  if (ending_ || !asked_.insert(name).second) return false;
  waiting_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
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
    work();
    lock.lock();
    busy_ = false;
  }
}

}  // namespace kiln
