// Formatted buffer loads and stores: MUBUF's by the descriptor's format and selection, MTBUF's by the instruction's
// format.

#include <iterator>

#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/memory/operations.hpp"
#include "simulator/wave/memory/texel.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::memory_unit {
namespace {

enum : std::uint8_t { x = 1, xy = 2, xyz = 3, xyzw = 4, count_mask = 7, narrow = 8, high = 16 };

struct Format {
  BufferFormat layout;
  unsigned bytes = 0;
  unsigned select = 0;
  bool unbound = false;
};

constexpr unsigned identity = 4U | 5U << 3U | 6U << 6U | 7U << 9U;

template <bool Typed>
bool find_format(Wave& wave, const Op& op, const Buffer& buffer, Format& out) {
  const unsigned number = Typed ? op.extra : buffer.descriptor().format;
  if (!Typed && number == 0) {  // as without a resource: all is outside
    out.unbound = true;
    return true;
  }
  const std::optional<BufferFormat> found = find_buffer_format(wave.generation, number);
  if (!found) {
    refuse(wave, op, FaultKind::bad_state, "buffer format " + std::to_string(number) + " does not exist");
    return false;
  }
  out.layout = *found;
  out.bytes = bytes_of(*found);
  out.select = Typed ? identity : buffer.descriptor().select;
  return true;
}

template <bool Typed>
Next load_format(Wave& wave, const Op& op) {
  const TexelScope scope(wave);
  const unsigned count = op.detail & count_mask;
  Buffer buffer(wave, op);
  Format format;
  if (!find_format<Typed>(wave, op, buffer, format)) return Next::fault;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!buffer.addresses(half, format.bytes, at)) return Next::fault;
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const bool outside = format.unbound || (at.outside >> i & 1U) != 0;
      Element element{};
      if (!outside && !buffer.load(half * group + i, at.lane[i], element.data(), format.bytes)) return Next::fault;
      const Color color = color_of(element, format.layout);
      for (unsigned c = 0; c < count; ++c) {
        Word value = outside ? 0 : chosen(color, format.select >> 3 * c & 7U, format.layout.type);
        if ((op.detail & narrow) == 0) {
          wave.row(op.vdst + c, half)[i] = value;
          continue;
        }
        value = narrowed(value, format.layout.type);
        Word& word = wave.row(op.vdst + c / 2, half)[i];
        const bool upper = c % 2 != 0 || (op.detail & high) != 0;
        word = upper ? (word & 0xFFFFU) | value << 16U : (word & 0xFFFF0000U) | value;
      }
    }
  }
  return Next::go;
}

template <bool Typed>
Next store_format(Wave& wave, const Op& op) {
  const TexelScope scope(wave);
  const unsigned count = op.detail & count_mask;
  Buffer buffer(wave, op);
  Format format;
  if (!find_format<Typed>(wave, op, buffer, format)) return Next::fault;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!buffer.addresses(half, format.bytes, at)) return Next::fault;
    for (Word left = format.unbound ? 0 : at.active & ~at.outside; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      Color given{}, color{};
      for (unsigned c = 0; c < count; ++c) {
        if ((op.detail & narrow) == 0) {
          given[c] = wave.row(op.reg[1] + c, half)[i];
        } else {
          const bool upper = c % 2 != 0 || (op.detail & high) != 0;
          given[c] = widened(wave.row(op.reg[1] + c / 2, half)[i] >> (upper ? 16U : 0U), format.layout.type);
        }
      }
      // A channel takes the component that a load would fill from it.
      for (unsigned c = 4; c-- > 0;) {
        const unsigned select = format.select >> 3 * c & 7U;
        if (select >= 4) color[select - 4] = given[c];
      }
      const Element element = element_of(color, format.layout);
      if (!buffer.store(half * group + i, at.lane[i], element.data(), format.bytes)) return Next::fault;
    }
  }
  return Next::go;
}

template <bool Typed>
struct Formats {
  static constexpr Semantics entries[] = {
      {"load_format_x", &load_format<Typed>, takes::nothing, x},
      {"load_format_xy", &load_format<Typed>, takes::nothing, xy},
      {"load_format_xyz", &load_format<Typed>, takes::nothing, xyz},
      {"load_format_xyzw", &load_format<Typed>, takes::nothing, xyzw},
      {"store_format_x", &store_format<Typed>, takes::nothing, x},
      {"store_format_xy", &store_format<Typed>, takes::nothing, xy},
      {"store_format_xyz", &store_format<Typed>, takes::nothing, xyz},
      {"store_format_xyzw", &store_format<Typed>, takes::nothing, xyzw},
      {"load_d16_format_x", &load_format<Typed>, takes::nothing, x | narrow},
      {"load_d16_format_xy", &load_format<Typed>, takes::nothing, xy | narrow},
      {"load_d16_format_xyz", &load_format<Typed>, takes::nothing, xyz | narrow},
      {"load_d16_format_xyzw", &load_format<Typed>, takes::nothing, xyzw | narrow},
      {"store_d16_format_x", &store_format<Typed>, takes::nothing, x | narrow},
      {"store_d16_format_xy", &store_format<Typed>, takes::nothing, xy | narrow},
      {"store_d16_format_xyz", &store_format<Typed>, takes::nothing, xyz | narrow},
      {"store_d16_format_xyzw", &store_format<Typed>, takes::nothing, xyzw | narrow},
      {"load_d16_hi_format_x", &load_format<Typed>, takes::nothing, x | narrow | high},
      {"store_d16_hi_format_x", &store_format<Typed>, takes::nothing, x | narrow | high},
  };
};

}  // namespace

SemanticsList formatted_buffer() noexcept { return {Formats<false>::entries, std::size(Formats<false>::entries)}; }
SemanticsList typed_buffer() noexcept { return {Formats<true>::entries, std::size(Formats<true>::entries)}; }

SemanticsList buffer() noexcept { return Operations<Buffer>::list(); }

// Before a load with tfe: into row 0 whether the memory of each lane's element lacks.
Next buffer_status(Wave& wave, const Op& op) {
  Buffer buffer(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    Addresses at;
    if (!buffer.addresses(half, 1, at)) return Next::fault;
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const bool outside = (at.outside >> i & 1U) != 0;
      wave.row(0, half)[i] = outside || wave.port->memory().resident(at.lane[i]) ? 0 : 1;
    }
  }
  return Next::go;
}

namespace {

// Words of lanes side by side, from the scalar address on.
template <bool Store>
Next by_thread(Wave& wave, const Op& op) {
  const Wide base = (op.kind[2] == SourceKind::scalar ? wave.scalar64(op.sdst) : 0) +
                    static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  const Global space(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const unsigned lane = half * group + i;
      const bool moved = Store ? space.store(lane, base + lane * word_bytes, wave.row(op.reg[1], half) + i, word_bytes)
                               : space.load(lane, base + lane * word_bytes, wave.row(op.vdst, half) + i, word_bytes);
      if (!moved) return Next::fault;
    }
  }
  return Next::go;
}

constexpr Semantics thread_entries[] = {
    {"load_addtid_b32", &by_thread<false>},
    {"store_addtid_b32", &by_thread<true>},
};

}  // namespace

SemanticsList by_thread_id() noexcept { return {thread_entries, std::size(thread_entries)}; }
SemanticsList flat() noexcept { return Operations<Flat>::list(); }
SemanticsList global() noexcept { return Operations<Global>::list(); }
SemanticsList scratch() noexcept { return Operations<Scratch>::list(); }

}  // namespace kiln::simulator::memory_unit
