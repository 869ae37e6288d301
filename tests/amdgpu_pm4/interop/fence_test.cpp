// Two APIs on one card, ordered by the card alone: a PM4 submission's point becomes OpenGL's fence and OpenGL's fence a
// point that the next PM4 submission waits for. All of a round is handed over while its first submission is held; the
// host waits for nothing but the end.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "winsys/direct_device.hpp"
#include "witnesses/runners/opengl/opengl_context.hpp"
#include "witnesses/runners/renderer.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// EGL_ANDROID_native_fence_sync, which glad's header leaves out.
constexpr EGLenum native_fence = 0x3144;
constexpr EGLAttrib native_fence_fd = 0x3145;
using DupNativeFence = EGLint (*)(EGLDisplay display, EGLSync sync);

constexpr GLuint fence_groups = 33, fence_words = 64 * fence_groups;
constexpr std::uint64_t fence_bytes = 4 * fence_words;
constexpr std::uint32_t first_factor = 2654435761, gl_factor = 2246822519, last_factor = 3266489917;

std::string mixing_text(std::uint32_t factor) {
  return "__attribute__((reqd_work_group_size(64, 1, 1)))\n"
         "kernel void work(global const uint* x, global uint* y) {\n"
         "  const uint i = get_global_id(0);\n"
         "  y[i] = (x[i] ^ x[i] >> 15) * " +
         std::to_string(factor) + "u + i;\n}\n";
}

constexpr const char* gl_text = R"(#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) writeonly buffer Y { uint y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  y[i] = (x[i] ^ x[i] >> 15) * 2246822519u + i;
}
)";

std::uint32_t mixed_word(std::uint32_t x, std::uint32_t factor, std::uint32_t i) { return (x ^ x >> 15) * factor + i; }

// OpenGL's part of the exchange.
class GlSide {
 public:
  GlSide() : context_(witness::DeviceChoice::hardware) {
    context_.find(create_sync_, "eglCreateSync");
    context_.find(destroy_sync_, "eglDestroySync");
    context_.find(wait_sync_, "eglWaitSync");
    context_.find(client_wait_sync_, "eglClientWaitSync");
    context_.find(dup_fence_, "eglDupNativeFenceFDANDROID");
    context_.find(create_memory_, "glCreateMemoryObjectsEXT");
    context_.find(import_memory_, "glImportMemoryFdEXT");
    context_.find(storage_of_memory_, "glBufferStorageMemEXT");
    context_.find(delete_memory_, "glDeleteMemoryObjectsEXT");
    context_.find(flush_, "glFlush");
    const auto& gl = context_.gl();
    const GLuint shader = gl.create_shader(GL_COMPUTE_SHADER);
    gl.shader_source(shader, 1, &gl_text, nullptr);
    gl.compile_shader(shader);
    program_ = gl.create_program();
    gl.attach_shader(program_, shader);
    gl.link_program(program_);
    gl.delete_shader(shader);
    GLint linked = 0;
    gl.get_program(program_, GL_LINK_STATUS, &linked);
    REQUIRE(linked == GL_TRUE);
  }
  ~GlSide() {
    const auto& gl = context_.gl();
    gl.delete_program(program_);
    gl.delete_buffers(static_cast<GLsizei>(buffers_.size()), buffers_.data());
    delete_memory_(static_cast<GLsizei>(memory_.size()), memory_.data());
  }

  std::string name() const { return context_.name(); }

  GLuint import(BufferObject& shared) {
    auto fd = shared.export_fd();
    REQUIRE(fd.has_value());
    const auto& gl = context_.gl();
    GLuint memory = 0, buffer = 0;
    create_memory_(1, &memory);
    import_memory_(memory, shared.bytes(), GL_HANDLE_TYPE_OPAQUE_FD_EXT, fd->release());  // takes it over
    gl.gen_buffers(1, &buffer);
    gl.bind_buffer(GL_COPY_WRITE_BUFFER, buffer);
    storage_of_memory_(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(fence_bytes), memory, 0);
    context_.check("importing memory");
    memory_.push_back(memory);
    buffers_.push_back(buffer);
    return buffer;
  }

  // Queues the kernel behind the fence. The sync_file of its own end; `pending`: it was not reached yet.
  UniqueFd mix(UniqueFd after, GLuint from, GLuint to, bool& pending) {
    const auto& gl = context_.gl();
    const EGLAttrib attributes[] = {native_fence_fd, after.release(), EGL_NONE};  // takes it over
    EGLSync before = create_sync_(context_.display(), native_fence, attributes);
    REQUIRE(before != EGL_NO_SYNC);
    REQUIRE(wait_sync_(context_.display(), before, 0) == EGL_TRUE);  // the card waits, not this thread
    gl.use_program(program_);
    gl.bind_buffer_base(GL_SHADER_STORAGE_BUFFER, 0, from);
    gl.bind_buffer_base(GL_SHADER_STORAGE_BUFFER, 1, to);
    gl.dispatch(fence_groups, 1, 1);
    gl.memory_barrier(GL_ALL_BARRIER_BITS);
    EGLSync done = create_sync_(context_.display(), native_fence, nullptr);
    REQUIRE(done != EGL_NO_SYNC);
    flush_();  // the fence has a descriptor from here on
    UniqueFd fd(dup_fence_(context_.display(), done));
    REQUIRE(fd.get() >= 0);
    pending = client_wait_sync_(context_.display(), done, 0, 0) == EGL_TIMEOUT_EXPIRED;
    destroy_sync_(context_.display(), before);
    destroy_sync_(context_.display(), done);
    context_.check("mixing");
    return fd;
  }

