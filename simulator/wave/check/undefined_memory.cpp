// What LDS and stores have to do with undefined bits; undefined.cpp follows them through registers.
#include <array>
#include <cstring>

#include "simulator/wave/check/undefined.hpp"
#include "simulator/wave/check/undefined_rules.hpp"
#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/resolve.hpp"

namespace kiln::simulator {

using namespace undefined_bits;

namespace {

// Where the registers are defined: a store makes its bytes so; of a load whether they are.
template <unsigned Bytes>
bool all_defined_of(std::uint8_t* lds, const memory_unit::Addresses& at, bool store) {
  Word any = 0;
  for (Word left = at.active; left != 0; left &= left - 1) {
    std::uint8_t* const place = lds + at.lane[__builtin_ctz(left)];
    if (store) {
      std::memset(place, 0, Bytes);
      continue;
    }
    std::array<Word, (Bytes + 3) / 4> bits{};
    std::memcpy(bits.data(), place, Bytes);
    for (const Word each : bits) any |= each;
  }
  return any == 0;
}

bool all_defined(std::uint8_t* lds, const memory_unit::Addresses& at, unsigned bytes, bool store) {
  switch (bytes) {
    case 1:
      return all_defined_of<1>(lds, at, store);
    case 2:
      return all_defined_of<2>(lds, at, store);
    case 4:
      return all_defined_of<4>(lds, at, store);
    case 8:
      return all_defined_of<8>(lds, at, store);
    case 12:
      return all_defined_of<12>(lds, at, store);
    case 16:
      return all_defined_of<16>(lds, at, store);
    default:
      return false;
  }
}

}  // namespace

void Undefined::local(Wave& wave, const Instruction& in, const Effects& effects, const Op& op) {
  const OpcodeInfo& line = info(in.opcode);
  const bool pair = in.has(flag::two_addresses);
  if (in.has(flag::m0_in) || effects.atomic || !in.has(flag::load | flag::store)) {
    define(wave, effects);
    return;
  }
  const DataType type = effects.store ? line.src[1] : line.dst;
  unsigned bytes = (bits_of(type) + 7) / 8;
  if (pair && !effects.store) bytes /= 2;
  const unsigned stride = effects.stride64 ? bytes * 64 : bytes;
  const bool defined_registers = !effects.touched.meets(dirty_);
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (unsigned which = 0; which < (pair ? 2U : 1U); ++which) {
      if (wave.exec(half) == 0) continue;
      const Word offset =
          !pair ? static_cast<Word>(op.offset) : (which == 0 ? static_cast<Word>(op.offset) : op.extra) * stride;
      memory_unit::Addresses at;
      if (!memory_unit::Local(wave, op, offset).addresses(half, bytes, at)) return;
      const unsigned words = (bytes + 3) / 4;
      if (defined_registers && all_defined(lds_->data(), at, bytes, effects.store)) continue;
      std::array<Lanes, 4> data{};
      for (unsigned w = 0; w < words; ++w) {
        data[w] = effects.store ? source(in.src[1 + which], w, half) : source(in.dst, which * words + w, half);
      }
      for (Word left = at.active; left != 0; left &= left - 1) {
        const auto i = static_cast<unsigned>(__builtin_ctz(left));
        std::uint8_t* place = lds_->data() + at.lane[i];
        for (unsigned w = 0; w < words; ++w) {
          const unsigned size = std::min(4U, bytes - 4 * w);
          if (effects.store) {
            const Word bits = in.has(flag::high) ? data[w][i] >> 16U : data[w][i];
            std::memcpy(place + 4 * w, &bits, size);
            continue;
          }
          Word bits = 0;
          std::memcpy(&bits, place + 4 * w, size);
          if (size < 4) bits = bits != 0 ? ~0U : 0U;  // extended
          if (in.has(flag::d16)) {
            bits = in.has(flag::high) ? (data[w][i] & 0xFFFFU) | (bits & 0xFFFF0000U)
                                      : (data[w][i] & 0xFFFF0000U) | (bits & 0xFFFFU);
          }
          data[w][i] = bits;
        }
      }
      if (effects.store) continue;
      for (unsigned w = 0; w < words; ++w) put(wave, in.dst.index() + which * words + w, half, data[w]);
    }
  }
}

namespace {

// A vector of three elements takes the room of four, and compilers store the fourth with any bits. Takes from the
// undefined bits of one lane's store what looks like that: undefined bytes behind a written element of the same store,
// as many as an element has and as the last of four.
void forget_padding(std::array<Word, 4>& undefined, unsigned bytes, std::uint64_t address) {
  const auto byte = [&](unsigned at) { return undefined[at / 4] >> at % 4 * 8 & 0xFFU; };
  for (unsigned at = 0; at < bytes;) {
    unsigned end = at;
    while (end < bytes && byte(end) == 0xFF) ++end;
    const unsigned size = end - at;
    const bool element = size == 1 || size == 2 || size == 4 || size == 8;
    const bool written = at != 0 && byte(at - 1) == 0 && (end == bytes || byte(end) == 0);
    if (element && written && (address + end) % (4 * size) == 0) {
      for (unsigned b = at; b < end; ++b) undefined[b / 4] &= ~(0xFFU << b % 4 * 8);
    }
    at = std::max(end, at + 1);
  }
}

}  // namespace

