// ShaderCase: one compute shader with its inputs, its size and how its outputs are compared, as read from a file of
// several (shaders/*.glsl). One text serves OpenGL and Vulkan: what they write differently is in the lines that begin
// with @, and is generated from them (source_text.hpp).
//
//   @shader NAME                          what follows belongs to it, up to the next; before the first: remarks
//   @why TEXT                             why a comparison is not `exact`
//   @needs WORD…                          float64 int64 int16 int8 float16 storage16 storage8 atomic_int64
//                                         denorm_preserve_float32; vulkan: not offered by OpenGL
//   @extension NAME                       of GLSL, required
//   @local X [Y [Z]]   @groups X [Y [Z]]
//   @passes N                             dispatches, with a barrier between them; parameters.pass counts them
//   @indirect host | BUFFER               the groups come from a buffer of the runner, or for all passes but the first
//                                         from that output
//   @in TYPE NAME COUNT PATTERN           read only; the patterns: contents.hpp
//   @uniform TYPE NAME COUNT PATTERN      a uniform block, of vectors of 16 bytes
//   @inout TYPE NAME COUNT PATTERN COMPARISON [software=COMPARISON]
//   @out TYPE NAME COUNT COMPARISON [software=COMPARISON]       zero at first
//   @parameter TYPE NAME VALUE…           a push constant, or a plain uniform of OpenGL: parameters.NAME
//
// In the text, ID is gl_GlobalInvocationID.x, and meet() a barrier of the workgroup that orders what is shared too.
// `software` is for the renderers on the processor, where their arithmetic is another by right.
// Thread-safety: values. Ownership: values.
#pragma once

#include "witnesses/catalog/comparison.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kiln::witness {

enum class Use : std::uint8_t { invalid = 0, in, uniform, inout, out };

struct BufferSpec {
  Use use = Use::invalid;
  std::string type;  // of GLSL
  std::string name;
  Scalar scalar = Scalar::invalid;
  std::size_t lanes = 0;
  std::size_t count = 0;  // of `type`
  std::string pattern;
  Comparison device;
  Comparison software;

  std::size_t bytes() const { return count * lanes * size_of(scalar); }
  bool compared() const { return use == Use::inout || use == Use::out; }
};

struct Parameter {
  std::string type;  // int, uint, float or vec4
  std::string name;
  std::vector<std::uint32_t> words;
};

struct ShaderCase {
  std::string name;
  std::string why;
  std::set<std::string> needs;
  std::vector<std::string> extensions;
  std::array<std::uint32_t, 3> local{1, 1, 1};
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::uint32_t passes = 1;
  bool indirect_host = false;
  std::optional<std::size_t> indirect_buffer;  // its index
  std::vector<BufferSpec> buffers;             // the index is the binding
  std::vector<Parameter> parameters;           // `pass` first where there are several passes
  std::string body;

  bool indirect(std::uint32_t pass) const { return indirect_host || (indirect_buffer.has_value() && pass > 0); }
};

// All cases of the *.glsl files of the folder, in the order of file name and place. Throws std::runtime_error naming
// file and line.
std::vector<ShaderCase> load_cases(const std::filesystem::path& folder);

}  // namespace kiln::witness
