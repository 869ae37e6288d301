#include "context_group.hpp"

#include <kiln/host_processor.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstring>

namespace kiln::opengl {
namespace {

GLADapiproc find_function(void* api, const char* name) {
  return reinterpret_cast<GLADapiproc>(static_cast<const EglApi*>(api)->get_proc_address(name));
}

LogLevel level_of(GLenum severity) noexcept {
  switch (severity) {
    case GL_DEBUG_SEVERITY_HIGH:
      return LogLevel::error;
    case GL_DEBUG_SEVERITY_MEDIUM:
      return LogLevel::warning;
    case GL_DEBUG_SEVERITY_LOW:
      return LogLevel::info;
    default:
      return LogLevel::debug;
  }
}

void GLAD_API_PTR on_debug_message(GLenum, GLenum, GLuint, GLenum severity, GLsizei length, const GLchar* message,
                                   const void* user) {
  const std::size_t bytes = length < 0 ? std::strlen(message) : static_cast<std::size_t>(length);
  static_cast<const ContextGroup*>(user)->log().write(level_of(severity), "opengl", {message, bytes});
}

}  // namespace

ContextGroup::ContextGroup(std::string id, Log log, std::unique_ptr<ContextThread> execution)
    : id_(std::move(id)),
      log_(log),
      execution_(std::move(execution)),
      building_(host_cores(), [this] { listen(); }) {}

ContextGroup::~ContextGroup() {
  try {
    execution_->call([this] { execution_context_.reset(); });
  } catch (...) {  // out of memory: the context is destroyed on this thread
  }
}

Result<std::shared_ptr<ContextGroup>> ContextGroup::open(std::shared_ptr<const EglApi> api, const EglDevice& device,
                                                         std::string id, DebugOutput debug, Log log) {
  auto execution = ContextThread::start();
  if (!execution) return std::move(execution).error();
  auto group = std::make_shared<ContextGroup>(std::move(id), log, std::move(*execution));
  Status status = group->execution_->call([&] { return group->start_execution(std::move(api), device, debug); });
  if (!status.ok()) return status;
  return group;
}

Status ContextGroup::start_execution(std::shared_ptr<const EglApi> api, const EglDevice& device, DebugOutput debug) {
  auto display = open_display(*api, device);
  if (!display) return display.error();
  display_ = *display;
  auto context = EglContext::create(api, display_.handle, debug);
  if (!context) return context.error();
  execution_context_ = std::move(context).value();
  const int version = gladLoadGLContextUserPtr(&gl_, find_function, const_cast<EglApi*>(api.get()));
  if (version < GLAD_MAKE_VERSION(4, 3)) {
    return unavailable("the driver supports OpenGL " + std::to_string(GLAD_VERSION_MAJOR(version)) + "." +
                       std::to_string(GLAD_VERSION_MINOR(version)) + ", expected 4.3 or newer");
  }
  gl_.Enable(GL_TEXTURE_CUBE_MAP_SEAMLESS);  // as Vulkan always filters; off is a choice of OpenGL's context
  debug_ = debug;
  listen();
  return {};
}

void ContextGroup::listen() {
  if (debug_ != DebugOutput::on) return;
  gl_.Enable(GL_DEBUG_OUTPUT);
  gl_.DebugMessageCallback(on_debug_message, this);
}

Result<ContextGroup::Builder> ContextGroup::building() {
  if (!dispatched_.load(std::memory_order_relaxed) && !execution_builds_.exchange(true, std::memory_order_acquire)) {
    return Builder(*this);
  }
  auto lease = building_.take(*execution_context_);
  if (!lease) return lease.error().within(id_ + ": a context for building");
  return Builder(std::move(lease).value());
}

void ContextGroup::watch(const std::string& node) {
  if (node.empty()) return;
  node_name_ = node;
  node_ = UniqueFd(::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
}

bool ContextGroup::is_gone() const noexcept {
  if (!gone_.load(std::memory_order_relaxed) && node_ && drm_is_gone(node_.get())) gone_.store(true);
  return gone_.load(std::memory_order_relaxed);
}

Status ContextGroup::alive() const {
  if (is_gone()) return device_lost(id_ + ": " + node_name_ + ": the device was taken away");
  const GLenum reset = reset_.load(std::memory_order_relaxed);
  if (reset == GL_NO_ERROR) return {};
  return device_lost(id_ + ": the OpenGL context was lost (" + reset_name(reset) + "). Open the device again");
}

Status ContextGroup::check(std::string_view doing) {
  if (is_gone()) return alive();
  Status status = take_errors(gl_, doing);
  GLenum reset = gl_.GetGraphicsResetStatus != nullptr ? gl_.GetGraphicsResetStatus() : GL_NO_ERROR;
  if (reset == GL_NO_ERROR && status.code == StatusCode::device_lost) reset = GL_UNKNOWN_CONTEXT_RESET;
  if (reset != GL_NO_ERROR) {
    // The first reason stays: some drivers answer GL_NO_ERROR again once the reset is over.
    GLenum none = GL_NO_ERROR;
    if (reset_.compare_exchange_strong(none, reset)) log_.write(LogLevel::error, "opengl", alive().message);
  }
  if (Status lost = alive(); !lost.ok()) return lost;
  return status.within(id_);
}

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
  return timed_out("timed out after " + std::to_string(waited_ms) + " ms: all " + std::to_string(most_) +
                   " contexts are in use");
}

void BuildingContexts::give_back(One* one) {
  const std::lock_guard lock(mutex_);
  one->lent = false;
  ++times_given_back_;
  given_back_.notify_one();
}

CurrentContext current_context(ContextGroup& group) {
  return {group.gl(), group.id(), group.display().kind, group.display().mesa,
          [&group](std::string_view doing) { return group.check(doing); }};
}

Result<Facts> read_facts(ContextGroup& group, DriverNotes* notes) { return read_facts(current_context(group), notes); }

}  // namespace kiln::opengl
