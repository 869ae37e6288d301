// version: the version of Kiln that `kiln --version` prints.
//
// Thread-safety: a constant.
//
//   std::cout << "Kiln " << kiln::version << '\n';
#pragma once

namespace [[gnu::visibility("default")]] kiln {

inline constexpr const char* version = "0.1.0";

}  // namespace kiln
