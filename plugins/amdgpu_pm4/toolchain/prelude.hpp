// The OpenCL C that stands in front of every kernel's text: types, work-item functions, barriers, atomics, and the
// arithmetic that generated kernels need, written with the compiler's own builtins. All other functions come from the
// device library (device_library.hpp), or are refused by name (refusals.cpp).
//
// Thread-safety: pure functions. Ownership: text that lives as long as the program, and values.
#pragma once

#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {

// The same for every text. To read all of it took longer than to compile a usual kernel, so a function is defined only
// where uses_of() names it.
std::string_view prelude() noexcept;

// "#define KILN_USES_x 1" for what of the prelude the text may use: each of its identifiers and what each begins with
// ("convert_float" and "convert" for convert_float4). Everything, where identifiers are made by "##".
std::string uses_of(std::string_view text);

// Macros for the conversions of the library that are wrong, as far as the text names them: each converts its argument
// first.
std::string corrections_for(std::string_view text);

// Whether the text calls anything that the prelude does not define. True also where it calls only functions of its own:
// linking the library then changes nothing.
bool calls_library(std::string_view text);

// Declares what OpenCL C has and Kiln does not offer, as far as the text names it, so that each use is the compiler's
// error at its place: "printf is not offered".
std::string refusals_for(std::string_view text);

}  // namespace kiln::amdgpu_pm4