 private:
  witness::OpenglContext context_;
  PFNEGLCREATESYNCPROC create_sync_ = nullptr;
  PFNEGLDESTROYSYNCPROC destroy_sync_ = nullptr;
  PFNEGLWAITSYNCPROC wait_sync_ = nullptr;
  PFNEGLCLIENTWAITSYNCPROC client_wait_sync_ = nullptr;
  DupNativeFence dup_fence_ = nullptr;
  PFNGLCREATEMEMORYOBJECTSEXTPROC create_memory_ = nullptr;
  PFNGLIMPORTMEMORYFDEXTPROC import_memory_ = nullptr;
  PFNGLBUFFERSTORAGEMEMEXTPROC storage_of_memory_ = nullptr;
  PFNGLDELETEMEMORYOBJECTSEXTPROC delete_memory_ = nullptr;
  PFNGLFLUSHPROC flush_ = nullptr;
  GLuint program_ = 0;
  std::vector<GLuint> buffers_, memory_;
};

// One kernel of the PM4 side with its arguments.
struct Mixer {
  std::shared_ptr<const LoadedKernel> kernel;
  std::unique_ptr<BufferObject> arguments;
  const BufferObject *from, *to;

  Mixer(DirectDevice& device, std::uint32_t factor, const BufferObject& x, const BufferObject& y)
      : kernel(device.load(mixing_text(factor), {Access::read, Access::write})),
        arguments(device.arguments(*kernel, {&x, &y})),
        from(&x),
        to(&y) {}

  void append_to(DirectSubmission& work) const {
    for (const BufferObject* each : {from, to, static_cast<const BufferObject*>(arguments.get())}) work.touch(*each);
    DispatchArguments how;
    how.kernarg_va = arguments->address();
    how.groups = {fence_groups, 1, 1};
    work.dispatch(*kernel, how);
  }
};

}  // namespace

TEST_CASE("interop: PM4 and OpenGL pass a buffer on by fences in both directions, and the host waits for the end") {
  if (!DirectDevice::possible()) return;
  DirectDevice d;
  GlSide gl;
  INFO(gl.name());
  const auto in = d.buffer(BufferUse::upload, fence_bytes), out = d.buffer(BufferUse::readback, fence_bytes);
  const auto to_gl = d.buffer(BufferUse::storage, fence_bytes), from_gl = d.buffer(BufferUse::storage, fence_bytes);
  const auto gate = d.buffer(BufferUse::reports);
  const GLuint gl_in = gl.import(*to_gl), gl_out = gl.import(*from_gl);
  const Mixer first(d, first_factor, *in, *to_gl), last(d, last_factor, *from_gl, *out);
  auto made = d.winsys->create_timeline();
  REQUIRE(made.has_value());
  const std::unique_ptr<Timeline> gl_done = std::move(made).value();

  // Several rounds, each on other words: caches and memory hold what the round before left.
  std::uint32_t seed = 1;
  for (std::uint32_t round = 1; round <= 8; ++round) {
    INFO("round " << round);
    const auto given = dwords_in(*in).first(fence_words);
    std::vector<std::uint32_t> expected(fence_words);
    for (std::uint32_t i = 0; i < fence_words; ++i) {
      given[i] = seed = seed * 1664525 + 1013904223;
      expected[i] = mixed_word(mixed_word(mixed_word(seed, first_factor, i), gl_factor, i), last_factor, i);
    }
    const std::uint64_t written = 2 * round - 1, ended = 2 * round;
    DirectSubmission one(d), two(d);
    one.touch(*gate, is_signalled);
    REQUIRE(emit_wait_reg_mem(one.out(), {Compare::not_less, gate->address(), round, ~0U}));
    first.append_to(one);
    one.submit(written);
    auto fence = d.timeline->export_sync_file(written);
    REQUIRE(fence.has_value());
    bool pending = false;
    const UniqueFd gl_fence = gl.mix(std::move(fence).value(), gl_in, gl_out, pending);
    const Status imported = gl_done->import_sync_file(round, gl_fence.get());
    INFO(imported.text());
    REQUIRE(imported.ok());
    last.append_to(two);
    const std::uint64_t number = two.submit(ended, {{gl_done->handle(), round}});

    // Nothing has run: both fences are handed over as promises.
    CHECK(pending);
    CHECK(*d.timeline->passed() == ended - 2);
    CHECK(*gl_done->passed() == round - 1);
    std::atomic_ref<std::uint32_t>(dwords_in(*gate)[0]).store(round, std::memory_order_release);
    REQUIRE(d.timeline->wait(ended, Deadline::after(std::chrono::seconds(20))).ok());
    const Status outcome = d.context->outcome(number, 0, Deadline::after(std::chrono::seconds(5))).how;
    INFO(outcome.text());
    REQUIRE(outcome.ok());
    CHECK(*gl_done->passed() == round);
    const auto result = dwords_in(*out).first(fence_words);
    CHECK(std::vector<std::uint32_t>(result.begin(), result.end()) == expected);
  }
}

TEST_CASE("interop: a descriptor that is no fence is refused by its number") {
  if (!DirectDevice::possible()) return;
  DirectDevice d;
  const Status refused = d.timeline->import_sync_file(1, -1);
  CHECK_FALSE(refused.ok());
  CHECK_THAT(refused.message, Catch::Contains("descriptor -1 as point 1"));
  CHECK(*d.timeline->passed() == 0);
}

}  // namespace kiln::amdgpu_pm4
