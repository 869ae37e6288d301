#include <iterator>

#include "simulator/wave/memory/lists.hpp"
#include "simulator/wave/memory/operations.hpp"

namespace kiln::simulator::memory_unit {
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
