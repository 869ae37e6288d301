#include "opengl/adopt/own_context.hpp"

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <cstddef>
#include <utility>

namespace kiln::test {
namespace {

template <class Function_>
Function_ gl(const char* name) {
  return reinterpret_cast<Function_>(eglGetProcAddress(name));
}

}  // namespace

OwnContext::OwnContext() : display_(eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr)) {
  if (!eglInitialize(display_, nullptr, nullptr) || !eglBindAPI(EGL_OPENGL_API)) return;
  // Of the core profile, as the plugin's contexts: the profile stands in the version, which is part of the identity.
  const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3, EGL_NONE};
  context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  if (context_ != nullptr) make_current();
}

OwnContext::~OwnContext() {
  make_none_current();
  if (context_ != nullptr) eglDestroyContext(display_, context_);
}

void OwnContext::make_current() const { eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_); }

void OwnContext::make_none_current() const { eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT); }

Function find_gl(const char* name) { return eglGetProcAddress(name); }

bool is_program(unsigned name) { return gl<unsigned char (*)(unsigned)>("glIsProgram")(name) != 0; }

bool is_linked(unsigned name) {
  constexpr unsigned link_status = 0x8b82;
  int linked = 0;
  gl<void (*)(unsigned, unsigned, int*)>("glGetProgramiv")(name, link_status, &linked);
  return linked != 0;
}

float uniform(unsigned program, const char* name) {
  float value = 0;
  const int location = gl<int (*)(unsigned, const char*)>("glGetUniformLocation")(program, name);
  gl<void (*)(unsigned, int, float*)>("glGetUniformfv")(program, location, &value);
  return value;
}

void set_uniform(unsigned program, const char* name, float value) {
  const int location = gl<int (*)(unsigned, const char*)>("glGetUniformLocation")(program, name);
  gl<void (*)(unsigned, int, float)>("glProgramUniform1f")(program, location, value);
}

namespace {

constexpr unsigned storage_block = 0x92e6;

unsigned block_index(unsigned program, const char* block) {
  return gl<unsigned (*)(unsigned, unsigned, const char*)>("glGetProgramResourceIndex")(program, storage_block, block);
}

}  // namespace

int block_binding(unsigned program, const char* block) {
  constexpr unsigned buffer_binding = 0x9302;
  int value = -1;
  using Get = void (*)(unsigned, unsigned, unsigned, int, const unsigned*, int, int*, int*);
  gl<Get>("glGetProgramResourceiv")(program, storage_block, block_index(program, block), 1, &buffer_binding, 1, nullptr,
                                    &value);
  return value;
}

void set_block_binding(unsigned program, const char* block, unsigned binding) {
  gl<void (*)(unsigned, unsigned, unsigned)>("glShaderStorageBlockBinding")(program, block_index(program, block),
                                                                            binding);
}

namespace {

struct StateName {
  const char* name;
  unsigned value;
  std::size_t count = 1;
};

constexpr StateName plain_state[] = {{"CURRENT_PROGRAM", 0x8b8d},
                                     {"PROGRAM_PIPELINE_BINDING", 0x825a},
                                     {"ACTIVE_TEXTURE", 0x84e0},
                                     {"VERTEX_ARRAY_BINDING", 0x85b5},
                                     {"ARRAY_BUFFER_BINDING", 0x8894},
                                     {"UNIFORM_BUFFER_BINDING", 0x8a28},
                                     {"SHADER_STORAGE_BUFFER_BINDING", 0x90d3},
                                     {"ATOMIC_COUNTER_BUFFER_BINDING", 0x92c1},
                                     {"DISPATCH_INDIRECT_BUFFER_BINDING", 0x90ef},
                                     {"DRAW_INDIRECT_BUFFER_BINDING", 0x8f43},
                                     {"COPY_READ_BUFFER_BINDING", 0x8f36},
                                     {"COPY_WRITE_BUFFER_BINDING", 0x8f37},
                                     {"PIXEL_PACK_BUFFER_BINDING", 0x88ed},
                                     {"PIXEL_UNPACK_BUFFER_BINDING", 0x88ef},
                                     {"TEXTURE_BUFFER_BINDING", 0x8c2a},
                                     {"DRAW_FRAMEBUFFER_BINDING", 0x8ca6},
                                     {"READ_FRAMEBUFFER_BINDING", 0x8caa},
                                     {"RENDERBUFFER_BINDING", 0x8ca7},
                                     {"PACK_ALIGNMENT", 0x0d05},
                                     {"PACK_ROW_LENGTH", 0x0d02},
                                     {"UNPACK_ALIGNMENT", 0x0cf5},
                                     {"UNPACK_ROW_LENGTH", 0x0cf2},
                                     {"UNPACK_SKIP_PIXELS", 0x0cf4},
                                     {"VIEWPORT", 0x0ba2, 4},
                                     {"SCISSOR_BOX", 0x0c10, 4},
                                     {"SCISSOR_TEST", 0x0c11},
                                     {"BLEND", 0x0be2},
                                     {"DEPTH_TEST", 0x0b71},
                                     {"COLOR_WRITEMASK", 0x0c23, 4}};
constexpr StateName unit_state[] = {
    {"TEXTURE_BINDING_2D", 0x8069}, {"TEXTURE_BINDING_BUFFER", 0x8c2c}, {"SAMPLER_BINDING", 0x8919}};
constexpr StateName indexed_state[] = {{"SHADER_STORAGE_BUFFER_BINDING", 0x90d3}, {"UNIFORM_BUFFER_BINDING", 0x8a28},
                                       {"ATOMIC_COUNTER_BUFFER_BINDING", 0x92c1}, {"IMAGE_BINDING_NAME", 0x8f3a},
                                       {"IMAGE_BINDING_ACCESS", 0x8f3e},          {"IMAGE_BINDING_FORMAT", 0x906e}};
constexpr unsigned texture_0 = 0x84c0;
constexpr unsigned most_indices = 4;

unsigned made(const char* generate) {
  unsigned name = 0;
  gl<void (*)(int, unsigned*)>(generate)(1, &name);
  return name;
}

}  // namespace

