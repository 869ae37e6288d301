// kiln_witness_opengl: the cases on an OpenGL driver, by EGL without a surface: --device hardware is the first render
// node, --device software Mesa's own renderer.
#include "witnesses/catalog/source_text.hpp"
#include "witnesses/runners/opengl/opengl_context.hpp"
#include "witnesses/runners/renderer.hpp"

#include <bit>

namespace kiln::witness {
namespace {

class Program {
 public:
  Program(const OpenglContext& context, const ShaderCase& shader) : gl_(context.gl()), program_(gl_.create_program()) {
    const GLuint object = gl_.create_shader(GL_COMPUTE_SHADER);
    const std::string text = source_text(shader, Dialect::opengl);
    const char* const pointer = text.c_str();
    gl_.shader_source(object, 1, &pointer, nullptr);
    gl_.compile_shader(object);
    GLint done = GL_FALSE;
    gl_.get_shader(object, GL_COMPILE_STATUS, &done);
    std::string log(4096, '\0');
    GLsizei length = 0;
    if (done == GL_FALSE) {
      gl_.get_shader_log(object, static_cast<GLsizei>(log.size()), &length, log.data());
    } else {
      gl_.attach_shader(program_, object);
      gl_.link_program(program_);
      gl_.get_program(program_, GL_LINK_STATUS, &done);
      if (done == GL_FALSE) gl_.get_program_log(program_, static_cast<GLsizei>(log.size()), &length, log.data());
    }
    gl_.delete_shader(object);
    if (done == GL_TRUE) return;
    gl_.delete_program(program_);
    throw std::runtime_error(log.substr(0, static_cast<std::size_t>(length)));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { gl_.delete_program(program_); }

  void use() const { gl_.use_program(program_); }

  void set(const Parameter& parameter, std::uint32_t pass) const {
    const GLint at = gl_.get_uniform_location(program_, ("parameters." + parameter.name).c_str());
    if (parameter.type == "vec4") {
      float values[4];
      for (std::size_t k = 0; k < 4; ++k) values[k] = std::bit_cast<float>(parameter.words[k]);
      gl_.uniform_vec4(at, 1, values);
    } else if (parameter.type == "float") {
      gl_.uniform_float(at, std::bit_cast<float>(parameter.words[0]));
    } else if (parameter.type == "int") {
      gl_.uniform_int(at, static_cast<GLint>(parameter.words[0]));
    } else {
      gl_.uniform_uint(at, parameter.name == "pass" ? pass : parameter.words[0]);
    }
  }

 private:
  const GlFunctions& gl_;
  GLuint program_;
};

class Buffers {
 public:
  Buffers(const OpenglContext& context, const std::vector<Bytes>& contents)
      : gl_(context.gl()), handles_(contents.size()), sizes_(contents.size()) {
    gl_.gen_buffers(static_cast<GLsizei>(handles_.size()), handles_.data());
    for (std::size_t k = 0; k < handles_.size(); ++k) {
      sizes_[k] = contents[k].size();
      gl_.bind_buffer(GL_SHADER_STORAGE_BUFFER, handles_[k]);
      gl_.buffer_data(GL_SHADER_STORAGE_BUFFER, static_cast<GLsizeiptr>(sizes_[k]), contents[k].data(),
                      GL_DYNAMIC_COPY);
    }
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() { gl_.delete_buffers(static_cast<GLsizei>(handles_.size()), handles_.data()); }

  GLuint operator[](std::size_t at) const { return handles_[at]; }

  Bytes read(std::size_t at) const {
    Bytes bytes(sizes_[at]);
    gl_.bind_buffer(GL_SHADER_STORAGE_BUFFER, handles_[at]);
    gl_.get_buffer_data(GL_SHADER_STORAGE_BUFFER, 0, static_cast<GLsizeiptr>(bytes.size()), bytes.data());
    return bytes;
  }

 private:
  const GlFunctions& gl_;
  std::vector<GLuint> handles_;
  std::vector<std::size_t> sizes_;
};

Bytes group_words(const ShaderCase& shader) {
  const auto bytes = std::as_bytes(std::span(shader.groups));
  return {bytes.begin(), bytes.end()};
}

class OpenglRenderer final : public Renderer {
 public:
  explicit OpenglRenderer(const RunnerOptions& options)
      : context_(options.software ? DeviceChoice::software : DeviceChoice::hardware) {}

  std::string name() override { return context_.name(); }

  std::string missing(const ShaderCase& shader) override {
    if (shader.needs.contains("vulkan")) return "vulkan";
    const std::string int64 = "GL_ARB_gpu_shader_int64";
    if (shader.needs.contains("int64") && !context_.extensions().contains(int64)) return int64;
    return {};
  }

  std::vector<Bytes> run(const ShaderCase& shader, const std::vector<Bytes>& initial) override {
    const GlFunctions& gl = context_.gl();
    const Program program(context_, shader);
    const Buffers buffers(context_, initial);
    const Buffers groups(context_, {group_words(shader)});
    for (GLuint k = 0; k < initial.size(); ++k) {
      const bool uniform = shader.buffers[k].use == Use::uniform;
      gl.bind_buffer_base(uniform ? GL_UNIFORM_BUFFER : GL_SHADER_STORAGE_BUFFER, k, buffers[k]);
    }
    program.use();
    for (std::uint32_t pass = 0; pass < shader.passes; ++pass) {
      for (const Parameter& each : shader.parameters) program.set(each, pass);
      if (shader.indirect(pass)) {
        gl.bind_buffer(GL_DISPATCH_INDIRECT_BUFFER,
                       shader.indirect_host ? groups[0] : buffers[*shader.indirect_buffer]);
        gl.dispatch_indirect(0);
      } else {
        gl.dispatch(shader.groups[0], shader.groups[1], shader.groups[2]);
      }
      gl.memory_barrier(GL_ALL_BARRIER_BITS);
    }
    context_.check("dispatch");
    std::vector<Bytes> results;
    for (std::size_t k = 0; k < initial.size(); ++k) results.push_back(buffers.read(k));
    context_.check("reading back");
    return results;
  }

 private:
  OpenglContext context_;
};

}  // namespace
}  // namespace kiln::witness

int main(int argument_count, char** arguments) {
  return kiln::witness::run_cases(argument_count, arguments, [](const kiln::witness::RunnerOptions& options) {
    return std::make_unique<kiln::witness::OpenglRenderer>(options);
  });
}
