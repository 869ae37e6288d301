#include "simulator/wave/check/waits.hpp"

#include <algorithm>

#include "simulator/wave/resolve.hpp"

namespace kiln::simulator {
namespace {

std::string name_of(const Registers& registers, unsigned index) {
  if (registers.vector) return "v" + std::to_string(index);
  if (index == scalar_index::vcc) return "vcc_lo";
  if (index == scalar_index::vcc + 1) return "vcc_hi";
  if (index == scalar_index::m0) return "m0";
  return "s" + std::to_string(index);
}

// Loads of memory of different kinds may arrive in any order.
enum class LoadKind : std::uint8_t { plain = 0, sampled, ray };
LoadKind kind_of(Opcode opcode) {
  if ((info(opcode).flags & flag::sampler) != 0) return LoadKind::sampled;
  const bool ray = opcode == Opcode::image_bvh_intersect_ray || opcode == Opcode::image_bvh64_intersect_ray;
  return ray ? LoadKind::ray : LoadKind::plain;
}

// The lane that v_readlane_b32 and v_writelane_b32 name.
std::uint64_t named_lane(const Wave& wave, const Instruction& in) {
  const auto chosen = constant_of(in.src[1], in.literal);
  if (!chosen && in.src[1].code >= operand::integers) return ~std::uint64_t{0};
  const auto lane = static_cast<unsigned>(chosen ? *chosen : wave.scalar[in.src[1].code]);
  return std::uint64_t{1} << (lane & (wave.lanes() - 1));
}

// The lanes of VGPRs that `in` reads or writes: those of EXEC, but for what moves data between lanes.
std::uint64_t lanes_reached(const Wave& wave, const Instruction& in, const Registers& registers, bool writes) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  const std::uint64_t exec = wave.exec64();
  if (in.opcode == Opcode::v_readlane_b32 || in.opcode == Opcode::v_writelane_b32) return named_lane(wave, in);
  if (writes || !in.src[0].is_vgpr() || registers.first != in.src[0].index()) return exec;
  switch (in.opcode) {
    case Opcode::v_readfirstlane_b32:
      return exec == 0 ? 1 : exec;
    case Opcode::v_permlane64_b32:
      return wave.halves == 2 ? exec << 32U | exec >> 32U : exec;
    case Opcode::v_permlane16_b32:
    case Opcode::v_permlanex16_b32:
      return (in.op_sel & 1U) != 0 ? all : exec;
    default:
      break;
  }
  const bool moves = in.lanes == LaneControl::dpp16 || in.lanes == LaneControl::dpp8;
  return moves && in.dpp.fetch_inactive ? all : exec;
}

}  // namespace

void Waits::start(std::uint32_t vgprs) {
  for (Operations& operations : operations_) operations.begun = operations.ended = 0;
  vector_.resize(vgprs);
  late_ = {};
}

std::uint32_t Waits::done(std::initializer_list<Queue> queues, std::uint32_t now) const {
  std::uint32_t until = now;
  for (const Queue queue : queues) {
    if (of(queue).open() != 0) until = std::min(until, of(queue).oldest() - 1);
  }
  return until;
}

void Waits::wait(std::initializer_list<Queue> queues, std::uint32_t count) {
  for (const Queue queue : queues) {
    Operations& operations = of(queue);
    if (!in_order(queue) && count != 0) continue;
    if (operations.open() > count) operations.ended = operations.begun - count;
  }
  const auto over = [](const Operations& operations) { return operations.open() == 0; };
  if (std::all_of(operations_.begin(), operations_.end(), over)) late_ = {};
}

void Waits::wait_by(const Wave& wave, const Instruction& in) {
  const auto field = static_cast<std::uint32_t>(in.simm16);
  const auto loads = [this](std::uint32_t count) { wait({Queue::loads}, count); };
  const auto others = [this](std::uint32_t count) { wait({Queue::local, Queue::scalar}, count); };
  const bool gfx11 = wave.generation == Generation::gfx11;
  switch (in.opcode) {
    case Opcode::s_waitcnt:
      loads(gfx11 ? field >> 10U & 63U : (field & 15U) | (field >> 14U & 3U) << 4U);
      others(gfx11 ? field >> 4U & 63U : field >> 8U & 63U);
      break;
    case Opcode::s_waitcnt_vmcnt:
      loads(field & 63U);
      break;
    case Opcode::s_waitcnt_lgkmcnt:
      others(field & 63U);
      break;
    case Opcode::s_waitcnt_vscnt:
      wait({Queue::stores}, field & 63U);
      break;
    case Opcode::s_wait_idle:
      loads(0);
      others(0);
      wait({Queue::stores}, 0);
      break;
    default:
      break;
  }
}

std::uint32_t Waits::begin(Queue queue, std::uint32_t time) {
  Operations& operations = of(queue);
  std::vector<std::uint32_t>& times = operations.times;
  if (operations.open() == times.size()) {
    std::vector<std::uint32_t> larger(std::max<std::size_t>(2 * times.size(), 64));
    for (std::uint32_t number = operations.ended + 1; number != operations.begun + 1; ++number) {
      larger[number & (larger.size() - 1)] = operations.at(number);
    }
    times = std::move(larger);
  }
  ++operations.begun;
  times[operations.begun & (times.size() - 1)] = time;
  return operations.begun;
}

