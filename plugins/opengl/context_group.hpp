// The contexts of one device: the executing one, the building ones, and the facts that the first one gives.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/buffer.hpp>
#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include "codec/context.hpp"
#include "context_thread.hpp"
#include "egl.hpp"

namespace kiln::opengl {

// BuildingContexts: contexts beside the one that dispatches, each on its own thread, in which programs are built,
// loaded and read while dispatches go on, several at a time.
//
// Thread-safety: every method from any thread. Ownership: owns threads and contexts; a Lease borrows one of them, and
// ends before them.
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

// ContextGroup: the OpenGL contexts of one device: one that runs dispatches, and those that build and load programs, so
// that a compilation holds up neither a dispatch nor another compilation. They share programs and buffers.
//
// Thread-safety: every method from any thread unless it says otherwise. Ownership: shared by the device and its
// programs: whoever goes last ends the threads, so it is never held by a closure on them.
class ContextGroup {
 public:
  // Opens the display and the first context on its new thread. id: the device's, for messages.
  static Result<std::shared_ptr<ContextGroup>> open(std::shared_ptr<const EglApi> api, const EglDevice& device,
                                                    std::string id, DebugOutput debug, Log log);
  explicit ContextGroup(std::string id, Log log, std::unique_ptr<ContextThread> execution);
  ContextGroup(const ContextGroup&) = delete;
  ContextGroup& operator=(const ContextGroup&) = delete;
  ~ContextGroup();

  const std::string& id() const noexcept { return id_; }
  const EglDisplay& display() const noexcept { return display_; }
  const Gl& gl() const noexcept { return gl_; }
  NativeFences native_fences() const { return NativeFences::find(execution_context_->api(), display_.handle); }
  Log log() const noexcept { return log_; }

  // Where one caller builds, loads or reads a program.
  class Builder {
   public:
    explicit Builder(ContextGroup& group) noexcept : group_(&group) {}
    explicit Builder(BuildingContexts::Lease lease) noexcept : lease_(std::move(lease)) {}
    Builder(Builder&& other) noexcept : group_(std::exchange(other.group_, nullptr)), lease_(std::move(other.lease_)) {}
    Builder& operator=(Builder&&) = delete;
    ~Builder() {
      if (group_ != nullptr) group_->execution_builds_.store(false, std::memory_order_release);
    }
    ContextThread& thread() const noexcept { return lease_ ? lease_->thread() : *group_->execution_; }
    // It is not the context that dispatches.
    bool apart() const noexcept { return lease_.has_value(); }

   private:
    ContextGroup* group_ = nullptr;  // lends its execution context
    std::optional<BuildingContexts::Lease> lease_;
  };

  ContextThread& execution() noexcept { return *execution_; }
  // Another context costs milliseconds and is not made before there is something to hold up: until the first dispatch
  // one caller at a time is lent the execution context.
  Result<Builder> building();
  void note_dispatch() noexcept { dispatched_.store(true, std::memory_order_relaxed); }

  // From here on alive() and check() also ask the node, because Mesa reports no reset where its device was taken away.
  void watch(const std::string& node);
  // device_lost once the context was lost or the device was taken away, until the device is opened again.
  Status alive() const;
  // On a context's thread: the errors since the last check, and whether the context was reset.
  Status check(std::string_view doing);

 private:
  Status start_execution(std::shared_ptr<const EglApi> api, const EglDevice& device, DebugOutput debug);
  bool is_gone() const noexcept;
  void listen();  // on a context's thread: its debug messages go to the log, where that was asked for

  std::string id_;
  Log log_;
  EglDisplay display_;
  Gl gl_{};
  DebugOutput debug_ = DebugOutput::off;
  std::atomic<GLenum> reset_{GL_NO_ERROR};
  std::string node_name_;
  UniqueFd node_;  // of a device that can be taken away
  mutable std::atomic<bool> gone_{false};
  std::atomic<bool> dispatched_{false};
  std::unique_ptr<EglContext> execution_context_;  // touched on its thread, and read to make its sibling
  std::atomic<bool> execution_builds_{false};
  std::unique_ptr<ContextThread> execution_;
  BuildingContexts building_;
};

// The facts of an opened device: what its first context tells.
//
// Thread-safety: runs on a context's thread. Ownership: values.

// A thread's current context of the group, as the codec sees it; valid as long as the group.
CurrentContext current_context(ContextGroup& group);

Result<Facts> read_facts(ContextGroup& group, DriverNotes* notes);

}  // namespace kiln::opengl
