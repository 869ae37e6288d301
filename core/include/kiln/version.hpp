// The version of Kiln, as `kiln --version` prints it.
//
// Thread-safety: a constant. Ownership: a literal, for ever.
#pragma once

namespace kiln {

inline constexpr const char* version = "0.1.0";

}  // namespace kiln
