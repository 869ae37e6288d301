#include "adopt/adopted_context.hpp"

#include <utility>

namespace kiln::opengl {
namespace {

constexpr const char* id = "opengl:adopted";

GLADapiproc find_function(void* find, const char* name) { return (*static_cast<FindGlFunction*>(find))(name); }

std::string text_of(const GLubyte* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

bool is_software(const std::string& renderer) {
  for (const char* name : {"llvmpipe", "softpipe", "SWR"}) {
    if (renderer.starts_with(name)) return true;
  }
  return false;
}

}  // namespace

AdoptedContext::AdoptedContext(FindGlFunction find, Log log)
    : log_(log),
      egl_current_(reinterpret_cast<CurrentFunction>(find("eglGetCurrentContext"))),
      egl_context_(egl_current_ == nullptr ? nullptr : egl_current_()),
      current_{gl_, id, DeviceKind::gpu, false, [this](std::string_view doing) { return check(doing); }} {}

Result<std::shared_ptr<AdoptedContext>> AdoptedContext::adopt(FindGlFunction find, Log log) {
  if (find == nullptr) return invalid_argument(std::string(id) + ": no function that finds OpenGL's functions");
  auto context = std::make_shared<AdoptedContext>(find, log);
  if (Status status = context->load(find); !status.ok()) return status.within(id);
  return context;
}

Status AdoptedContext::load(FindGlFunction find) {
  // Asked before the loader, which cannot tell "none is current" from "too old".
  const auto get_string = reinterpret_cast<PFNGLGETSTRINGPROC>(find("glGetString"));
  const std::string version = get_string == nullptr ? std::string() : text_of(get_string(GL_VERSION));
  if (version.empty()) return unavailable("no OpenGL context is current on this thread");
  const int found = gladLoadGLContextUserPtr(&gl_, find_function, &find);
  if (found < GLAD_MAKE_VERSION(4, 3)) {
    return unsupported("the current context is '" + version + "': no compute programs, expected OpenGL 4.3 or newer");
  }
  current_.mesa = version.find("Mesa") != std::string::npos;
  if (is_software(text_of(gl_.GetString(GL_RENDERER)))) current_.kind = DeviceKind::software;
  return {};
}

Status AdoptedContext::is_current() const {
  if (std::this_thread::get_id() != thread_) {
    return unavailable(std::string(id) + ": called on another thread than the one that adopted the context");
  }
  if (egl_context_ != nullptr && egl_current_() != egl_context_) {
    const std::string is = egl_current_() == nullptr ? "no context" : "another context";
    return unavailable(std::string(id) + ": " + is + " is current on this thread, expected the adopted one");
  }
  return {};
}

Status AdoptedContext::enter() {
  if (Status status = is_current(); !status.ok()) return status;
  if (const Status left = take_errors(gl_, "before Kiln was called"); !left.ok()) {
    if (left.code == StatusCode::device_lost) return left.within(id);
    log_.write(LogLevel::warning, "opengl", std::string(id) + ": an error of the application's: " + left.message);
  }
  std::vector<GLuint> programs;
  {
    const std::lock_guard lock(mutex_);
    programs.swap(dropped_);
  }
  for (const GLuint program : programs) gl_.DeleteProgram(program);
  return {};
}

Status AdoptedContext::check(std::string_view doing) {
  Status status = take_errors(gl_, doing);
  const GLenum reset = gl_.GetGraphicsResetStatus != nullptr ? gl_.GetGraphicsResetStatus() : GL_NO_ERROR;
  if (reset == GL_NO_ERROR) return status.within(id);
  return device_lost(std::string(id) + ": the context was lost (" + reset_name(reset) + "); adopt a new one");
}

void AdoptedContext::drop(GLuint program) {
  // At once only where the context is certainly the current one; names mean something else in another.
  if (egl_context_ != nullptr && is_current().ok()) return gl_.DeleteProgram(program);
  const std::lock_guard lock(mutex_);
  if (!closed_) dropped_.push_back(program);
}

void AdoptedContext::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  dropped_.clear();
}

}  // namespace kiln::opengl
