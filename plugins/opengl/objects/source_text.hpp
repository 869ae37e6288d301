// The text that is handed to the GLSL compiler: version first, then the constants, then the user's lines with their
// numbers.
//
// Thread-safety: free functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <string>

namespace kiln::opengl {

// Where the text declares its version, that stays first; otherwise "#version 430 core" is put there. A "#line" after
// the constants makes the compiler count as in source.text. invalid_argument: another dialect, an entry other than
// main, a constant whose name is no identifier or whose text has a line break.
Result<std::string> assemble(const KernelSource& source);

}  // namespace kiln::opengl
