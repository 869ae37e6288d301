// Arithmetic in which denormals are kept, or taken and given as zeros of their sign: both are right where a shader does
// not ask for one.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cmath>

namespace kiln::witness {

enum class Denormals : unsigned char { invalid = 0, kept, flushed };

template <class T>
T settle(Denormals mode, T value) {
  const bool denormal = std::fpclassify(value) == FP_SUBNORMAL;
  return denormal && mode == Denormals::flushed ? std::copysign(T{0}, value) : value;
}

template <class T>
T sum(Denormals mode, T a, T b) {
  return settle(mode, settle(mode, a) + settle(mode, b));
}

template <class T>
T product(Denormals mode, T a, T b) {
  return settle(mode, settle(mode, a) * settle(mode, b));
}

template <class T>
T fused(Denormals mode, T a, T b, T c) {
  return settle(mode, std::fma(settle(mode, a), settle(mode, b), settle(mode, c)));
}

}  // namespace kiln::witness
