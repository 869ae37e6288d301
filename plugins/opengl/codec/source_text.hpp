// The text that is handed to the GLSL compiler: version first, then the constants, then the user's lines with their
// numbers.
//
// Thread-safety: free functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace kiln::opengl {

// A #version line stays first; without one, "#version 430 core" is put there. A "#line" after the constants makes the
// compiler count as in source.text. A byte-order mark is dropped. invalid_argument: another dialect, an entry other
// than main, a constant whose name is no identifier or whose text has a line break, a NUL byte.
Result<std::string> assemble(const KernelSource& source);

// Mesa's GLSL compiler moves a read of a `shared` variable behind barrier() where the value is used once, behind it, in
// the same block: it stops at a memory barrier, and not at barrier(). This text takes the place of barrier() there. It
// is an expression, and the inner barrier() is the built-in function.
inline constexpr std::string_view mesa_barrier = "(memoryBarrierShared(), barrier())";

// The source with the constant "barrier()", of this text, where it contains that word; else nullopt. As a constant it
// is part of the key. assemble() then also handles a text that defines, removes or tests a macro of its own with that
// name. invalid_argument there: the text declares a function named barrier, or calls one with arguments.
std::optional<KernelSource> with_barrier(const KernelSource& source, std::string_view text);

}  // namespace kiln::opengl
