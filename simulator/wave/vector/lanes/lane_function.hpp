// A lane's lambda as a template argument: its operand types, and calling it for one lane.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety and ownership: none of its own.
#pragma once

#include "simulator/wave/vector/lanes/operand_types.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

template <class T>
struct TypeTag {
  using type = T;
};

template <class T>
struct Signature;
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  static constexpr unsigned sources = sizeof...(A);
  static constexpr bool wave = false;

  // Word where the lambda has no such source.
  template <unsigned N>
  static auto tag() {
    return pick<N, A..., Word, Word, Word>();
  }
  template <unsigned N, class First, class... Rest>
  static auto pick() {
    if constexpr (N == 0) {
      return TypeTag<First>{};
    } else {
      return pick<N - 1, Rest...>();
    }
  }
};
template <class C, class R, class... A>
struct Signature<R (C::*)(const Wave&, A...) const> : Signature<R (C::*)(A...) const> {
  static constexpr bool wave = true;
};

template <auto Body>
using SignatureOf = Signature<decltype(&decltype(Body)::operator())>;
template <auto Body>
using ResultOf = typename SignatureOf<Body>::Result;
template <auto Body>
constexpr unsigned sources_of = SignatureOf<Body>::sources;
template <auto Body, unsigned N>
using Argument = typename decltype(SignatureOf<Body>::template tag<N>())::type;

template <auto Body, class... T>
KILN_LANE auto call(const Wave& wave, T... values) {
  if constexpr (SignatureOf<Body>::wave) {
    return Body(wave, values...);
  } else {
    return Body(values...);
  }
}

// A source that is the same in all lanes.
struct Uniform {
  Word value;
  KILN_LANE Word operator[](unsigned) const { return value; }
};

// Of lane `i`. The sources are whatever `[i]` gives raw lanes; those that the lambda has not are not looked at.
template <auto Body, class A, class B, class C>
KILN_LANE auto lane(const Wave& wave, A a, B b, C c, unsigned i) {
  constexpr unsigned n = sources_of<Body>;
  if constexpr (n == 1) {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]));
  } else if constexpr (n == 2) {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]), decoded<Argument<Body, 1>>(b[i]));
  } else {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]), decoded<Argument<Body, 1>>(b[i]),
                      decoded<Argument<Body, 2>>(c[i]));
  }
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
