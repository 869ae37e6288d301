// Runs of f32 multiply-adds, which one Op carries out.
#include <immintrin.h>

#include "simulator/wave/semantics_table.hpp"
#include "simulator/wave/vector/lane_values.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

#if defined(__AVX2__)
namespace {

#if defined(__AVX512F__)
using Floats = __m512;
using Flags = __mmask16;
constexpr unsigned most_together = 4;  // whose results the processor's registers hold beside the shared source

KILN_LANE Floats load(const float* from) { return _mm512_load_ps(from); }
KILN_LANE void store(float* to, Floats value) { _mm512_store_ps(to, value); }
KILN_LANE Floats all(float value) { return _mm512_set1_ps(value); }
KILN_LANE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
KILN_LANE Flags unordered(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
KILN_LANE Flags either(Flags a, Flags b) { return _kor_mask16(a, b); }
KILN_LANE bool any(Flags flags) { return _kortestz_mask16_u8(flags, flags) == 0; }
#else
using Floats = __m256;
using Flags = __m256;
constexpr unsigned most_together = 2;

KILN_LANE Floats load(const float* from) { return _mm256_load_ps(from); }
KILN_LANE void store(float* to, Floats value) { _mm256_store_ps(to, value); }
KILN_LANE Floats all(float value) { return _mm256_set1_ps(value); }
KILN_LANE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
KILN_LANE Flags unordered(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
KILN_LANE Flags either(Flags a, Flags b) { return _mm256_or_ps(a, b); }
KILN_LANE bool any(Flags flags) { return _mm256_movemask_ps(flags) != 0; }
#endif

constexpr unsigned width = sizeof(Floats) / sizeof(float);

// The first `count` steps, which share their second source, if no result is a NaN: those become what their Ops make
// of them. REQUIRES: all lanes are on.
template <unsigned count, unsigned halves, bool scalar>
KILN_LANE bool steps_together(Wave& wave, const MultiplyAdd* steps) {
  constexpr unsigned vectors = halves * group / width;
  auto* const rows = reinterpret_cast<std::byte*>(wave.rows);
  const auto row = [rows](std::uint16_t offset) { return reinterpret_cast<float*>(rows + offset); };
  const float* const second = row(steps->source[1]);
  Floats result[count][vectors];
  Flags nans{};
  for (unsigned s = 0; s < count; ++s) {
    const float* const addend = row(steps[s].source[2]);
    const float* const first = scalar ? nullptr : row(steps[s].source[0]);
    const Floats value = scalar ? all(as_float(wave.scalar[steps[s].source[0]])) : Floats{};
    for (unsigned i = 0; i < vectors; ++i) {
      const Floats a = scalar ? value : load(first + width * i);
      result[s][i] = multiply_add(a, load(second + width * i), load(addend + width * i));
    }
    for (unsigned i = 0; i < vectors; i += 2) nans = either(nans, unordered(result[s][i], result[s][i + 1]));
  }
  if (any(nans)) [[unlikely]]
    return false;
  for (unsigned s = 0; s < count; ++s) {
    for (unsigned i = 0; i < vectors; ++i) store(row(steps[s].result) + width * i, result[s][i]);
  }
  return true;
}

template <unsigned count, unsigned halves>
KILN_LANE void steps_or_ops(Wave& wave, const MultiplyAdd* steps, const Op* ops) {
  const bool done = steps->is_scalar ? steps_together<count, halves, true>(wave, steps)
                                     : steps_together<count, halves, false>(wave, steps);
  if (done) [[likely]]
    return;
  for (unsigned s = 0; s < count; ++s) ops[steps[s].op].run(wave, ops[steps[s].op]);
}

template <unsigned halves>
KILN_LANE void all_steps(Wave& wave, const MultiplyAdd* steps, const Op* ops, unsigned count) {
  for (unsigned at = 0; at < count;) {
    const unsigned together = steps[at].together;
    if (most_together >= 4 && together >= 4) {
      steps_or_ops<most_together, halves>(wave, steps + at, ops);
      at += most_together;
    } else if (together >= 2) {
      steps_or_ops<2, halves>(wave, steps + at, ops);
      at += 2;
    } else {
      steps_or_ops<1, halves>(wave, steps + at, ops);
      ++at;
    }
  }
}

Next multiply_add_run(Wave& wave, const Op& op) {
  const auto* const steps = reinterpret_cast<const MultiplyAdd*>(op.place[0]);
  const auto* const ops = reinterpret_cast<const Op*>(op.place[1]);
  if (wave.exec(0) == ~0U && wave.halves == 1) {
    all_steps<1>(wave, steps, ops, op.extra);
  } else if (wave.exec(0) == ~0U && wave.exec(1) == ~0U) {
    all_steps<2>(wave, steps, ops, op.extra);
  } else {
    for (unsigned at = 0; at < op.extra; ++at) ops[at].run(wave, ops[at]);
  }
  return Next::go;
}

}  // namespace

Run multiply_adds() noexcept { return &multiply_add_run; }
#else
Run multiply_adds() noexcept { return nullptr; }
#endif

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
