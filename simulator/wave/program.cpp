#include "simulator/wave/program.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "simulator/wave/check/wave_check.hpp"
#include "simulator/wave/resolve.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {
namespace {

Next raise_decode_fault(Wave& wave, const Op&) {
  wave.fault = wave.block->fault;
  return Next::fault;
}

// Index of Ops that belong to no instruction.
constexpr std::uint16_t no_instruction = 0xFFFF;

// Whether words that blocks were decoded from differ now. Others may: drivers place code beside code that runs.
bool decoded_words_differ(const CodePage& page, const std::byte* now) {
  for (const std::unique_ptr<Block>& block : page.blocks) {
    if (block->decoded.empty()) continue;
    const std::size_t first = block->decoded.front().address - page.address;
    // A word that could not be decoded stands behind the end.
    const std::size_t unknown = block->fault ? longest_instruction * sizeof(std::uint32_t) : 0;
    const std::size_t last = std::min<std::size_t>(block->end - page.address + unknown, Page::bytes);
    const auto* then = reinterpret_cast<const std::byte*>(page.copy.data());
    if (std::memcmp(now + first, then + first, last - first) != 0) return true;
  }
  return false;
}

MultiplyAdd step_of(const Op& op, WaveSize wave) {
  const auto row = [wave](unsigned index) {
    return static_cast<std::uint16_t>(index * static_cast<unsigned>(wave) * 4U);  // of 256 registers: they all fit
  };
  MultiplyAdd step;
  for (unsigned s = 0; s < 3; ++s) step.source[s] = row(op.reg[s]);
  step.is_scalar = op.kind[0] == SourceKind::scalar;
  if (step.is_scalar) step.source[0] = op.reg[0];
  step.result = row(op.vdst);
  return step;
}

// The registers of steps that may be done in any order.
class IndependentSteps {
 public:
  // Adds a step, unless it reads or writes the result of one before or writes what one before reads.
  bool take(const MultiplyAdd& step) {
    const auto reads_result = [&](unsigned s) { return results_.contains(step.source[s]); };
    if (results_.contains(step.result) || sources_.contains(step.result) || (!step.is_scalar && reads_result(0)) ||
        reads_result(1) || reads_result(2)) {
      return false;
    }
    results_.insert(step.result);
    sources_.insert(step.source + (step.is_scalar ? 1 : 0), step.source + 3);
    return true;
  }

 private:
  std::unordered_set<std::uint16_t> results_, sources_;
};

// Puts the steps that share a source side by side, those of the source that most have first.
void group_by_source(std::span<MultiplyAdd> run) {
  for (std::size_t i = 0; i < run.size(); ++i) run[i].op = static_cast<std::uint16_t>(i);
  while (!run.empty()) {
    std::unordered_map<std::uint16_t, unsigned> uses;
    for (const MultiplyAdd& step : run) {
      ++uses[step.source[1]];
      if (!step.is_scalar && step.source[0] != step.source[1]) ++uses[step.source[0]];
    }
    const auto first_use = std::max_element(run.begin(), run.end(), [&](const MultiplyAdd& a, const MultiplyAdd& b) {
      return uses[a.source[1]] < uses[b.source[1]];
    });
    const std::uint16_t shared = first_use->source[1];
    for (MultiplyAdd& step : run) {
      if (!step.is_scalar && step.source[0] == shared) std::swap(step.source[0], step.source[1]);
    }
    const auto rest =
        std::stable_partition(run.begin(), run.end(), [&](const auto& step) { return step.source[1] == shared; });
    const auto scalars =
        std::stable_partition(run.begin(), rest, [](const MultiplyAdd& step) { return step.is_scalar; });
    for (auto step = run.begin(); step != rest; ++step) {
      step->together = static_cast<std::uint8_t>(std::min<std::ptrdiff_t>((step < scalars ? scalars : rest) - step, 4));
    }
    run = run.subspan(static_cast<std::size_t>(rest - run.begin()));
  }
}

// Fills in `fused` and `steps`.
void fuse(Block& block, const SemanticsTable& semantics, WaveSize wave) {
  constexpr std::size_t shortest = 2;
  for (const Op& op : block.ops) {
    if (semantics.is_multiply_add(op)) block.steps.push_back(step_of(op, wave));
  }
  if (block.steps.size() < shortest) return;
  std::size_t step = 0;
  for (std::size_t at = 0; at < block.ops.size();) {
    std::size_t count = 0;
    IndependentSteps taken;
    while (semantics.is_multiply_add(block.ops[at + count]) && taken.take(block.steps[step + count])) {
      ++count;  // the last Op is none
    }
    if (count < shortest) {
      block.fused.push_back(block.ops[at]);
    } else {
      Op run;
      run.run = semantics.multiply_adds();
      run.place[0] = reinterpret_cast<std::uintptr_t>(&block.steps[step]);
      run.place[1] = reinterpret_cast<std::uintptr_t>(&block.ops[at]);
      run.extra = static_cast<std::uint16_t>(count);
      run.index = block.ops[at].index;
      block.fused.push_back(run);
      group_by_source({&block.steps[step], count});
    }
    step += count;
    at += std::max<std::size_t>(count, 1);
  }
}

Next fall_through(Wave& wave, const Op&) {
  wave.pc = wave.block->end;
  return Next::jump;
}

}  // namespace

