// AdoptedGl: the program cache for an application that has an OpenGL context of its own: GLSL in, the name of a linked
// program out. No thread and no context of Kiln's, and no state of the context is changed.
//
// Thread-safety: every method on the thread that adopted, with the adopted context current; on another thread, or with
// another context, program() answers unavailable and touches nothing. Programs may be dropped on any thread.
// Ownership: the context stays the application's; an AdoptedGl outlives the caches that it is used with.
#pragma once

#include <kiln/device.hpp>
#include <kiln/program_cache.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

using GlFunction = void (*)();
using FindGlFunction = GlFunction (*)(const char* name);  // eglGetProcAddress fits as it is

// A linked program of the adopted context, alive while a copy is held. The last copy dropped deletes it, on the
// context's own thread at once and from another at the next call there.
class AdoptedProgram {
 public:
  AdoptedProgram() = default;
  AdoptedProgram(std::uint32_t name, Acquired acquired) : name_(name), acquired_(std::move(acquired)) {}

  std::uint32_t name() const noexcept { return name_; }  // for glUseProgram; 0: none
  Tier tier() const noexcept { return acquired_.tier; }  // who answered: memory, disk, or a build
  std::uint64_t build_ns() const noexcept { return acquired_.build_ns; }

 private:
  std::uint32_t name_ = 0;
  Acquired acquired_;
};

class AdoptedGl {
 public:
  // Adopts the context that is current on this thread. unavailable: there is none. unsupported: it has no compute
  // programs (OpenGL 4.3), with the version that it has. Without program binary formats everything works and nothing is
  // kept across processes. Asking a driver for its identity costs one compilation of a few lines, unless `notes` knows.
  static Result<std::unique_ptr<AdoptedGl>> adopt(FindGlFunction find, Log log = {}, DriverNotes* notes = nullptr);
  AdoptedGl(const AdoptedGl&) = delete;
  AdoptedGl& operator=(const AdoptedGl&) = delete;
  // Elsewhere than on its thread, programs not deleted yet are left to the end of the context.
  ~AdoptedGl();

  // The program of a compute shader. invalid_argument: it does not compile; the message holds the compiler's whole log.
  // label: what people see for it in the cache's files.
  Result<AdoptedProgram> program(ProgramCache& cache, std::string_view glsl, std::string_view label = "adopted");
  // The same with constants, bindings and workgroup told apart, as the OpenGL plugin keys them.
  Result<AdoptedProgram> program(ProgramCache& cache, const KernelSource& source, std::string_view label = "adopted");

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
