#include "simulator/wave/operand_constants.hpp"

#include "simulator/wave/wave.hpp"

namespace kiln::simulator {
namespace {

bool is_wide(DataType type) { return bits_of(type) == 64; }
bool is_narrow(DataType type) { return bits_of(type) == 16 && !is_packed(type); }

// 0.5 -0.5 1 -1 2 -2 4 -4 1/(2 pi), as halves, floats and doubles.
constexpr std::uint64_t inline_half[] = {0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118};
constexpr std::uint64_t inline_single[] = {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000,
                                           0xC0000000, 0x40800000, 0xC0800000, 0x3E22F983};
constexpr std::uint64_t inline_double[] = {0x3FE0000000000000, 0xBFE0000000000000, 0x3FF0000000000000,
                                           0xBFF0000000000000, 0x4000000000000000, 0xC000000000000000,
                                           0x4010000000000000, 0xC010000000000000, 0x3FC45F306DC9C882};

std::uint64_t inline_float(unsigned index, DataType type) {
  if (is_wide(type)) return inline_double[index];
  if (type == DataType::bf16 || type == DataType::v2bf16 || type == DataType::matrix_bf16)
    return inline_single[index] >> 16U;
  if (is_narrow(type) || type == DataType::v2f16) return inline_half[index];
  return inline_single[index];
}

std::uint64_t literal_value(std::uint32_t literal, DataType type) {
  if (type == DataType::f64) return static_cast<std::uint64_t>(literal) << 32U;
  if (type == DataType::i64) return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(literal)});
  return literal;
}

std::uint64_t aperture(unsigned code) {
  switch (code) {
    case operand::shared_base:
      return shared_aperture;
    case operand::shared_limit:
      return shared_aperture | 0xFFFFFFFFU;
    case operand::private_base:
      return private_aperture;
    default:
      return private_aperture | 0xFFFFFFFFU;
  }
}

}  // namespace

std::optional<std::uint64_t> constant_of(const Operand& operand, std::uint32_t literal) {
  const unsigned code = operand.code;
  if (code == operand::null) return 0;
  if (code >= operand::integers && code < operand::integers_end) {
    const std::int64_t value = code <= 192 ? std::int64_t{code} - 128 : 192 - std::int64_t{code};
    return is_wide(operand.type) ? static_cast<std::uint64_t>(value) : static_cast<std::uint32_t>(value);
  }
  if (code >= operand::shared_base && code <= operand::private_limit) {
    // A read of 32 bits sees the half that tells apertures apart.
    return is_wide(operand.type) ? aperture(code) : aperture(code) >> 32U;
  }
  if (code >= operand::floats && code < operand::floats_end) return inline_float(code - operand::floats, operand.type);
  if (code == operand::literal) return literal_value(literal, operand.type);
  return std::nullopt;
}

}  // namespace kiln::simulator