const std::uint32_t* ConstantPool::spread(std::uint64_t value) {
  const std::uint32_t*& known = known_[value];
  if (known == nullptr) {
    Spread& spread = values_.emplace_back();
    for (unsigned i = 0; i < 32; ++i) {
      spread.words[i] = static_cast<std::uint32_t>(value);
      spread.words[i + 32] = static_cast<std::uint32_t>(value >> 32U);
    }
    known = spread.words;
  }
  return known;
}

Program::Program(CodeTarget target, const SemanticsTable& semantics, Hazards hazards)
    : target_(target), semantics_(semantics), hazards_(hazards) {}

const LaneMemory& Program::lane_memory() const noexcept { return semantics_.vector().memory; }

void Program::begin_dispatch(DeviceMemory& memory, std::uint64_t forgotten) {
  memory_ = &memory;
  forgotten_ = forgotten;
  ++dispatch_;
  if (pages_.size() > most_pages) {
    pages_.clear();
    constants_ = {};
  }
}

const Block* Program::find_slowly(std::uint64_t pc, CodePage*& page, std::optional<Fault>& fault) {
  if ((pc & 3U) != 0) {
    fault = Fault{FaultKind::misaligned, pc, {}, "program counter is no multiple of 4"};
    return nullptr;
  }
  const std::uint64_t base = pc & ~(Page::bytes - 1);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<CodePage>& held = pages_[base];
  if (held == nullptr) {
    held = std::make_unique<CodePage>();
    held->address = base;
    held->forgotten = forgotten_;
  }
  if (held->checked.load(std::memory_order_relaxed) != dispatch_) {
    if ((fault = check(*held))) {
      if (fault->kind != FaultKind::hazard && fault->address == base) fault->address = pc;
      return nullptr;
    }
    held->checked.store(dispatch_, std::memory_order_release);
  }
  page = held.get();
  std::atomic<const Block*>& entry = page->entry[pc % Page::bytes / 4];
  if (const Block* block = entry.load(std::memory_order_relaxed)) return block;
  const Block* block = page->blocks.emplace_back(decode_block(*page, pc)).get();
  entry.store(block, std::memory_order_release);
  return block;
}

std::optional<std::uint32_t> Program::word_at(std::uint64_t pc) {
  const std::lock_guard lock(mutex_);
  const auto held = pages_.find(pc & ~(Page::bytes - 1));
  if (held == pages_.end() || held->second->checked.load(std::memory_order_relaxed) != dispatch_) return {};
  return held->second->copy[pc % Page::bytes / 4];
}

// Rights, and whether the words are those that were decoded. No wave of this dispatch has run the page yet.
std::optional<Fault> Program::check(CodePage& page) {
  Page now;
  if (std::optional<Fault> fault = memory_->page(page.address, Access::execute, now)) return fault;
  const bool same = std::memcmp(now.data, page.copy.data(), Page::bytes) == 0;
  bool differs = !same && decoded_words_differ(page, now.data);
  const std::array<std::uint32_t, longest_instruction> tail = page.tail;
  if (!differs && page.uses_tail) {
    if (std::optional<Fault> fault = fetch_tail(page)) return fault;
    differs = tail != page.tail;
  }
  if (differs) {
    if (page.forgotten == forgotten_) {
      page.tail = tail;  // the next dispatch finds the same change
      return Fault{FaultKind::hazard,
                   page.address,
                   {},
                   "code has changed since it ran, and the instruction cache was not invalidated"};
    }
    for (std::atomic<const Block*>& entry : page.entry) entry.store(nullptr, std::memory_order_relaxed);
    page.blocks.clear();
    page.uses_tail = false;
  }
  if (!same) std::memcpy(page.copy.data(), now.data, Page::bytes);
  page.forgotten = forgotten_;
  return std::nullopt;
}