std::optional<std::string> Undefined::stores(Wave& wave, const Instruction& in, const Op& op) {
  const bool buffer = in.format == Format::mubuf || in.format == Format::mtbuf;
  // Scratch of gfx10.3: compilers spill registers there of which some lanes are defined.
  if (buffer && BufferDescriptor(wave.scalar + in.src[1].index(), wave.generation).element_bytes != 0) {
    return std::nullopt;
  }
  const Operand& data = buffer ? in.src[3] : in.src[1];
  const Operand& address = in.src[0];
  const unsigned bits = bits_of(data.type);
  for (unsigned half = 0; half < wave.halves; ++half) {
    memory_unit::Addresses at;
    bool addressed = false;
    const auto place = [&](unsigned lane) {
      if (!addressed) {
        addressed = true;
        const unsigned bytes = bits / 8;
        const bool right = buffer ? memory_unit::Buffer(wave, op).addresses(half, bytes, at)
                                  : memory_unit::Global(wave, op).addresses(half, bytes, at);
        if (!right) at = {};
      }
      return at.lane[lane];
    };
    const auto found = [&](const Operand& operand, unsigned size, bool high,
                           const char* what) -> std::optional<std::string> {
      const unsigned words = (size + 31) / 32;
      std::array<Lanes, 4> lanes{};
      Word any[32] = {};
      for (unsigned d = 0; d < words; ++d) {
        lanes[d] = source(operand, d, half);
        const Word keep = size - 32 * d >= 32 ? ~0U : (1U << size) - 1U;
        for (unsigned i = 0; i < 32; ++i) {
          lanes[d][i] = (high ? lanes[d][i] >> 16U : lanes[d][i]) & keep;
          any[i] |= lanes[d][i];
        }
      }
      for (unsigned i = 0; i < 32; ++i) {
        if (any[i] == 0 || (wave.exec(half) >> i & 1U) == 0) continue;
        std::array<Word, 4> undefined{lanes[0][i], lanes[1][i], lanes[2][i], lanes[3][i]};
        if (&operand == &data && size >= 32 && !in.has(flag::atomic)) forget_padding(undefined, size / 8, place(i));
        for (unsigned d = 0; d < words; ++d) {
          if (undefined[d] == 0) continue;
          return std::string("uninitialised ") + what + ": nothing has written bits " + hex(undefined[d]) + " of v" +
                 std::to_string(operand.index() + d) + " in lane " + std::to_string(half * 32 + i);
        }
      }
      return std::nullopt;
    };
    if (address.is_vgpr()) {
      if (auto reason = found(address, bits_of(address.type), false, "address")) return reason;
    }
    if (data.is_vgpr() && !in.has(flag::format)) {
      if (auto reason = found(data, bits, in.has(flag::high), "data")) return reason;
    }
  }
  return std::nullopt;
}

std::optional<std::string> Undefined::step(Wave& wave, const DecodedAt& at, const Effects& effects,
                                           std::span<const Op> ops) {
  const Instruction& in = at.instruction;
  if (in.has(flag::waits) || ops.empty() || defined(effects)) return std::nullopt;
  switch (in.format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopc:
    case Format::sopk:
      if (effects.reach == Reach::none) {
        scalar(wave, in);
        return std::nullopt;
      }
      break;
    case Format::vop1:
    case Format::vop2:
    case Format::vop3:
    case Format::vop3sd:
    case Format::vop3p:
      if (in.lanes != LaneControl::none || in.has(flag::matrix)) break;
      if (in.opcode == Opcode::v_permlane16_b32 || in.opcode == Opcode::v_permlanex16_b32) break;
      if (across_lanes(wave, in) || exchange(wave, at)) return std::nullopt;
      if (in.dst.is_vgpr()) {
        vector(wave, in, in.dst, in.src.data());
        return std::nullopt;
      }
      if (info(in.opcode).encoding == Encoding::vopc) {
        compare(wave, in);
        return std::nullopt;
      }
      break;
    case Format::vopc:
      if (in.lanes != LaneControl::none) break;
      compare(wave, in);
      return std::nullopt;
    case Format::vopd: {
      // Both halves read before either writes.
      const Lanes before = source(in.y.dst, 0, 0);
      vector(wave, in, in.y.dst, in.y.src.data());
      const Lanes second = source(in.y.dst, 0, 0);
      put(wave, in.y.dst.index(), 0, before);
      vector(wave, in, in.dst, in.src.data());
      put(wave, in.y.dst.index(), 0, second);
      return std::nullopt;
    }
    case Format::ds:
      local(wave, in, effects, ops.front());
      return std::nullopt;
    case Format::flat:
    case Format::global:
    case Format::mubuf:
    case Format::mtbuf:
      if (effects.store) {
        if (auto reason = stores(wave, in, ops.front())) return reason;
      }
      break;
    default:
      break;
  }
  if (effects.load && in.has(flag::d16)) {
    for (unsigned half = 0; half < wave.halves; ++half) {
      Lanes old = source(in.dst, 0, half);
      for (Word& each : old) each &= in.has(flag::high) ? 0xFFFFU : 0xFFFF0000U;
      put(wave, in.dst.index(), half, old);
    }
    return std::nullopt;
  }
  define(wave, effects);
  return std::nullopt;
}

}  // namespace kiln::simulator
