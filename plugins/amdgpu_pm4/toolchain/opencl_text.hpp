// The OpenCL C that stands in front of every kernel's text: types, work-item functions, barriers, atomics, and the
// arithmetic that generated kernels need, written with the compiler's own builtins. All other functions come from the
// device library (toolchain.hpp), or are refused by name (refusals_for()).
//
// Thread-safety: pure functions. Ownership: text that lives as long as the program, and values.
#pragma once

#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/kernel.hpp>

namespace kiln::amdgpu_pm4 {

// The same for every text. To read all of it took longer than to compile a usual kernel, so a function is defined only
// where uses_of() names it.
std::string_view prelude() noexcept;

// "#define KILN_USES_x 1" for what of the prelude the text may use: each of its identifiers and what each begins with
// ("convert_float" and "convert" for convert_float4), but not those in comments; "double_literal" for numbers such as
// 1.0. Everything, where identifiers are made by "##".
std::string uses_of(std::string_view text);

// Macros for the conversions of the library that are wrong, as far as the text names them: each converts its argument
// first.
std::string corrections_for(std::string_view text);

// Whether the text calls anything that the prelude does not define. True also where it calls only functions of its own:
// linking the library then changes nothing.
bool calls_library(std::string_view text);

// Of names that take the place of what is refused, where the compiler knows the name itself: "kiln_no_read_pipe".
inline constexpr std::string_view replacement_prefix = "kiln_no_";

// Declares what OpenCL C has and Kiln does not offer, as far as the text names it, so that each use is the compiler's
// error at its place: "printf is not offered".
std::string refusals_for(std::string_view text);

// The text that is handed to the OpenCL C compiler: the prelude, the constants, then the kernel's lines with their own
// numbers under their own file's name. The source's workgroup becomes an attribute of its kernels; where one of them
// declares its own, of the entry alone, if that declares none.
//
// Thread-safety: a pure function. Ownership: values.

struct OpenClText {
  std::string text;
  bool calls_library = false;  // calls functions that neither the prelude nor the text itself need define
  std::string name{};          // as in messages
  std::string warning{};       // what is meant otherwise than it is written, on a line of its own; usually empty
};

// name: of the text in messages, where source.files has none. unsupported: another dialect; an #include, which
// kiln::read_kernel_text() has not resolved.
// invalid_argument: an entry that is no identifier, a constant whose name is none or whose text is not one line.
Result<OpenClText> assemble(const KernelSource& source, std::string_view name);

inline bool is_word(char c) noexcept {  // a part of an identifier
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// In code_of(), in place of a directive.
inline constexpr char of_directive = '\f';

// The text with blanks in place of comments, literals and directives: what is left is code, at its place.
std::string code_of(std::string_view text);
// The same with the directives, of which comments and literals are blanks too.
std::string code_and_directives_of(std::string_view text);

// The text without the functions, kernels among them, that `entry` cannot reach. Of these only line ends and directives
// of the preprocessor are left, so that messages keep their lines. nullopt: the text has no such function, does not
// define `entry`, or its braces are not in pairs.
std::optional<std::string> only_reachable(std::string_view text, std::string_view entry);

// Functions that call each other in a circle and that `entry` reaches, in the order of the calls; empty: none is seen.
// Not judged are functions whose name the text or `constants` give to another function or to a macro, and those with
// conditions of the preprocessor in them.
std::vector<std::string> call_cycle(std::string_view text, std::string_view entry,
                                    const std::vector<Define>& constants = {});

}  // namespace kiln::amdgpu_pm4
