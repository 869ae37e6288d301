// AdoptedGl: the program cache for an application that has its own OpenGL context: GLSL in, a linked program out. Each
// call of program() answers a program object of its own, so two callers share no uniform and no block binding.
//
// Kiln starts no thread, makes no context, and leaves the state of the adopted context as it is. Thread-safety: every
// method on the thread that adopted, with the adopted context current; on another thread, or with another context,
// program() answers unavailable and does nothing. Programs may be dropped on any thread. Ownership: the context is the
// application's; an AdoptedGl outlives the caches that it is used with.
//
//   auto gl = kiln::AdoptedGl::adopt(eglGetProcAddress);
//   auto cache = kiln::open_program_cache();
//   if (!gl || !cache) return false;
//   auto program = (*gl)->program(**cache, glsl);
//   if (program) glUseProgram(program->name());
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/program_interface.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] kiln {

using GlFunction = void (*)();
using FindGlFunction = GlFunction (*)(const char* name);  // eglGetProcAddress fits as it is

// A linked program of the adopted context, alive while a copy is held. The last copy dropped deletes it, on the
// context's own thread at once and from another at the next call there.
class AdoptedProgram {
 public:
  AdoptedProgram() = default;
  AdoptedProgram(std::uint32_t name, Acquired acquired) : name_(name), acquired_(std::move(acquired)) {}

  std::uint32_t name() const noexcept { return name_; }                   // for glUseProgram; 0: none
  Tier tier() const noexcept { return acquired_.tier; }                   // who answered: memory, disk, or a build
  std::uint64_t build_ns() const noexcept { return acquired_.build_ns; }  // of this call: compiling, loading, linking

 private:
  friend class AdoptedGl;
  std::uint32_t name_ = 0;
  Acquired acquired_;
};

class AdoptedGl {
 public:
  // Adopts the context that is current on this thread. unavailable: there is none. unsupported: it has no compute
  // programs (OpenGL 4.3), with the version that it has. Without program binary formats everything works and nothing is
  // stored for other processes. The first process compiles a program of a few lines to learn the driver's identity, and
  // stores the answer below cache.directory: in the user's cache folder unless the caller names another one.
  static Result<std::unique_ptr<AdoptedGl>> adopt(FindGlFunction find, Log log = {}, const CacheConfig& cache = {});
  // The same with the caller's own store; null: every process compiles that program.
  static Result<std::unique_ptr<AdoptedGl>> adopt(FindGlFunction find, Log log, DriverNotes* notes);
  AdoptedGl(const AdoptedGl&) = delete;
  AdoptedGl& operator=(const AdoptedGl&) = delete;
  // Elsewhere than on its thread, programs not deleted yet are left to the end of the context.
  ~AdoptedGl();

  // The program of a compute shader, with every uniform at its initial value. Call it once for each user of the program
  // and keep the answer: a second call for the same text links a second object from the binary in memory.
  // invalid_argument: it does not compile; the message holds the compiler's whole log. label: its name for people.
  // On Mesa barrier() becomes (memoryBarrierShared(), barrier()), as docs/user-kernels.md explains.
  Result<AdoptedProgram> program(ProgramCache& cache, std::string_view glsl, std::string_view label = "adopted");
  // The same with constants, bindings and workgroup told apart, as the OpenGL plugin keys them.
  Result<AdoptedProgram> program(ProgramCache& cache, const KernelSource& source, std::string_view label = "adopted");

  // What a program declares: blocks, uniforms, images, samplers and counters with binding, type, size and access.
  // Compare it with what is bound, or hand it to provide() (kiln/program_interface.hpp). REQUIRES: the text, or source,
  // is what the program was asked for with. Any thread.
  static ProgramInterface interface(const AdoptedProgram& program, std::string_view glsl);
  static ProgramInterface interface(const AdoptedProgram& program, const KernelSource& source);

  // Deletes now what other threads dropped. unavailable on another thread.
  Status delete_dropped();

  // A codec alone: build, load and serialize; unsupported for buffers and the queue, which stay the application's.
  Device& device() noexcept;

 private:
  struct Parts;
  explicit AdoptedGl(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln
