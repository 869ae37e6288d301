// BuildingContexts: contexts beside the one that dispatches, each on its own thread, in which programs are built,
// loaded and read while dispatches go on, several at a time.
//
// Thread-safety: every method from any thread. Ownership: owns threads and contexts; a Lease borrows one of them, and
// ends before them.
#pragma once

#include "egl/egl_context.hpp"
#include "gl/context_thread.hpp"

#include <kiln/status.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kiln::opengl {

class BuildingContexts {
  struct One {
    std::unique_ptr<ContextThread> thread;
    std::unique_ptr<EglContext> context;  // touched on the thread
    bool lent = false;
  };

 public:
  // A context for one caller at a time.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), one_(other.one_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (owner_ != nullptr) owner_->give_back(one_);
    }
    ContextThread& thread() const noexcept { return *one_->thread; }

   private:
    friend class BuildingContexts;
    Lease(BuildingContexts* owner, One* one) noexcept : owner_(owner), one_(one) {}
    BuildingContexts* owner_;
    One* one_;
  };

  // at_start runs once on each context's thread. patience: how long all may be lent without one coming back.
  BuildingContexts(std::size_t most, std::function<void()> at_start,
                   std::chrono::nanoseconds patience = std::chrono::seconds(30));
  ~BuildingContexts();

  // Waits while all are lent. The first calls make the contexts, each a sibling of `first`. timeout: none came back, so
  // that the driver hangs in all of them.
  Result<Lease> take(const EglContext& first);

 private:
  Status all_are_lent() const;
  void give_back(One* one);

  const std::size_t most_;
  const std::function<void()> at_start_;
  const std::chrono::nanoseconds patience_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::uint64_t times_given_back_ = 0;
  std::vector<std::unique_ptr<One>> all_;
};

}  // namespace kiln::opengl
