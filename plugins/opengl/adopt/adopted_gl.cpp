#include <kiln/adopted_gl.hpp>

#include "adopt/adopted_device.hpp"
#include "codec/source_text.hpp"

#include <kiln/open_program_cache.hpp>

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
