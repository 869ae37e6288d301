// The codec of OpenGL: GLSL or a driver's binary to a linked program, and a program to a binary.
//
// Thread-safety: each function runs on the context's thread. Ownership: a LinkedProgram deletes its name unless it is
// released; it borrows the context's table of functions.
#pragma once

#include "codec/reflection.hpp"

#include <kiln/kernel.hpp>
#include <kiln/program.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::opengl {

class LinkedProgram {
 public:
  explicit LinkedProgram(const Gl& gl) : gl_(&gl), name_(gl.CreateProgram()) {}
  LinkedProgram(LinkedProgram&& other) noexcept
      : gl_(other.gl_),
        name_(std::exchange(other.name_, 0)),
        charge_(other.charge_),
        reflection_(std::move(other.reflection_)) {}
  LinkedProgram& operator=(LinkedProgram&&) = delete;
  ~LinkedProgram() {
    if (name_ != 0) gl_->DeleteProgram(name_);
  }

  GLuint get() const noexcept { return name_; }
  GLuint release() noexcept { return std::exchange(name_, 0); }
  std::uint64_t charge() const noexcept { return charge_; }  // Program::charge()
  void set_charge(std::uint64_t bytes) noexcept { charge_ = bytes; }
  Reflection& reflection() noexcept { return reflection_; }

 private:
  const Gl* gl_;
  GLuint name_;
  std::uint64_t charge_ = 0;
  Reflection reflection_;
};

// text: assembled from source. The error of a failed build is invalid_argument and holds the compiler's (or linker's)
// whole log. The counter is bumped at the call into the compiler.
Result<LinkedProgram> build_program(const CurrentContext& context, const KernelSource& source, const std::string& text,
                                    std::atomic<std::uint64_t>& counter);

// What a program is stored as: "gl2:875f" is a binary of the format 0x875f with its reflection behind it.
std::string format_tag(GLenum format);

// unsupported: the format is none of `formats`. corrupt: the reflection is damaged, or the driver refused the binary.
// LINK_STATUS is read straight
// after glProgramBinary; linking again would throw the loaded program away.
Result<LinkedProgram> load_program(const CurrentContext& context, const KernelSource& source,
                                   const ProgramBinary& binary, const std::vector<GLenum>& formats,
                                   std::atomic<std::uint64_t>& counter);

// unsupported where the driver answers no bytes for it.
Result<ProgramBinary> serialize_program(const CurrentContext& context, GLuint program, const Reflection& reflection);

// Sets uniforms of a program.
//
// Thread-safety: on the context's thread. Ownership: nothing is retained.

// REQUIRES: as many components as the uniform has (kiln/uniform_values.hpp).
void set_uniform(const Gl& gl, GLuint program, const PlainUniform& uniform, const std::byte* components);

}  // namespace kiln::opengl