void set_unusual_state() {
  const char* const text = "#version 430 core\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
  constexpr unsigned compute_shader = 0x91b9, compute_bit = 0x20;
  const unsigned program =
      gl<unsigned (*)(unsigned, int, const char* const*)>("glCreateShaderProgramv")(compute_shader, 1, &text);
  const unsigned pipeline = made("glGenProgramPipelines");
  gl<void (*)(unsigned, unsigned, unsigned)>("glUseProgramStages")(pipeline, compute_bit, program);
  gl<void (*)(unsigned)>("glBindProgramPipeline")(pipeline);
  gl<void (*)(unsigned)>("glUseProgram")(program);

  const auto bind = [](const char* function, unsigned target, unsigned name) {
    gl<void (*)(unsigned, unsigned)>(function)(target, name);
  };
  const auto storage_of = [&](unsigned target, unsigned buffer) {
    bind("glBindBuffer", target, buffer);
    gl<void (*)(unsigned, std::ptrdiff_t, const void*, unsigned)>("glBufferData")(target, 1024, nullptr, 0x88e8);
  };
  gl<void (*)(unsigned)>("glBindVertexArray")(made("glGenVertexArrays"));
  constexpr unsigned storage = 0x90d2, uniforms = 0x8a11, counters = 0x92c0;
  for (const unsigned target : {storage, uniforms, counters}) {
    for (unsigned index = 0; index < most_indices; ++index) {
      const unsigned buffer = made("glGenBuffers");
      storage_of(target, buffer);
      gl<void (*)(unsigned, unsigned, unsigned)>("glBindBufferBase")(target, index, buffer);
    }
  }
  for (const unsigned target :
       {0x8892u, storage, uniforms, counters, 0x90eeu, 0x8f3fu, 0x8f36u, 0x8f37u, 0x88ebu, 0x88ecu, 0x8c2au}) {
    storage_of(target, made("glGenBuffers"));
  }
  for (unsigned unit = 0; unit < most_indices; ++unit) {
    gl<void (*)(unsigned)>("glActiveTexture")(texture_0 + unit);
    const unsigned texture = made("glGenTextures");
    bind("glBindTexture", 0x0de1, texture);
    gl<void (*)(unsigned, int, unsigned, int, int)>("glTexStorage2D")(0x0de1, 1, 0x8058, 4, 4);
    bind("glBindTexture", 0x8c2a, made("glGenTextures"));
    bind("glBindSampler", unit, made("glGenSamplers"));
    gl<void (*)(unsigned, unsigned, int, unsigned char, int, unsigned, unsigned)>("glBindImageTexture")(
        unit, texture, 0, 0, 0, 0x88ba, 0x8058);
  }
  bind("glBindFramebuffer", 0x8ca9, made("glGenFramebuffers"));
  bind("glBindFramebuffer", 0x8ca8, made("glGenFramebuffers"));
  bind("glBindRenderbuffer", 0x8d41, made("glGenRenderbuffers"));
  for (const auto& [name, value] : {std::pair{0x0d05u, 2}, {0x0d02u, 7}, {0x0cf5u, 1}, {0x0cf2u, 5}, {0x0cf4u, 3}}) {
    gl<void (*)(unsigned, int)>("glPixelStorei")(name, value);
  }
  gl<void (*)(int, int, int, int)>("glViewport")(1, 2, 33, 44);
  gl<void (*)(int, int, int, int)>("glScissor")(3, 4, 55, 66);
  for (const unsigned ability : {0x0c11u, 0x0be2u, 0x0b71u}) gl<void (*)(unsigned)>("glEnable")(ability);
  gl<void (*)(bool, bool, bool, bool)>("glColorMask")(true, false, true, false);
}

std::map<std::string, std::vector<int>> gl_state() {
  std::map<std::string, std::vector<int>> all;
  const auto get = [](unsigned name, std::size_t count) {
    std::vector<int> values(count, -1);
    gl<void (*)(unsigned, int*)>("glGetIntegerv")(name, values.data());
    return values;
  };
  for (const StateName& one : plain_state) all[one.name] = get(one.value, one.count);
  for (unsigned index = 0; index < most_indices; ++index) {
    const std::string at = "[" + std::to_string(index) + "]";
    for (const StateName& one : indexed_state) {
      auto& values = all[one.name + at] = {-1};
      gl<void (*)(unsigned, unsigned, int*)>("glGetIntegeri_v")(one.value, index, values.data());
    }
    gl<void (*)(unsigned)>("glActiveTexture")(texture_0 + index);
    for (const StateName& one : unit_state) all[one.name + at] = get(one.value, 1);
  }
  gl<void (*)(unsigned)>("glActiveTexture")(static_cast<unsigned>(all["ACTIVE_TEXTURE"][0]));
  return all;
}

void cause_an_error() { gl<void (*)(unsigned)>("glEnable")(0xffff); }

bool has_error() { return gl<unsigned (*)()>("glGetError")() != 0; }

}  // namespace kiln::test
