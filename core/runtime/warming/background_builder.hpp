// BackgroundBuilder: one thread that does named pieces of work once each, beside the jobs: building programs ahead.
//
// Thread-safety: every method from any thread. Ownership: owns its thread, which starts with the first piece; the
// destructor drops what has not begun and waits for what has.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace kiln {

class BackgroundBuilder {
 public:
  BackgroundBuilder() = default;
  BackgroundBuilder(const BackgroundBuilder&) = delete;
  BackgroundBuilder& operator=(const BackgroundBuilder&) = delete;
  ~BackgroundBuilder();

  // False where a piece of that name was asked for before, done or not.
  bool ask(const std::string& name, std::function<void()> work);
  bool was_asked(const std::string& name) const;
  bool idle() const;

 private:
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::set<std::string> asked_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace kiln
