#include "adopt/adopted_device.hpp"
#include "codec/program_codec.hpp"
#include "codec/source_text.hpp"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <kiln/adopted_gl.hpp>
#include <kiln/clock.hpp>
#include <kiln/open_program_cache.hpp>

namespace kiln::opengl {
namespace {

class ProgramOfContext final : public Program {
 public:
  ProgramOfContext(std::shared_ptr<AdoptedContext> context, GLuint name, std::uint64_t charge, Reflection reflection)
      : context_(std::move(context)), name_(name), charge_(charge), reflection_(std::move(reflection)) {}
  ~ProgramOfContext() override { context_->drop(name_); }

  std::uint64_t charge() const noexcept override { return charge_; }
  GLuint name() const noexcept { return name_; }
  const AdoptedContext& context() const noexcept { return *context_; }
  const ProgramInterface* interface(const KernelSource&) const noexcept override { return &reflection_.interface; }
  const Reflection& reflection() const noexcept { return reflection_; }

  // The bytes of the program as it was linked: what is read from it later holds the block bindings of its holder.
  mutable std::optional<ProgramBinary> binary;
  mutable bool has_holder = false;  // since it was linked

 private:
  const std::shared_ptr<AdoptedContext> context_;
  const GLuint name_;
  const std::uint64_t charge_;
  const Reflection reflection_;
};

Result<std::unique_ptr<Program>> finish(const std::shared_ptr<AdoptedContext>& context, Result<LinkedProgram> linked,
                                        std::optional<ProgramBinary> binary = std::nullopt) {
  if (!linked) return linked.error();
  const std::uint64_t charge = linked->charge();
  auto program =
      std::make_unique<ProgramOfContext>(context, linked->release(), charge, std::move(linked->reflection()));
  program->binary = std::move(binary);
  return std::unique_ptr<Program>(std::move(program));
}

}  // namespace

AdoptedDevice::AdoptedDevice(std::shared_ptr<AdoptedContext> context, Facts facts)
    : context_(std::move(context)), info_(std::move(facts.info)), binary_formats_(std::move(facts.binary_formats)) {}

Result<std::unique_ptr<Buffer>> AdoptedDevice::create_buffer(const BufferDesc&) noexcept {
  return unsupported(info_.id + ": create_buffer is not supported: the application creates the buffers");
}

Result<std::unique_ptr<Program>> AdoptedDevice::build(const KernelSource& source) noexcept try {
  if (Status status = context_->enter(); !status.ok()) return status;
  const auto text = assemble(source);
  if (!text) return text.error().within(info_.id);
  auto& counter = info_.serializes ? counters_.builds : counters_.prepared;
  return finish(context_, build_program(context_->current(), source, *text, counter));
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> AdoptedDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept
    try {
  if (Status status = context_->enter(); !status.ok()) return status;
  return finish(context_, load_program(context_->current(), source, binary, binary_formats_, counters_.loads), binary);
} catch (...) {
  return caught();
}

Result<ProgramBinary> AdoptedDevice::serialize(const Program& program) noexcept try {
  if (Status status = context_->enter(); !status.ok()) return status;
  if (!info_.serializes) return unsupported(info_.id + ": the driver has no program binary format");
  const auto& ours = static_cast<const ProgramOfContext&>(program);
  if (&ours.context() != context_.get()) return invalid_argument(info_.id + ": the program belongs to another context");
  if (ours.binary) return *ours.binary;
  Result<ProgramBinary> binary = serialize_program(context_->current(), ours.name(), ours.reflection());
  if (binary && !ours.has_holder) ours.binary = *binary;
  return binary;
} catch (...) {
  return caught();
}

Result<Acquired> AdoptedDevice::for_one_holder(Acquired acquired, const KernelSource& source) {
  const auto& cached = static_cast<const ProgramOfContext&>(*acquired.program);
  if (!cached.has_holder) {
    if (!cached.binary && info_.serializes) static_cast<void>(serialize(cached));
    cached.has_holder = true;
    return acquired;
  }
  const std::uint64_t start = now_ns();
  // A driver that does not take its own bytes back still has its compiler.
  Result<std::unique_ptr<Program>> own = unsupported("no binary");
  if (cached.binary) own = load(source, *cached.binary);
  if (!own && own.error().code != StatusCode::device_lost) own = build(source);
  if (!own) return own.error();
  static_cast<const ProgramOfContext&>(**own).has_holder = true;
  return Acquired{ProgramHandle(std::move(*own)), acquired.tier, now_ns() - start};
}

Result<std::uint64_t> AdoptedDevice::submit(const Dispatch&) noexcept {
  return unsupported(info_.id + ": submit is not supported: the application dispatches the programs");
}

Result<FenceResult> AdoptedDevice::wait(std::uint64_t, Deadline) noexcept {
  return unsupported(info_.id + ": wait is not supported: the application dispatches the programs");
}

GLuint AdoptedDevice::name_of(const Program& program) noexcept {
  return static_cast<const ProgramOfContext&>(program).name();
}

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
  if (find == nullptr) {
    return invalid_argument(std::string(id) + ": 'find' is null, expected a function that finds OpenGL's functions");
  }
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
    return unsupported("the version of the current context is '" + version + "', expected OpenGL 4.3 or newer");
  }
  current_.mesa = version.find("Mesa") != std::string::npos;
  if (is_software(text_of(gl_.GetString(GL_RENDERER)))) current_.kind = DeviceKind::software;
  return {};
}

