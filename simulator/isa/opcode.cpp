#include "simulator/isa/opcode.hpp"

#include <array>
#include <cstddef>

namespace kiln::simulator {
namespace {

constexpr auto opcode_total = static_cast<std::size_t>(Opcode::count);

constexpr std::string_view either(std::string_view name, std::string_view otherwise) {
  return name.empty() ? otherwise : name;
}

using namespace flag;
constexpr std::array<OpcodeInfo, opcode_total> opcodes{{
    {},
#define KILN_OPCODE(name, encoding, gfx11, gfx10_3, gfx10_3_name, dst, src0, src1, src2, flags)                \
  {Opcode::name, Encoding::encoding,          gfx11,         gfx10_3,                                          \
   #name,        either(gfx10_3_name, #name), DataType::dst, {DataType::src0, DataType::src1, DataType::src2}, \
   flags},
#include "simulator/isa/opcodes.def"
}};

struct Dual {
  Opcode opcode;
  unsigned number;
  bool both;
};
constexpr Dual dual_opcodes[] = {
#define KILN_DUAL_OPCODE(name, number, both) {Opcode::name, number, both},
#include "simulator/isa/opcodes.def"
};

// Numbers of up to ten bits, for each generation and encoding.
constexpr std::size_t numbers = 1024;
using Index = std::array<std::array<Opcode, numbers>, static_cast<std::size_t>(Encoding::count)>;

int number_of(const OpcodeInfo& line, Generation generation) {
  return generation == Generation::gfx11 ? line.gfx11 : line.gfx10_3;
}

int e64_base(Encoding encoding) {
  switch (encoding) {
    case Encoding::vop2:
      return 256;
    case Encoding::vop1:
      return 384;
    case Encoding::vopc:
      return 0;
    default:
      return -1;
  }
}

Index make_index(Generation generation) {
  Index index{};
  const auto place = [&index](Encoding encoding, int number) -> Opcode& {
    return index[static_cast<std::size_t>(encoding)][static_cast<std::size_t>(number)];
  };
  for (const OpcodeInfo& line : opcodes) {
    const int number = number_of(line, generation);
    if (line.opcode == Opcode::invalid || number < 0) continue;
    place(line.encoding, number) = line.opcode;
    const int base = e64_base(line.encoding);
    if (base >= 0 && (line.flags & no_e64) == 0) place(Encoding::vop3, base + number) = line.opcode;
  }
  return index;
}

}  // namespace

unsigned dwords_of(DataType type, WaveSize wave) noexcept {
  switch (type) {
    case DataType::none:
      return 0;
    case DataType::mask:
      return wave == WaveSize::wave64 ? 2 : 1;
    case DataType::matrix_f32:
    case DataType::matrix_f16:
    case DataType::matrix_bf16:
    case DataType::matrix_i32:
      return wave == WaveSize::wave64 ? 4 : 8;
    case DataType::b64:
    case DataType::u64:
    case DataType::i64:
    case DataType::f64:
      return 2;
    case DataType::b96:
      return 3;
    case DataType::b128:
      return 4;
    case DataType::b160:
      return 5;
    case DataType::b256:
      return 8;
    case DataType::b512:
      return 16;
    default:
      return 1;
  }
}

unsigned bits_of(DataType type) noexcept {
  switch (type) {
    case DataType::none:
    case DataType::mask:
      return 0;
    case DataType::b8:
    case DataType::u8:
    case DataType::i8:
      return 8;
    case DataType::b16:
    case DataType::u16:
    case DataType::i16:
    case DataType::f16:
    case DataType::bf16:
    case DataType::matrix_f16:
    case DataType::matrix_bf16:
      return 16;
    case DataType::matrix_f32:
    case DataType::matrix_i32:
      return 32;
    default:
      return is_packed(type) ? 16 : 32 * dwords_of(type, WaveSize::wave32);
  }
}

bool is_float(DataType type) noexcept {
  switch (type) {
    case DataType::f16:
    case DataType::bf16:
    case DataType::f32:
    case DataType::f64:
    case DataType::v2f16:
    case DataType::v2bf16:
    case DataType::matrix_f32:
    case DataType::matrix_f16:
    case DataType::matrix_bf16:
      return true;
    default:
      return false;
  }
}

bool is_packed(DataType type) noexcept { return type >= DataType::v2b16 && type <= DataType::v2bf16; }
bool is_matrix(DataType type) noexcept { return type >= DataType::matrix_f32; }

const OpcodeInfo& info(Opcode opcode) noexcept { return opcodes[static_cast<std::size_t>(opcode)]; }

std::string_view mnemonic(Opcode opcode, Generation generation) noexcept {
  return generation == Generation::gfx10_3 ? info(opcode).gfx10_3_name : info(opcode).name;
}

Opcode find_opcode(Generation generation, Encoding encoding, unsigned number) noexcept {
  static const Index gfx11 = make_index(Generation::gfx11);
  static const Index gfx10_3 = make_index(Generation::gfx10_3);
  if (number >= numbers) return Opcode::invalid;
  return (generation == Generation::gfx11 ? gfx11 : gfx10_3)[static_cast<std::size_t>(encoding)][number];
}

Opcode find_dual_opcode(Half half, unsigned number) noexcept {
  for (const Dual& dual : dual_opcodes) {
    if (dual.number == number && (dual.both || half == Half::second)) return dual.opcode;
  }
  return Opcode::invalid;
}

}  // namespace kiln::simulator
