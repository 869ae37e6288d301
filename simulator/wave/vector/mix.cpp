// Multiply-adds that mix f16 with f32, one source at a time.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

// A source is a whole f32, or where op_sel_hi says so an f16 in the half that op_sel chooses.
const Word* mixed(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  const Word* in = words(wave, op, source, half, storage);
  if ((op.select_high >> source & 1U) != 0) {
    const unsigned shift = (op.select >> source & 1U) * 16U;
    for (unsigned i = 0; i < group; ++i) storage[i] = as_bits(half_to_float(in[i] >> shift & 0xFFFFU));
    in = storage;
  }
  return modified<F32>(op, source, in, storage);
}

enum : std::uint8_t { to_single = 0, to_low_half = 1, to_high_half = 2 };
Next fma_mix(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], out[group];
    const Word* a = mixed(wave, op, 0, half, storage[0]);
    const Word* b = mixed(wave, op, 1, half, storage[1]);
    const Word* c = mixed(wave, op, 2, half, storage[2]);
    for (unsigned i = 0; i < group; ++i) out[i] = as_bits(__builtin_fmaf(as_float(a[i]), as_float(b[i]), as_float(c[i])));
    settle_nan<F32>(out, a, b, c);
    if (op.detail == to_single) {
      store<float>(wave, op, half, mask, out);
      continue;
    }
    const unsigned rounding = wave.mode >> mode_bit::round16_64 & 3U;
    for (unsigned i = 0; i < group; ++i) {
      out[i] = double_to_half_slow(static_cast<double>(as_float(out[i])), rounding, false);
    }
    Op where = op;
    where.select = op.detail == to_high_half ? 8 : 0;
    store<Half>(wave, where, half, mask, out);
  }
  return Next::go;
}

constexpr Semantics entries[] = {
    {"v_fma_mix_f32", &fma_mix, packed_floats, to_single},
    {"v_fma_mixlo_f16", &fma_mix, packed_floats, to_low_half},
    {"v_fma_mixhi_f16", &fma_mix, packed_floats, to_high_half},
};

}  // namespace

SemanticsList mix() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
