// ContextGroup: the OpenGL contexts of one device: one that runs dispatches, and those that build and load programs, so
// that a compilation holds up neither a dispatch nor another compilation. They share programs and buffers.
//
// Thread-safety: every method from any thread unless it says otherwise. Ownership: shared by the device and its
// programs: whoever goes last ends the threads, so it is never held by a closure on them.
#pragma once

#include "egl/egl_context.hpp"
#include "gl/building_contexts.hpp"
#include "gl/context_thread.hpp"
#include "gl/gl_error.hpp"

#include <kiln/log.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kiln::opengl {

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

  // device_lost once the context was lost, until the device is opened again.
  Status alive() const;
  // On a context's thread: the errors since the last check, and whether the context was reset.
  Status check(std::string_view doing);

 private:
  Status start_execution(std::shared_ptr<const EglApi> api, const EglDevice& device, DebugOutput debug);
  void listen();  // on a context's thread: its debug messages go to the log, where that was asked for

  std::string id_;
  Log log_;
  EglDisplay display_;
  Gl gl_{};
  DebugOutput debug_ = DebugOutput::off;
  std::atomic<GLenum> reset_{GL_NO_ERROR};
  std::atomic<bool> dispatched_{false};
  std::unique_ptr<EglContext> execution_context_;  // touched on its thread, and read to make its sibling
  std::atomic<bool> execution_builds_{false};
  std::unique_ptr<ContextThread> execution_;
  BuildingContexts building_;
};

}  // namespace kiln::opengl
