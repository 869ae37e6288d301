#include "simulator/compute/group.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <string>

#include "simulator/wave/wave.hpp"

namespace kiln::simulator {
namespace {

// DISPATCH_INITIATOR
constexpr std::uint32_t compute_shader_enable = 1U << 0, partial_groups = 1U << 1, start_at_zero = 1U << 2,
                        thread_dimensions = 1U << 5, wave32_enable = 1U << 15;
// PGM_RSRC1
constexpr std::uint32_t privileged = 1U << 20;
// PGM_RSRC2
constexpr std::uint32_t scratch_enable = 1U << 0, trap_present = 1U << 6;

constexpr std::uint32_t most_threads = 1024, most_lds_bytes = 64 * 1024, lds_granule = 512, most_user_sgprs = 16,
                        most_vgprs = 256, sgprs = 106;

std::uint32_t bits(std::uint32_t word, unsigned low, unsigned count) { return word >> low & ((1U << count) - 1U); }

Fault bad_state(const DispatchState& state, std::string reason) {
  return {FaultKind::bad_state, state.program, {}, std::move(reason)};
}
Fault overrun(const DispatchState& state, std::string reason) {
  return {FaultKind::overrun, state.program, {}, std::move(reason)};
}

std::optional<Fault> plan_grid(const DispatchState& state, Launch& out) {
  std::uint64_t total = 1;
  constexpr const char* names[] = {"X", "Y", "Z"};
  for (unsigned d = 0; d < 3; ++d) {
    const std::uint32_t full = bits(state.num_thread[d], 0, 16), partial = bits(state.num_thread[d], 16, 16);
    if (full == 0) return bad_state(state, std::string("NUM_THREAD_") + names[d] + " is 0");
    total *= full;
    const std::uint32_t start = (state.initiator & start_at_zero) != 0 ? 0 : state.start[d];
    std::uint32_t end = state.groups[d], last = full;
    if ((state.initiator & thread_dimensions) != 0) {
      const std::uint32_t rest = end % full;
      end = end / full + (rest != 0 ? 1 : 0);
      if (rest != 0) last = rest;
    } else if ((state.initiator & partial_groups) != 0 && partial != 0) {
      if (partial > full) {
        return bad_state(state, std::string("NUM_THREAD_") + names[d] + ": partial group of " +
                                    std::to_string(partial) + " threads, whole one of " + std::to_string(full));
      }
      last = partial;
    }
    out.threads[d] = full;
    out.last_threads[d] = last;
    out.start[d] = start;
    out.count[d] = end > start ? end - start : 0;
  }
  if (total > most_threads) {
    return bad_state(state,
                     "workgroup of " + std::to_string(total) + " threads, the most is " + std::to_string(most_threads));
  }
  return std::nullopt;
}

std::optional<Fault> plan_scratch(const DispatchState& state, Launch& out) {
  out.scratch = (state.rsrc2 & scratch_enable) != 0;
  if (!out.scratch) return std::nullopt;
  const bool gfx11 = state.generation == Generation::gfx11;
  out.scratch_slots = bits(state.tmpring_size, 0, 12);
  out.scratch_wave_bytes = gfx11 ? bits(state.tmpring_size, 12, 15) * 256 : bits(state.tmpring_size, 12, 13) * 1024;
  out.scratch_base = state.scratch_base;
  if (out.scratch_slots == 0 || out.scratch_wave_bytes == 0) {
    return bad_state(state, "SCRATCH_EN with TMPRING_SIZE of " + std::to_string(out.scratch_slots) + " waves of " +
                                std::to_string(out.scratch_wave_bytes) + " bytes");
  }
  if (gfx11 && out.scratch_base == 0) return bad_state(state, "SCRATCH_EN with DISPATCH_SCRATCH_BASE 0");
  if (out.waves_per_group() > out.scratch_slots) {
    return bad_state(state, "workgroup of " + std::to_string(out.waves_per_group()) + " waves, scratch for " +
                                std::to_string(out.scratch_slots));
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t resident_groups(const Launch& launch, unsigned compute_units) noexcept {
  // Of a compute unit: two vector units, each with a register file and slots for waves.
  constexpr std::uint64_t vector_units = 2, slots = 16, most_groups = 16;
  const std::uint64_t registers =
      (launch.generation == Generation::gfx11 ? 1536 : 1024) * std::uint64_t{32} / launch.lanes();
  const std::uint64_t of_wave = std::max<std::uint64_t>(1, launch.vgprs + launch.shared_vgprs);
  const std::uint64_t waves = vector_units * std::clamp<std::uint64_t>(registers / of_wave, 1, slots);
  std::uint64_t groups = std::min(most_groups, waves / launch.waves_per_group());
  if (launch.lds_bytes != 0) groups = std::min<std::uint64_t>(groups, most_lds_bytes / launch.lds_bytes);
  groups = std::max<std::uint64_t>(1, groups) * compute_units;
  if (launch.scratch) groups = std::min<std::uint64_t>(groups, launch.scratch_slots / launch.waves_per_group());
  return std::max<std::uint64_t>(1, groups);
}

std::optional<Fault> plan_launch(const DispatchState& state, Launch& out) {
  if (state.generation == Generation::invalid) return bad_state(state, "dispatch without a generation");
  if ((state.initiator & compute_shader_enable) == 0) return bad_state(state, "COMPUTE_SHADER_EN is 0");
  if ((state.rsrc1 & privileged) != 0) return bad_state(state, "PGM_RSRC1.PRIV is set");
  if ((state.rsrc2 & trap_present) != 0)
    return bad_state(state, "PGM_RSRC2.TRAP_PRESENT is set, and there is no trap handler");
  const std::size_t engines = state.generation == Generation::gfx11 ? state.cu_mask.size() : state.cu_mask.size() / 2;
  if (std::all_of(state.cu_mask.begin(), state.cu_mask.begin() + static_cast<std::ptrdiff_t>(engines),
                  [](std::uint32_t mask) { return mask == 0; })) {
    return bad_state(state, "all STATIC_THREAD_MGMT masks are 0: no compute unit may run it");
  }

  out.generation = state.generation;
  out.border_colors = state.border_colors;
  out.wave = (state.initiator & wave32_enable) != 0 ? WaveSize::wave32 : WaveSize::wave64;
  out.program = state.program;
  if (std::optional<Fault> fault = plan_grid(state, out)) return fault;

  out.vgprs = (bits(state.rsrc1, 0, 6) + 1) * (out.wave == WaveSize::wave32 ? 8 : 4);
  out.vgprs = std::min(out.vgprs, most_vgprs);
  out.shared_vgprs = bits(state.rsrc3, 0, 4) * 8;
  if (out.shared_vgprs != 0 && out.wave == WaveSize::wave32) {
    return bad_state(state,
                     "PGM_RSRC3.SHARED_VGPR_CNT " + std::to_string(out.shared_vgprs / 8) + " with waves of 32 lanes");
  }
  if (out.vgprs + out.shared_vgprs > most_vgprs) {
    return overrun(state, std::to_string(out.vgprs) + " VGPRs and " + std::to_string(out.shared_vgprs) +
                              " shared ones of " + std::to_string(most_vgprs));
  }
  out.mode = bits(state.rsrc1, 12, 8) | bits(state.rsrc1, 21, 1) << mode_bit::dx10_clamp |
             bits(state.rsrc1, 23, 1) << mode_bit::ieee | bits(state.rsrc1, 26, 1) << mode_bit::fp16_ovfl;
  out.user_data = state.user_data;
  out.user_sgprs = bits(state.rsrc2, 1, 5);
  for (unsigned d = 0; d < 3; ++d) out.group_id[d] = bits(state.rsrc2, 7 + d, 1) != 0;
  out.group_info = bits(state.rsrc2, 10, 1) != 0;
  out.thread_ids = std::min(bits(state.rsrc2, 11, 2), 2U) + 1;
  if (out.user_sgprs > most_user_sgprs) {
    return overrun(state, "USER_SGPR " + std::to_string(out.user_sgprs) + " of " + std::to_string(most_user_sgprs));
  }
  static_assert(most_user_sgprs + 5 <= sgprs);
  out.lds_allocation = bits(state.rsrc2, 15, 9);
  out.lds_bytes = out.lds_allocation * lds_granule;
  if (out.lds_bytes > most_lds_bytes) {
    return overrun(state, "LDS_SIZE " + std::to_string(out.lds_bytes) + " bytes of " + std::to_string(most_lds_bytes));
  }
  const std::uint32_t id_vgprs = state.generation == Generation::gfx11 ? 1 : out.thread_ids;
  if (id_vgprs > out.vgprs) {
    return overrun(state,
                   "thread ids take " + std::to_string(id_vgprs) + " of " + std::to_string(out.vgprs) + " VGPRs");
  }
  return plan_scratch(state, out);
}

namespace {

// What registers and LDS hold before a program writes them: hardware promises nothing, and zeros would hide mistakes.
constexpr std::uint32_t undefined_word = 0x7FBADBADU;
constexpr std::byte undefined_byte{0xDB};

// Instructions until the next wave of a group has its turn, so that waves may wait for one another's writes.
constexpr std::uint64_t turn = 2'000;
constexpr std::uint64_t drawn_lengths = 10;  // 1, 2, 4 … 512

constexpr std::align_val_t alignment{64};

}  // namespace

void GroupRunner::Free::operator()(std::uint32_t* words) const noexcept { ::operator delete(words, alignment); }

void GroupRunner::make_room(unsigned waves) {
  while (seats_.size() < waves) seats_.push_back(std::make_unique<Seat>());
  wave_words_ = static_cast<std::size_t>(scratch_rows + launch_->vgprs + launch_->shared_vgprs) * launch_->lanes();
  if (const std::size_t words = wave_words_ * waves; words > register_words_) {
    registers_.reset(static_cast<std::uint32_t*>(::operator new(words * sizeof(std::uint32_t), alignment)));
    register_words_ = words;
  }
  lds_.assign(launch_->lds_bytes, undefined_byte);
}

GroupRunner::Shape GroupRunner::shape_of(std::uint64_t index) const {
  const std::uint64_t row = launch_->count[0], plane = row * launch_->count[1];
  const std::array<std::uint64_t, 3> at{index % row, index % plane / row, index / plane};
  Shape shape;
  shape.total = 1;
  for (unsigned d = 0; d < 3; ++d) {
    shape.id[d] = launch_->start[d] + static_cast<std::uint32_t>(at[d]);
    shape.threads[d] = at[d] + 1 == launch_->count[d] ? launch_->last_threads[d] : launch_->threads[d];
    shape.total *= shape.threads[d];
  }
  shape.waves = (shape.total + launch_->lanes() - 1) / launch_->lanes();
  return shape;
}

void GroupRunner::seat_wave(const Shape& shape, unsigned number, unsigned slot) {
  Seat& seat = *seats_[number];
  seat.state = State::ready;
  seat.page = nullptr;
  Wave& wave = seat.wave;
  std::fill(std::begin(wave.scalar), std::end(wave.scalar), undefined_word);
  wave.set_rows(registers_.get() + wave_words_ * number);
  std::fill_n(wave.rows, wave_words_, undefined_word);
  wave.row_shift = launch_->wave == WaveSize::wave32 ? 5 : 6;
  wave.halves = launch_->wave == WaveSize::wave32 ? 1 : 2;
  wave.scc = false;
  wave.mode = launch_->mode;
  wave.trap_status = 0;
  wave.vgpr_count = launch_->vgprs;
  wave.shared_vgprs = launch_->shared_vgprs;
  wave.generation = launch_->generation;
  wave.border_colors = launch_->border_colors;
  wave.check = context_.races != nullptr ? &check_.wave(number) : nullptr;
  wave.pc = launch_->program;
  wave.instructions = 0;
  wave.clock = context_.clock;
  wave.block = nullptr;
  wave.port = context_.port;
  wave.lane_memory = &context_.program->lane_memory();
  wave.lds = {lds_.data(), launch_->lds_bytes};
  wave.lds_allocation = launch_->lds_allocation << 12U;
  wave.hardware_id = number & 31U;
  wave.fault.reset();
  wave.scratch = {};
  wave.flat_scratch = 0;
  if (launch_->scratch) {
    wave.scratch.bytes = launch_->scratch_wave_bytes;
    wave.scratch.wave_offset = (slot * launch_->waves_per_group() + number) * launch_->scratch_wave_bytes;
    wave.scratch.base = launch_->scratch_base + wave.scratch.wave_offset;
  }

  unsigned next = 0;
  for (; next < launch_->user_sgprs; ++next) wave.scalar[next] = launch_->user_data[next];
  for (unsigned d = 0; d < 3; ++d) {
    if (launch_->group_id[d]) wave.scalar[next++] = shape.id[d];
  }
  if (launch_->group_info) {
    // From gfx10.3 on compilers take the wave's number from bits 20 to 24.
    wave.scalar[next++] = shape.waves | number << 6U | (number & 31U) << 20U | (number == 0 ? 1U << 31U : 0U);
  }
  if (launch_->scratch && launch_->generation == Generation::gfx10_3) wave.scalar[next++] = wave.scratch.wave_offset;
  seat_threads(shape, number, wave);
  if (context_.races != nullptr) {
    check_.define(wave, number, next, launch_->generation == Generation::gfx11 ? 1 : launch_->thread_ids);
  }
  wave.set_mode(launch_->mode);
}

void GroupRunner::seat_threads(const Shape& shape, unsigned number, Wave& wave) const {
  const std::uint32_t lanes = launch_->lanes(), first = number * lanes;
  const bool packed = launch_->generation == Generation::gfx11;
  std::uint64_t exec = 0;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const std::uint32_t thread = first + lane;
    if (thread >= shape.total) break;
    exec |= std::uint64_t{1} << lane;
    const std::uint32_t x = thread % shape.threads[0], y = thread / shape.threads[0] % shape.threads[1];
    const std::uint32_t z = thread / (shape.threads[0] * shape.threads[1]);
    const std::uint32_t ids[] = {x, y, z};
    if (packed) {
      std::uint32_t fields = x;  // compilers take the others to be zero where the dispatch does not ask for them
      for (unsigned d = 1; d < launch_->thread_ids; ++d) fields |= ids[d] << 10U * d;
      wave.row(scratch_rows, lane / 32)[lane % 32] = fields;
      continue;
    }
    for (unsigned d = 0; d < launch_->thread_ids; ++d) wave.row(scratch_rows + d, lane / 32)[lane % 32] = ids[d];
  }
  wave.set_scalar64(scalar_index::exec, exec);
}

std::optional<Fault> GroupRunner::take_turn(Seat& seat, std::uint64_t length) {
  const std::uint64_t limit = context_.instruction_limit;
  const std::uint64_t share = std::min(length, limit - std::min(limit, seat.wave.instructions));
  Program& program = *context_.program;
  const Next next = run_wave(seat.wave, program, seat.page, share, *context_.stop);
  switch (next) {
    case Next::fault:
      return std::move(seat.wave.fault);
    case Next::end:
      seat.state = State::ended;
      if (seat.wave.check != nullptr) seat.wave.check->end();
      --running_;
      context_.counters->instructions += seat.wave.instructions;
      return std::nullopt;
    case Next::barrier:
      seat.state = State::waiting;
      break;
    default:
      break;
  }
  if (const char* reason = context_.stop->load(std::memory_order_acquire)) {
    return Fault{FaultKind::planted, seat.wave.pc, program.word_at(seat.wave.pc), reason};
  }
  if (seat.wave.instructions >= limit) {
    return Fault{FaultKind::watchdog, seat.wave.pc, program.word_at(seat.wave.pc),
                 "a wave has not ended after " + std::to_string(seat.wave.instructions) +
                     " instructions, the limit is " + std::to_string(limit)};
  }
  return std::nullopt;
}

// Every wave that is left has reached the barrier; those that have ended do not count.
void GroupRunner::leave_barrier() {
  if (context_.races != nullptr) check_.barrier();
  for (const unsigned number : order_) {
    if (seats_[number]->state == State::waiting) seats_[number]->state = State::ready;
  }
}

std::optional<Fault> GroupRunner::run_slice(std::uint64_t instructions) {
  const std::uint64_t whole = std::clamp<std::uint64_t>(instructions / order_.size(), 1, turn);
  std::uint64_t spent = 0;
  while (running_ != 0 && spent < instructions) {
    if (context_.random != nullptr) std::shuffle(order_.begin(), order_.end(), *context_.random);
    bool any_ready = false;
    for (const unsigned number : order_) {
      Seat& seat = *seats_[number];
      if (seat.state != State::ready) continue;
      const std::uint64_t before = seat.wave.instructions;
      const std::uint64_t length =
          context_.random != nullptr ? std::uint64_t{1} << (*context_.random)() % drawn_lengths : whole;
      if (std::optional<Fault> fault = take_turn(seat, length)) return fault;
      spent += seat.wave.instructions - before;
      any_ready |= seat.state == State::ready;
    }
    if (!any_ready) leave_barrier();
    if (context_.random != nullptr && (*context_.random)() % 4 == 0) break;  // other groups' turn
  }
  return std::nullopt;
}

std::uint64_t GroupRunner::place() const noexcept {
  for (const unsigned number : order_) {
    if (seats_[number]->state != State::ended) return seats_[number]->wave.pc;
  }
  return launch_->program;
}

void GroupRunner::start(const GroupContext& context, std::uint64_t index, unsigned slot) {
  context_ = context;
  launch_ = context.launch;
  const Shape shape = shape_of(index);
  make_room(shape.waves);
  order_.resize(shape.waves);
  std::iota(order_.begin(), order_.end(), 0U);
  if (context_.races != nullptr) {
    check_.start(*context_.races, index, shape.waves, launch_->waves_per_group(), launch_->lds_bytes,
                 launch_->vgprs + launch_->shared_vgprs, launch_->program);
  }
  for (unsigned i = 0; i < shape.waves; ++i) seat_wave(shape, i, slot);
  running_ = shape.waves;
  ++context.counters->groups;
  context.counters->waves += shape.waves;
  context.counters->invocations += shape.total;
}

}  // namespace kiln::simulator
