#include "context_thread.hpp"

#include <kiln/clock.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>

#include <exception>

namespace kiln::opengl {
namespace {

// About what waking a thread costs: looking longer would only take a core from others.
constexpr std::uint64_t look_ns = 60'000;

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Done>
void look_for(const Done& done) {
  static const bool alone = host_cores() < 2;
  if (alone) return;
  const std::uint64_t end = now_ns() + look_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return;
      relax();
    }
  } while (now_ns() < end);
}

}  // namespace

Result<std::unique_ptr<ContextThread>> ContextThread::start() {
  std::unique_ptr<ContextThread> made(new ContextThread);
  // Its work begins when thread_ is known: on_this_thread() is asked there.
  const std::unique_lock lock(made->mutex_);
  auto thread = start_thread([at = made.get()] { at->run(); });
  if (!thread) return std::move(thread).error();
  made->thread_ = std::move(*thread);
  return made;
}

ContextThread::~ContextThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ContextThread::post(Task task) { add(std::move(task), tasks_); }

void ContextThread::add(Task task, std::deque<Task>& to) {
  {
    std::unique_lock lock(mutex_);
    if (!on_this_thread()) shrank_.wait(lock, [&to] { return to.size() < most_waiting; });
    to.push_back(std::move(task));
    posted_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_one();
}

void ContextThread::wait_for(const std::function<void()>& task) {
  std::mutex mutex;
  std::condition_variable done_changed;
  std::atomic<bool> done{false};
  std::exception_ptr failure;
  post([&] {
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);  // held while notifying: the waiter's frame may be gone right after
    done.store(true, std::memory_order_release);
    done_changed.notify_one();
  });
  look_for([&] { return done.load(std::memory_order_acquire); });
  std::unique_lock lock(mutex);
  done_changed.wait(lock, [&done] { return done.load(std::memory_order_relaxed); });
  if (failure) std::rethrow_exception(failure);
}

void ContextThread::wait_for_begin(std::chrono::nanoseconds patience, const std::function<void()>& task) {
  enum class State : unsigned char { posted, begun, done, withdrawn };
  struct Call {
    std::mutex mutex;
    std::condition_variable changed;
    State state = State::posted;
    std::exception_ptr failure;
  };
  const auto call = std::make_shared<Call>();  // the task may be withdrawn, and taken from the queue later
  const auto move_on = [](Call& at, State from, State to) {
    const std::lock_guard lock(at.mutex);
    if (at.state != from) return false;
    at.state = to;
    return true;
  };
  const auto begin = [call, move_on, &task] {
    if (!move_on(*call, State::posted, State::begun)) return;
    try {
      task();
    } catch (...) {
      call->failure = std::current_exception();
    }
    move_on(*call, State::begun, State::done);
    call->changed.notify_one();
  };
  add(begin, later_);
  std::unique_lock lock(call->mutex);
  const auto is_done = [&] { return call->state == State::done; };
  if (!call->changed.wait_for(lock, patience, is_done) && call->state == State::posted) {
    call->state = State::withdrawn;
    return;
  }
  call->changed.wait(lock, is_done);
  if (call->failure) std::rethrow_exception(call->failure);
}

void ContextThread::run() {
  prefer_huge_pages();
  Pump state = Pump::idle;
  std::size_t taken = 0;
  for (;;) {
    Task task;
    if (state == Pump::idle) look_for([&] { return posted_.load(std::memory_order_acquire) != taken; });
    {
      std::unique_lock lock(mutex_);
      const auto has_task = [this] { return !tasks_.empty() || !later_.empty(); };
      if (state == Pump::idle) changed_.wait(lock, [&] { return stopping_ || has_task(); });
      if (has_task()) {
        std::deque<Task>& from = tasks_.empty() ? later_ : tasks_;
        task = std::move(from.front());
        from.pop_front();
        ++taken;
        shrank_.notify_all();
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
