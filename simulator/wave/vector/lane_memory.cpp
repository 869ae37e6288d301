#include "simulator/wave/lane_memory.hpp"

#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

// Bits that keep the active lanes of `low` from being start, start + bytes, start + 2 * bytes …
KILN_LANE Word differing(const Word* low, Word start, Word bytes, Word mask) {
  Word bits = 0;
  for (unsigned i = 0; i < group; ++i) bits |= (mask >> i & 1U) != 0 ? low[i] ^ (start + i * bytes) : 0U;
  return bits;
}

bool side_by_side_global(Wave& wave, const Op& op, unsigned half, Word bytes, Wide& base) {
  const Word mask = wave.exec(half);
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  const Wide offset = static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  const bool based = op.kind[2] == SourceKind::scalar;
  if (op.kind[0] != SourceKind::row) return false;
  const Word* low = wave.row(op.reg[0], half);
  const Word start = low[first] - first * bytes;
  // Lanes must not pass from one 4 GiB into the next.
  if (start > low[first] || start + group * bytes < start) return false;
  if (differing(low, start, bytes, mask) != 0) return false;
  Wide high = 0;
  if (!based) {
    const Word* upper = wave.row(op.reg[0] + 1U, half);
    if (differing(upper, upper[first], 0, mask) != 0) return false;
    high = static_cast<Wide>(upper[first]) << 32U;
  }
  base = (based ? wave.scalar64(op.sdst) : high) + start + offset;
  return (base & 3U) == 0;
}

bool side_by_side_local(Wave& wave, const Op& op, unsigned half, Word bytes, Word offset, Wide& base) {
  const Word mask = wave.exec(half);
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  if (op.kind[0] != SourceKind::row) return false;
  const Word* low = wave.row(op.reg[0], half);
  const Word start = low[first] - first * bytes;
  if (differing(low, start, bytes, mask) != 0) return false;
  const Word sum = start + offset;  // of 32 bits; the lanes must not pass their end
  if (sum + group * bytes < sum) return false;
  base = sum;
  return (base & 3U) == 0;
}

void load_row(Word* row, const std::byte* from, Word mask) {
  const Word* words = reinterpret_cast<const Word*>(from);
  if (mask == ~0U) {
    for (unsigned i = 0; i < group; ++i) row[i] = words[i];
  } else {
    for (unsigned i = 0; i < group; ++i) row[i] = (mask >> i & 1U) != 0 ? words[i] : row[i];
  }
}

}  // namespace

LaneMemory lane_memory() noexcept { return {&side_by_side_global, &side_by_side_local, &load_row}; }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
