#include "gl/context_thread.hpp"

namespace kiln::opengl {

ContextThread::ContextThread() : thread_([this] { run(); }) {}

ContextThread::~ContextThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ContextThread::post(Task task) {
  {
    std::unique_lock lock(mutex_);
    if (!on_this_thread()) shrank_.wait(lock, [this] { return tasks_.size() < most_waiting; });
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ContextThread::wait_for(const std::function<void()>& task) {
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  post([&] {
    task();
    const std::lock_guard lock(mutex);  // held while notifying: the waiter's frame may be gone right after
    done = true;
    done_changed.notify_one();
  });
  std::unique_lock lock(mutex);
  done_changed.wait(lock, [&done] { return done; });
}

void ContextThread::run() {
  Pump state = Pump::idle;
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      if (state == Pump::idle) changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
        shrank_.notify_one();
      } else if (stopping_) {
        return;
      }
    }
    const bool had_task = static_cast<bool>(task);
    if (had_task) task();
    task = nullptr;
    state = pump_ ? pump_(!had_task) : Pump::idle;
  }
}

}  // namespace kiln::opengl
