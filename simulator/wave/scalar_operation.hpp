// Makes the handler of a scalar instruction from its arithmetic, a lambda: parameters are the sources (32 or 64 bits,
// signed or not), `bool&` in the last place is SCC; a bool result becomes SCC, any other is written to the destination.
//
// Thread-safety and ownership: as Wave's.
#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>

#include "simulator/wave/wave.hpp"

namespace kiln::simulator::scalar_unit {

using Word = std::uint32_t;
using Wide = std::uint64_t;

// The device's clock: 100 MHz.
inline Wide real_time() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<Wide>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) / 10;
}

template <class T>
T read(const Wave& wave, const Op& op, unsigned source) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(scalar_source(wave, op, source));
  } else {
    return static_cast<T>(scalar_source32(wave, op, source));
  }
}

template <class T>
void write(Wave& wave, const Op& op, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    wave.scc = value;
  } else if constexpr (sizeof(T) == 8) {
    wave.set_scalar64(op.sdst, static_cast<Wide>(value));
  } else {
    wave.scalar[op.sdst] = static_cast<Word>(value);
  }
}

template <class T>
struct Call;
template <class C, class R, class A>
struct Call<R (C::*)(A) const> {
  template <auto Body>
  static Next run(Wave& wave, const Op& op) {
    write(wave, op, Body(read<A>(wave, op, 0)));
    return Next::go;
  }
};
template <class C, class R, class A>
struct Call<R (C::*)(A, bool&) const> {
  template <auto Body>
  static Next run(Wave& wave, const Op& op) {
    bool scc = wave.scc;
    write(wave, op, Body(read<A>(wave, op, 0), scc));
    wave.scc = scc;
    return Next::go;
  }
};
template <class C, class R, class A, class B>
struct Call<R (C::*)(A, B) const> {
  template <auto Body>
  static Next run(Wave& wave, const Op& op) {
    write(wave, op, Body(read<A>(wave, op, 0), read<B>(wave, op, 1)));
    return Next::go;
  }
};
template <class C, class R, class A, class B>
struct Call<R (C::*)(A, B, bool&) const> {
  template <auto Body>
  static Next run(Wave& wave, const Op& op) {
    bool scc = wave.scc;
    write(wave, op, Body(read<A>(wave, op, 0), read<B>(wave, op, 1), scc));
    wave.scc = scc;
    return Next::go;
  }
};

template <auto Body>
constexpr Semantics scalar(const char* name) {
  return {name, &Call<decltype(&decltype(Body)::operator())>::template run<Body>};
}

}  // namespace kiln::simulator::scalar_unit
