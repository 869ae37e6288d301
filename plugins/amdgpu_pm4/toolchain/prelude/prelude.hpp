// The OpenCL C that stands in front of every kernel's text: types, work-item functions, barriers, arithmetic, memory
// and atomics, written with the compiler's own builtins. No header and no device library is installed or needed.
//
// Thread-safety: pure functions. Ownership: text that lives as long as the program, and values.
// Not offered, and so undeclared to the compiler: functions that need a library to be accurate (pow, fmod, tan, erf,
// and exp, log, sin and cos of double), images, printf, pipes, queues, work-group collectives, and atomics of
// OpenCL 2.0 with an order or a scope of their own.
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

}  // namespace kiln::amdgpu_pm4
