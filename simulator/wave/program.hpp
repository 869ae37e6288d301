// Decoded programs, and the loop that executes one wave of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/fault.hpp"
#include "simulator/isa/decoder.hpp"
#include "simulator/memory/device_memory.hpp"
#include "simulator/wave/check/effects.hpp"
#include "simulator/wave/op.hpp"
#include "simulator/wave/semantics_table.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

// Program: code as it stood when it was decoded, a block at a time, for one generation and wave size.
//
// A page of code is looked up anew in every dispatch (rights, buffer list), and compared with what was decoded: equal
// words keep their blocks. Changed words are decoded again if the instruction cache was invalidated since, and are a
// hazard if not: hardware would run the old ones.
// Thread-safety: find() from any thread of a dispatch; the others while none runs. Ownership: blocks live until the
// next begin_dispatch() or find() that finds their page changed.

struct DecodedAt {
  Instruction instruction;
  std::uint64_t address = 0;
  std::uint32_t word = 0;      // the first
  std::uint16_t vgpr_end = 0;  // one past the highest VGPR that it names
};

struct Block {          // from an entry to the first instruction that may not fall through, or the page's end
  std::vector<Op> ops;  // the last never answers `go`
  // The same with runs of multiply-adds in one Op each; empty where there are none, or hazards are looked for.
  std::vector<Op> fused;
  std::vector<MultiplyAdd> steps;
  std::vector<DecodedAt> decoded;  // by Op::index
  std::vector<Effects> effects;    // likewise, where hazards are looked for
  std::uint32_t instructions = 0;
  std::uint16_t vgpr_end = 0;
  std::uint64_t end = 0;       // address after the last instruction
  std::optional<Fault> fault;  // what the last Op raises: no instruction could be decoded there
};

struct CodePage {
  static constexpr std::size_t words = Page::bytes / sizeof(std::uint32_t);
  std::uint64_t address = 0;
  std::atomic<std::uint64_t> checked{0};  // dispatch in which it was last compared
  std::uint64_t forgotten = 0;            // invalidations of the instruction cache when it was decoded
  std::array<std::uint32_t, words> copy{};
  std::array<std::uint32_t, longest_instruction> tail{};  // first words of the next page
  bool uses_tail = false;
  std::array<std::atomic<const Block*>, words> entry{};
  std::vector<std::unique_ptr<Block>> blocks;
};

// Constants of instructions, spread over lanes. Addresses stay.
class ConstantPool {
 public:
  const std::uint32_t* spread(std::uint64_t value);  // 32 low words, 32 high words

 private:
  struct alignas(64) Spread {
    std::uint32_t words[64];
  };
  std::map<std::uint64_t, const std::uint32_t*> known_;
  std::deque<Spread> values_;
};

class Program {
 public:
  enum class Hazards : std::uint8_t { invalid = 0, ignored, watched };  // watched: waves may have a check

  Program(CodeTarget target, const SemanticsTable& semantics, Hazards hazards = Hazards::ignored);

  // REQUIRES: no wave runs. `forgotten`: how often the instruction cache has been invalidated so far.
  void begin_dispatch(DeviceMemory& memory, std::uint64_t forgotten);

  // The word at `pc`, as it was decoded; nothing where no page of code that this dispatch looked up holds it.
  std::optional<std::uint32_t> word_at(std::uint64_t pc);

  // The block that starts at `pc`; null: `fault` says why. `page` is the caller's last page, null at first.
  const Block* find(std::uint64_t pc, CodePage*& page, std::optional<Fault>& fault) {
    if (page != nullptr && page->address == (pc & ~(Page::bytes - 1)) && (pc & 3U) == 0) {
      const Block* block = page->entry[pc % Page::bytes / 4].load(std::memory_order_acquire);
      if (block != nullptr) return block;
    }
    return find_slowly(pc, page, fault);
  }

  const LaneMemory& lane_memory() const noexcept;  // of the vector build that its Ops are of

 private:
  static constexpr std::size_t most_pages = 4096;

  const Block* find_slowly(std::uint64_t pc, CodePage*& page, std::optional<Fault>& fault);
  std::optional<Fault> check(CodePage& page);
  std::optional<Fault> fetch_tail(CodePage& page);
  std::unique_ptr<Block> decode_block(CodePage& page, std::uint64_t pc);

  CodeTarget target_;
  const SemanticsTable& semantics_;
  Hazards hazards_;
  DeviceMemory* memory_ = nullptr;
  std::uint64_t dispatch_ = 0;
  std::uint64_t forgotten_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<CodePage>> pages_;
  ConstantPool constants_;
};

// run_wave: the loop that executes one wave's Ops until it ends, waits, has had its share, or faults.
//
// Thread-safety: one thread a wave; any number of waves at once on one Program. Ownership: borrows all.

// Answers end, barrier, yield (the share is used up, or the wave sleeps, or `stop` was raised) or fault, which stands
// in the wave. `page`: the wave's last code page; null at first. Leaves the thread's floating-point mode as it was.
Next run_wave(Wave& wave, Program& program, CodePage*& page, std::uint64_t share, const std::atomic<const char*>& stop);

}  // namespace kiln::simulator
