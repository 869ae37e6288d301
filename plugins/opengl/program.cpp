#include "program.hpp"

#include <algorithm>

namespace kiln::opengl {

GlProgram::~GlProgram() {
  // The closure borrows the group: its threads run everything posted before they end.
  try {
    group_->execution().post([group = group_.get(), name = name_] { group->gl().DeleteProgram(name); });
  } catch (...) {  // out of memory: the name stays until the context goes
  }
}

namespace {

// One unit for each image and one for each sampler. All are 0 after linking, where samplers of several types are an
// error that Mesa's compiler crashes of at the first dispatch. Views have those that the text gives them: their
// binding.
void give_units(const Gl& gl, GLuint program, Reflection& reflection) {
  GLuint images = 0, samplers = 0;
  for (const ProgramResource& resource : reflection.interface.resources) {
    if (resource.kind != ResourceKind::image && resource.kind != ResourceKind::sampler) continue;
    TextureUniform& uniform = reflection.textures[static_cast<std::size_t>(resource.handle)];
    uniform.unit = resource.kind == ResourceKind::image ? images++ : samplers++;
    if (uniform.location >= 0) gl.ProgramUniform1i(program, uniform.location, static_cast<GLint>(uniform.unit));
  }
}

Result<std::unique_ptr<Program>> finish(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                        Result<LinkedProgram> linked) {
  if (!linked) return linked.error();
  const std::uint64_t charge = linked->charge();
  const auto is_texture = [](View view) { return view == View::texels || view == View::image; };
  if (std::ranges::none_of(source.views, is_texture)) give_units(group->gl(), linked->get(), linked->reflection());
  return std::unique_ptr<Program>(std::make_unique<GlProgram>(group, linked->release(), source.bindings.size(),
                                                              source.views, charge, std::move(linked->reflection())));
}

}  // namespace

Result<std::unique_ptr<Program>> build_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                               const std::string& text, std::atomic<std::uint64_t>& counter) {
  return finish(group, source, build_program(current_context(*group), source, text, counter));
}

Result<std::unique_ptr<Program>> load_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                              const ProgramBinary& binary, const std::vector<GLenum>& formats,
                                              std::atomic<std::uint64_t>& counter) {
  return finish(group, source, load_program(current_context(*group), source, binary, formats, counter));
}

Result<ProgramBinary> serialize_program(ContextGroup& group, const GlProgram& program) {
  return serialize_program(current_context(group), program.name(), program.reflection());
}

}  // namespace kiln::opengl
