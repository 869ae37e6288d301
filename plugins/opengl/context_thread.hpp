// ContextThread: the one thread on which an OpenGL context is current. Others hand it closures.
//
// Both sides look for one another for some microseconds before they sleep: waking a sleeping thread takes longer than
// most of what is asked for here. Thread-safety: post() and call() from any thread, also from the thread itself.
// Ownership: closures are destroyed on the context's thread; what was posted before the destructor still runs. A
// closure never owns the ContextThread.
#pragma once

#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace kiln::opengl {

class ContextThread {
 public:
  using Task = std::function<void()>;
  enum class Pump : bool { idle, busy };
  // What the thread does between tasks while work is in flight. patient: nothing else waits, it may block for a slice.
  using PumpTask = std::function<Pump(bool patient)>;

  // unavailable: the system gives no thread.
  static Result<std::unique_ptr<ContextThread>> start();
  ContextThread(const ContextThread&) = delete;
  ContextThread& operator=(const ContextThread&) = delete;
  ~ContextThread();

  // Runs after everything posted before. Blocks while `most_waiting` tasks wait, but never on the thread itself. The
  // task throws nothing.
  void post(Task task);

  // Runs the function on the thread and answers what it answers, or throws what it throws.
  template <class Function>
  std::invoke_result_t<Function&> call(Function function) {
    using Answer = std::invoke_result_t<Function&>;
    if (on_this_thread()) return function();
    if constexpr (std::is_void_v<Answer>) {
      wait_for([&function] { function(); });
    } else {
      std::optional<Answer> answer;
      wait_for([&] { answer.emplace(function()); });
      return std::move(*answer);
    }
  }

  // The same, once nothing that was posted waits, if the thread begins it within `patience`; nullopt: it did not, and
  // will not. `function` answers a value.
  template <class Function>
  std::optional<std::invoke_result_t<Function&>> call_within(std::chrono::nanoseconds patience, Function function) {
    if (on_this_thread()) return function();
    std::optional<std::invoke_result_t<Function&>> answer;
    wait_for_begin(patience, [&] { answer.emplace(function()); });
    return answer;
  }

  // On the thread itself; it is first called after the task that set it.
  void set_pump(PumpTask pump) { pump_ = std::move(pump); }
  bool on_this_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  static constexpr std::size_t most_waiting = 256;

  ContextThread() = default;
  void run();
  void add(Task task, std::deque<Task>& to);
  void wait_for(const std::function<void()>& task);
  void wait_for_begin(std::chrono::nanoseconds patience, const std::function<void()>& task);

  std::atomic<std::size_t> posted_{0};  // tasks so far; changed under mutex_, watched without it
  std::mutex mutex_;
  std::condition_variable changed_;  // tasks_ grew, or stopping_
  std::condition_variable shrank_;   // tasks_ shrank
  std::deque<Task> tasks_;
  std::deque<Task> later_;  // begins where there are no tasks_
  bool stopping_ = false;
  PumpTask pump_;       // touched on the thread only
  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace kiln::opengl