Waits::Queue Waits::queue_of(const Wave& wave, const Instruction& in, const Effects& effects) const {
  switch (effects.reach) {
    case Reach::local:
      return Queue::local;
    case Reach::scalar:
      return Queue::scalar;
    case Reach::flat: {
      // The lanes of one instruction rarely differ in what they reach; the first one decides.
      const std::uint64_t exec = wave.exec64();
      const unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(exec));
      const std::uint32_t* high = const_cast<Wave&>(wave).row(scratch_rows + in.src[0].index() + 1U, lane / 32);
      if (high[lane % 32] == shared_aperture >> 32U) return Queue::local;
      return effects.load ? Queue::loads : Queue::stores;
    }
    default:
      return effects.load ? Queue::loads : Queue::stores;
  }
}

template <class Body>
bool Waits::each_late(const Registers& registers, const Body& body) {
  for (unsigned i = 0; i < registers.count; ++i) {
    const unsigned index = registers.first + i;
    if (index >= (registers.vector ? vector_.size() : RegisterSet::count - RegisterSet::scalars)) return false;
    const unsigned bit = index + (registers.vector ? 0 : RegisterSet::scalars);
    if (!late_.holds(bit)) continue;
    bool any = false;
    for (const Late& late : registers.vector ? vector_[index] : scalar_[index]) {
      if (late.number == 0 || !pending(late)) continue;
      if (body(late, index)) return true;
      any = true;
    }
    if (!any) late_.erase(bit);
  }
  return false;
}

std::string Waits::describe(const Wave& wave, const Registers& registers, unsigned index, const Late& late,
                            const char* use) const {
  const Operations& operations = of(late.queue);
  const std::uint32_t count = in_order(late.queue) ? operations.begun - late.number : 0;
  return name_of(registers, index) + " is " + use + " before " + std::string(mnemonic(late.opcode, wave.generation)) +
         " at " + hex(late.address) + " has been waited for (expected s_waitcnt with " +
         (late.queue == Queue::loads ? "vmcnt" : "lgkmcnt") + "(" + std::to_string(count) + ") or less between them)";
}

std::optional<std::string> Waits::hazard(const Wave& wave, const DecodedAt& at, const Effects& effects) {
  if (arrived(effects)) return std::nullopt;
  std::optional<std::string> reason;
  for (const Registers& registers : effects.reads) {
    const std::uint64_t lanes = registers.vector ? lanes_reached(wave, at.instruction, registers, false) : 0;
    const bool found = each_late(registers, [&](const Late& late, unsigned index) {
      if (registers.vector && (late.lanes & lanes) == 0) return false;
      reason = describe(wave, registers, index, late, "read");
      return true;
    });
    if (found) return reason;
  }
  for (const Registers& registers : effects.writes) {
    const std::uint64_t lanes = registers.vector ? lanes_reached(wave, at.instruction, registers, true) : 0;
    const bool found = each_late(registers, [&](const Late& late, unsigned index) {
      if (registers.vector && (late.lanes & lanes) == 0) return false;
      // Two loads of one kind arrive in order.
      const bool same_queue = effects.load && late.queue == queue_of(wave, at.instruction, effects);
      if (same_queue && in_order(late.queue) && kind_of(late.opcode) == kind_of(at.instruction.opcode)) return false;
      reason = describe(wave, registers, index, late, "overwritten");
      return true;
    });
    if (found) return reason;
  }
  return std::nullopt;
}

void Waits::run(const Wave& wave, const DecodedAt& at, const Effects& effects, std::uint32_t time) {
  const Instruction& in = at.instruction;
  if (in.has(flag::waits)) {
    wait_by(wave, in);
    return;
  }
  if (effects.reach == Reach::none || (!effects.load && !effects.store)) return;
  const Queue queue = queue_of(wave, in, effects);
  const std::uint32_t number = begin(queue, time);
  if (effects.reach == Reach::flat) {
    const Queue memory = effects.load ? Queue::loads : Queue::stores;
    begin(queue == Queue::local ? memory : Queue::local, only_counted);
  }
  if (!effects.load) return;
  const std::uint64_t lanes = effects.vector ? wave.exec64() : ~std::uint64_t{0};
  if (lanes == 0) return;
  for (const Registers& registers : effects.writes) {
    for (unsigned i = 0; i < registers.count; ++i) {
      const unsigned index = registers.first + i;
      if (index >= (registers.vector ? vector_.size() : RegisterSet::count - RegisterSet::scalars)) break;
      auto& slots = registers.vector ? vector_[index] : scalar_[index];
      const unsigned bit = index + (registers.vector ? 0 : RegisterSet::scalars);
      if (!late_.holds(bit)) slots = {};
      late_.insert(bit);
      if (pending(slots[0]) && (slots[0].lanes & ~lanes) != 0) slots[1] = slots[0];
      slots[0] = {number, queue, in.opcode, lanes, at.address};
    }
  }
}

}  // namespace kiln::simulator