std::optional<Fault> Program::fetch_tail(CodePage& page) {
  Page next;
  if (std::optional<Fault> fault = memory_->page(page.address + Page::bytes, Access::execute, next)) return fault;
  std::memcpy(page.tail.data(), next.data, sizeof(page.tail));
  page.uses_tail = true;
  return std::nullopt;
}

std::unique_ptr<Block> Program::decode_block(CodePage& page, std::uint64_t pc) {
  auto block = std::make_unique<Block>();
  const Resolver resolver(target_, semantics_, constants_);
  std::size_t at = pc % Page::bytes / 4;
  bool open = true;
  while (open && at < CodePage::words) {
    std::array<std::uint32_t, longest_instruction> words{};
    std::size_t count = std::min<std::size_t>(longest_instruction, CodePage::words - at);
    std::memcpy(words.data(), page.copy.data() + at, count * sizeof(std::uint32_t));
    const std::uint64_t address = page.address + at * 4;
    DecodedAt decoded;
    decoded.address = address;
    decoded.word = words[0];
    std::optional<Fault> fault = decode(target_, std::span(words.data(), count), address, decoded.instruction);
    if (fault && fault->kind == FaultKind::overrun && count < longest_instruction) {
      // The instruction goes on in the next page.
      if (!page.uses_tail) fault = fetch_tail(page);
      if (page.uses_tail) {
        std::memcpy(words.data() + count, page.tail.data(), (longest_instruction - count) * sizeof(std::uint32_t));
        fault = decode(target_, words, address, decoded.instruction);
      }
    }
    const std::uint16_t index = static_cast<std::uint16_t>(block->decoded.size());
    if (!fault) fault = resolver.resolve(decoded, index, block->ops, open);
    if (fault) {
      block->fault = std::move(fault);
      Op raise;
      raise.run = &raise_decode_fault;
      raise.index = no_instruction;
      block->ops.push_back(raise);
      open = false;
    } else {
      if (hazards_ == Hazards::watched) block->effects.push_back(effects_of(decoded.instruction, target_.wave));
      at += decoded.instruction.dwords;
      ++block->instructions;
    }
    if (decoded.vgpr_end > block->vgpr_end) block->vgpr_end = decoded.vgpr_end;
    block->decoded.push_back(std::move(decoded));
  }
  block->end = page.address + at * 4;
  if (open) {
    Op next;
    next.run = &fall_through;
    next.index = no_instruction;
    block->ops.push_back(next);
  }
  if (hazards_ == Hazards::ignored && semantics_.multiply_adds() != nullptr) fuse(*block, semantics_, target_.wave);
  return block;
}

