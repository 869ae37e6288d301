// version: the version of Kiln, as printed by `kiln --version`.
//
// Thread-safety: a constant.
#pragma once

namespace kiln {

inline constexpr const char* version = "0.1.0";

}  // namespace kiln
