#include "onednn/candidate.hpp"

#include <algorithm>
#include <functional>

namespace kiln::cpu {
namespace {

constexpr std::uint64_t alignment = 64;

}  // namespace

Pipeline::Operand Pipeline::reserve(const dnnl::memory::desc& desc) {
  const std::uint64_t offset = workspace_bytes_;
  workspace_bytes_ += (desc.get_size() + alignment - 1) / alignment * alignment;
  return {0, Place::workspace, desc, offset};
}

void Pipeline::add(const dnnl::primitive& primitive, const dnnl::engine& engine, const dnnl::memory::desc& scratchpad,
                   std::vector<Operand> operands) {
  Step step;
  step.primitive = primitive;
  operands.push_back(reserve(scratchpad));
  operands.back().argument = DNNL_ARG_SCRATCHPAD;
  for (Operand& operand : operands) {
    if (operand.desc.get_size() == 0) continue;
    dnnl::memory memory(operand.desc, engine, DNNL_MEMORY_NONE);
    step.arguments.push_back({operand.argument, memory.get()});
    step.bound.push_back({std::move(operand), std::move(memory)});
  }
  steps_.push_back(std::move(step));
}

void Pipeline::add_reorder(const dnnl::engine& engine, Operand from, Operand to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc described(engine, from.desc, engine, to.desc, attributes);
  from.argument = DNNL_ARG_FROM;
  to.argument = DNNL_ARG_TO;
  add(dnnl::reorder(described), engine, described.scratchpad_desc(), {std::move(from), std::move(to)});
}

void Pipeline::run(dnnl::stream& stream, const Addresses& addresses) {
  for (Step& step : steps_) {
    for (Bound& bound : step.bound) {
      std::byte* at = addresses[static_cast<std::size_t>(bound.operand.place)] + bound.operand.offset;
      if (at == bound.at) continue;
      bound.memory.set_data_handle(at);
      bound.at = at;
    }
    dnnl::error::wrap_c_api(dnnl_primitive_execute(step.primitive.get(), stream.get(),
                                                   static_cast<int>(step.arguments.size()), step.arguments.data()),
                            "a primitive failed while it ran");
  }
  stream.wait();
}

namespace {

// Two cache lines: neighbours that the processor fetches together are not shared between threads.
constexpr std::uint64_t apart = 128;

}  // namespace

std::uint64_t Candidate::tile_bytes() const noexcept {
  std::uint64_t most = 0;
  for (const Pipeline& tile : tiles_) most = std::max(most, tile.workspace_bytes());
  return (most + apart - 1) / apart * apart;
}

std::uint64_t Candidate::workspace_bytes(int threads) const noexcept {
  return tiles_.size() == 1 ? tile_bytes() : tile_bytes() * static_cast<std::uint64_t>(threads);
}

void Candidate::run(WorkerPool& pool, dnnl::stream& stream, const Addresses& addresses,
                    const std::vector<std::byte*>& constants) {
  const auto run_tile = [&](std::size_t tile, std::size_t thread) {
    Addresses here = addresses;
    here[static_cast<std::size_t>(Place::constant)] = constants[tile];
    if (thread != 0) here[static_cast<std::size_t>(Place::workspace)] += thread * tile_bytes();
    tiles_[tile].run(stream, here);
  };
  if (tiles_.size() == 1) return run_tile(0, 0);
  // A thread that finds its core taken leaves its tiles to the others. By reference: a copy would be an allocation.
  pool.run(tiles_.size(), std::cref(run_tile));
}

namespace {

constexpr int most_turns = 25;

// The first turn alone may take this many budgets: a candidate that was never run cannot win.
constexpr std::uint64_t first_turn = 2;

// The likely best, which stands first, yields only to a gain that is more than the clock's and the caches' moods.
constexpr double tie_ratio = 1.03;

// What a user sees of a candidate is its usual time; its least one may be luck with the caches.
std::uint64_t lower_median(std::vector<std::uint64_t>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// A candidate's first run also pays for cold code, page faults and sleeping threads, and its first in each turn for
// operands that the others have driven out of the caches. Of one that is over within this share of the budget the
// second counts.
constexpr std::uint64_t brief_share = 20;

// How far behind the fastest a candidate may be after so many turns. A first run that was not brief counts with all
// that it paid for.
double tolerated(int turns) { return turns == 1 ? 3.0 : turns < 4 ? 1.3 : 1.1; }

std::size_t fastest_of(const std::vector<std::uint64_t>& times) {
  const auto least = std::min_element(times.begin(), times.end());
  const bool tie = static_cast<double>(times.front()) <= static_cast<double>(*least) * tie_ratio;
  return tie ? 0 : static_cast<std::size_t>(least - times.begin());
}

}  // namespace

Choice choose_fastest(std::size_t candidates, std::chrono::nanoseconds budget,
                      const std::function<std::uint64_t(std::size_t)>& run) {
  Choice choice;
  choice.typical_ns.assign(candidates, Choice::not_timed);
  std::vector<std::vector<std::uint64_t>> times(candidates);
  std::vector<std::size_t> in_race(candidates);
  for (std::size_t i = 0; i < candidates; ++i) in_race[i] = i;
  const auto most_ns = static_cast<std::uint64_t>(budget.count());
  std::uint64_t spent_ns = 0;
  for (int turn = 1; turn <= most_turns && (turn == 1 || in_race.size() > 1); ++turn) {
    for (const std::size_t candidate : in_race) {
      if (spent_ns >= (turn == 1 ? first_turn * most_ns : most_ns) && spent_ns != 0) return choice;
      std::uint64_t took = run(candidate);
      spent_ns += took;
      if (took <= most_ns / brief_share) {
        took = run(candidate);
        spent_ns += took;
      }
      times[candidate].push_back(took);
      choice.typical_ns[candidate] = lower_median(times[candidate]);
      choice.fastest = fastest_of(choice.typical_ns);
    }
    const double limit = static_cast<double>(choice.typical_ns[choice.fastest]) * tolerated(turn);
    std::erase_if(in_race, [&](std::size_t i) { return static_cast<double>(choice.typical_ns[i]) > limit; });
  }
  return choice;
}

}  // namespace kiln::cpu