Status AdoptedContext::is_current() const {
  if (std::this_thread::get_id() != thread_) {
    return unavailable(std::string(id) + ": called on a thread other than the one that adopted the context");
  }
  if (egl_context_ != nullptr && egl_current_() != egl_context_) {
    const std::string is = egl_current_() == nullptr ? "no context" : "another context";
    return unavailable(std::string(id) + ": " + is + " is current on this thread, expected the adopted context");
  }
  return {};
}

Status AdoptedContext::enter() {
  if (Status status = is_current(); !status.ok()) return status;
  if (const Status left = take_errors(gl_, "before Kiln was called"); !left.ok()) {
    if (left.code == StatusCode::device_lost) return left.within(id);
    log_.write(LogLevel::warning, "opengl", std::string(id) + ": OpenGL error of the application: " + left.message);
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
  return device_lost(std::string(id) + ": the context was lost (" + reset_name(reset) + "). Adopt a new context");
}

void AdoptedContext::drop(GLuint program) {
  std::unique_lock lock(mutex_);
  if (closed_) return;  // the context may be gone, and another one may have its address
  // At once only where the context is certainly the current one; names mean something else in another.
  if (egl_context_ == nullptr || !is_current().ok()) return dropped_.push_back(program);
  lock.unlock();
  gl_.DeleteProgram(program);
}

void AdoptedContext::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  dropped_.clear();
}

}  // namespace kiln::opengl

namespace kiln {

struct AdoptedGl::Parts {
  std::shared_ptr<opengl::AdoptedContext> context;
  opengl::AdoptedDevice device;
};

AdoptedGl::AdoptedGl(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

AdoptedGl::~AdoptedGl() {
  static_cast<void>(parts_->context->enter());  // elsewhere nothing can be deleted, and the context ends it
  parts_->context->close();
}

Result<std::unique_ptr<AdoptedGl>> AdoptedGl::adopt(FindGlFunction find, Log log, const CacheConfig& cache) {
  const std::unique_ptr<DriverNotes> notes = open_driver_notes(cache, "opengl");
  return adopt(find, log, notes.get());
}

Result<std::unique_ptr<AdoptedGl>> AdoptedGl::adopt(FindGlFunction find, Log log, DriverNotes* notes) {
  auto context = opengl::AdoptedContext::adopt(find, log);
  if (!context) return context.error();
  if (Status status = (*context)->enter(); !status.ok()) return status;
  auto facts = opengl::read_facts((*context)->current(), notes);
  if (!facts) return facts.error();
  return std::unique_ptr<AdoptedGl>(
      new AdoptedGl(std::unique_ptr<Parts>(new Parts{*context, {*context, std::move(*facts)}})));
}

Result<AdoptedProgram> AdoptedGl::program(ProgramCache& cache, std::string_view glsl, std::string_view label) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = glsl;
  return program(cache, source, label);
}

Result<AdoptedProgram> AdoptedGl::program(ProgramCache& cache, const KernelSource& source, std::string_view label) {
  if (Status status = parts_->context->enter(); !status.ok()) return status;
  const DeviceInfo& info = parts_->device.info();
  const auto replaced = info.glsl_barrier.empty() ? std::nullopt : opengl::with_barrier(source, info.glsl_barrier);
  const KernelSource& built = replaced ? *replaced : source;
  auto acquired = cache.get_or_build(key_of(built, info, std::string(label)), built, parts_->device);
  if (!acquired) return acquired.error();
  Result<Acquired> own = parts_->device.for_one_holder(std::move(*acquired), built);
  if (!own) return own.error();
  const std::uint32_t name = opengl::AdoptedDevice::name_of(*own->program);
  return AdoptedProgram(name, std::move(*own));
}

ProgramInterface AdoptedGl::interface(const AdoptedProgram& program, std::string_view glsl) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = glsl;
  return interface(program, source);
}

ProgramInterface AdoptedGl::interface(const AdoptedProgram& program, const KernelSource& source) {
  const Program* linked = program.acquired_.program.get();
  const ProgramInterface* declared = linked == nullptr ? nullptr : linked->interface(source);
  return declared == nullptr ? ProgramInterface() : *declared;
}

Status AdoptedGl::delete_dropped() { return parts_->context->enter(); }

Device& AdoptedGl::device() noexcept { return parts_->device; }

}  // namespace kiln