namespace {

using Ops = std::span<const Op>;

Next run_ops(Wave& wave, Ops ops) {
  for (const Op& op : ops) {
    const Next next = op.run(wave, op);
    if (next != Next::go) return next;
  }
  return Next::go;
}

// Makes the other half's row repeat what one half wrote.
void repeat_shared(Wave& wave, const Operand& written, unsigned half) {
  if (!written.is_vgpr()) return;
  const unsigned end = std::min(written.index() + dwords_of(written.type, WaveSize::wave64),
                                static_cast<unsigned>(wave.vgpr_count + wave.shared_vgprs));
  for (unsigned vgpr = std::max<unsigned>(written.index(), wave.vgpr_count); vgpr < end; ++vgpr) {
    std::copy_n(wave.row(scratch_rows + vgpr, half), 32, wave.row(scratch_rows + vgpr, 1 - half));
  }
}

// One instruction that names shared VGPRs. One that writes them does so for the low half of the wave first, as hardware
// does: what the high half writes comes last.
Next run_shared(Wave& wave, Ops ops, const Instruction& instruction) {
  const bool exchanges = instruction.opcode == Opcode::v_swap_b32;
  const Operand& other = exchanges ? instruction.src[0] : Operand{};
  const auto writes = [&wave](const Operand& operand) {
    return operand.is_vgpr() && operand.index() + dwords_of(operand.type, WaveSize::wave64) > wave.vgpr_count;
  };
  if (!writes(instruction.dst) && !writes(other)) return run_ops(wave, ops);
  std::uint32_t* const exec = wave.scalar + scalar_index::exec;
  const std::uint32_t lanes[] = {exec[0], exec[1]};
  const bool masks = instruction.sdst.present() && instruction.sdst.code != operand::null;
  const unsigned carry = masks ? instruction.sdst.code : scalar_sink;
  const std::uint32_t carry_before = wave.scalar[carry + 1U];
  Next next = Next::go;
  std::uint32_t carry_low = 0;
  for (unsigned half = 0; half < 2 && next == Next::go; ++half) {
    const bool alone = lanes[1 - half] == 0;
    if (lanes[half] == 0 && !(alone && half == 0)) continue;
    exec[1 - half] = 0;
    next = run_ops(wave, ops);
    exec[0] = lanes[0];
    exec[1] = lanes[1];
    if (lanes[half] == 0) continue;
    repeat_shared(wave, instruction.dst, half);
    repeat_shared(wave, other, half);
    if (alone) break;
    // Each half writes its own word of a mask.
    if (half == 0) {
      carry_low = wave.scalar[carry];
      wave.scalar[carry + 1U] = carry_before;
    } else {
      wave.scalar[carry] = carry_low;
    }
  }
  return next;
}

// One instruction after the other: where the block names registers behind the wave's own, it runs up to the first
// instruction that names one which the wave lacks (shared ones it has); and where hazards are looked for.
Next run_apart(Wave& wave, const Block& block) {
  const Ops all(block.ops);
  std::size_t at = 0;
  for (std::uint16_t index = 0; index < block.instructions; ++index) {
    const std::size_t first = at;
    while (at < all.size() && all[at].index == index) ++at;
    const Ops ops = all.subspan(first, at - first);
    const DecodedAt& decoded = block.decoded[index];
    const std::uint32_t end = decoded.vgpr_end;
    if (end > wave.vgpr_count + wave.shared_vgprs && !ops.empty()) return refuse_register(wave, ops.front(), end - 1U);
    if (wave.check != nullptr && !wave.check->before(wave, decoded, block.effects[index], ops)) return Next::fault;
    const Next next = end > wave.vgpr_count ? run_shared(wave, ops, decoded.instruction) : run_ops(wave, ops);
    if (next != Next::go) return next;
  }
  return run_ops(wave, all.subspan(at));
}

Next run_block(Wave& wave, const Block& block) {
  const Op* op = block.fused.empty() ? block.ops.data() : block.fused.data();
  Next next;
  while ((next = op->run(wave, *op)) == Next::go) ++op;
  return next;
}

// A program counter that leads to no code: what led there is the last instruction of the block before.
void add_origin(Wave& wave, const Block* from) {
  if (from == nullptr || from->decoded.empty() || !wave.fault) return;
  const DecodedAt& at = from->decoded.back();
  wave.fault->dword = at.word;
  wave.fault->reason +=
      " (after " + std::string(mnemonic(at.instruction.opcode, wave.generation)) + " at " + hex(at.address) + ")";
}

}  // namespace

Next run_wave(Wave& wave, Program& program, CodePage*& page, std::uint64_t share,
              const std::atomic<const char*>& stop) {
  const unsigned host_mode = _mm_getcsr();
  _mm_setcsr(wave.csr32);
  const std::uint64_t until = wave.instructions + share;
  Next next;
  do {
    const Block* block = program.find(wave.pc, page, wave.fault);
    if (block == nullptr) {
      add_origin(wave, wave.block);
      next = Next::fault;
      break;
    }
    wave.block = block;
    const bool apart = wave.check != nullptr || block->vgpr_end > wave.vgpr_count;
    next = apart ? run_apart(wave, *block) : run_block(wave, *block);
    wave.instructions += block->instructions;
    if (wave.instructions >= until || stop.load(std::memory_order_relaxed) != nullptr) {
      if (next == Next::jump) next = Next::yield;
    }
  } while (next == Next::jump);
  _mm_setcsr(host_mode);
  return next;
}

}  // namespace kiln::simulator
