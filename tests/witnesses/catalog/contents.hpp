// What a buffer holds before the first dispatch: the same on every machine, in every process, from the names of the
// case and of the buffer alone.
//
// Patterns: zero; index (its own place); any (random bits; floats within 2^20 of 1); whole (-8 to 8); range:LOW:HIGH;
// powers (of two, 1/16 to 64); edges (each value at which arithmetic turns, then random ones), edges_slow (the same,
// slower, so that with `edges` beside it all pairs come), finite (edges without infinities), edges_nan[_slow], and
// denormals[_slow].
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "witnesses/catalog/shader_case.hpp"

namespace kiln::witness {

// Throws std::runtime_error where the pattern is unknown, or has no meaning for the type.
Bytes initial_contents(const ShaderCase& shader, const BufferSpec& buffer);

}  // namespace kiln::witness
