#include "onednn/library_program.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <utility>

#include <kiln/clock.hpp>

#include "onednn/candidate.hpp"

namespace kiln::cpu {
namespace {

// Where primitives find the tensors, in the order of tensors_of().
std::vector<Place> places_of(const std::vector<TensorDecl>& tensors) {
  constexpr Place inputs[] = {Place::input, Place::addend};
  constexpr Place constants[] = {Place::constant, Place::bias};
  std::size_t input = 0, constant = 0;
  std::vector<Place> places;
  for (const TensorDecl& tensor : tensors) {
    places.push_back(tensor.role == TensorRole::input      ? inputs[input++]
                     : tensor.role == TensorRole::constant ? constants[constant++]
                                                           : Place::output);
  }
  return places;
}

HostBuffer& host_buffer(Buffer* buffer) { return static_cast<HostBuffer&>(*buffer); }

std::byte* address_of(Buffer* buffer) { return buffer->mapped().data(); }

std::string milliseconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(ns) / 1e6);
  return text;
}

std::string in_words(const std::vector<Candidate>& candidates, const Choice& choice) {
  std::string text = candidates[choice.fastest].layout();
  const char* before = " of ";
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool timed = choice.typical_ns[i] != Choice::not_timed;
    text += before + candidates[i].layout() + " " + (timed ? milliseconds(choice.typical_ns[i]) : "not timed");
    before = ", ";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Program>> LibraryProgram::create(const KernelSource& source, const dnnl::engine& engine,
                                                        int threads, std::string_view layout) {
  if (source.dialect != Dialect::library) {
    return unsupported("program: dialect is " + std::string(to_string(source.dialect)) +
                       ", expected library for device 'cpu'");
  }
  if (!source.spec.has_value())
    return invalid_argument("program '" + source.text + "': dialect library requires a spec");
  const KernelSpec& spec = *source.spec;
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    return unsupported("kernel " + kernel->path + ": device 'cpu' runs library calls only, not user kernels");
  }
  if (Status status = validate(spec); !status.ok()) return status;
  if (const std::string text = canonical_text(spec); source.text != text) {
    return invalid_argument("program: text is '" + source.text + "', expected '" + text + "' from the spec");
  }
  if (const auto* chain = std::get_if<ChainSpec>(&spec)) {
    return std::unique_ptr<Program>(std::make_unique<ChainProgram>(*chain, engine, threads));
  }
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  const auto* gemm = std::get_if<GemmSpec>(&spec);
  std::vector<Candidate> candidates = conv != nullptr   ? conv2d_candidates(*conv, engine, threads, layout)
                                      : gemm != nullptr ? gemm_candidates(*gemm, engine, threads)
                                                        : simple_candidates(spec, engine, threads);
  return std::unique_ptr<Program>(new LibraryProgram(spec, std::move(candidates)));
}

LibraryProgram::LibraryProgram(const KernelSpec& spec, std::vector<Candidate> candidates)
    : what_(canonical_text(spec)),
      tensors_(tensors_of(spec)),
      places_(places_of(tensors_)),
      candidates_(std::move(candidates)) {}

LibraryProgram::LibraryProgram(const KernelSpec& spec, std::string what)
    : what_(std::move(what)), tensors_(tensors_of(spec)) {}

Status LibraryProgram::check(std::span<Buffer* const> bindings) const {
  if (bindings.size() != tensors_.size()) {
    return invalid_argument(what_ + ": " + std::to_string(bindings.size()) + " bindings, expected " +
                            std::to_string(tensors_.size()));
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const auto who = [&] { return what_ + ": tensor " + tensors_[i].name; };
    if (bindings[i] == nullptr) return invalid_argument(who() + ": no buffer is bound");
    if (bindings[i]->bytes() < tensors_[i].bytes) {
      return invalid_argument(who() + ": buffer has " + std::to_string(bindings[i]->bytes()) +
                              " bytes, expected at least " + std::to_string(tensors_[i].bytes));
    }
  }
  return {};
}

std::chrono::nanoseconds LibraryProgram::run(std::span<Buffer* const> bindings, const Resources& resources,
                                             ChainFigures*) const {
  if (candidates_.size() > 1) choose(bindings, resources);
  Candidate& candidate = candidates_.front();
  return run(candidate, constants_of(candidate, bindings, HostBuffer::Keep::yes, resources), bindings, resources);
}

void LibraryProgram::choose(std::span<Buffer* const> bindings, const Resources& resources) const {
  Choice choice;
  if (resources.tuning.count() > 0) {
    std::vector<Constants> constants(candidates_.size());
    choice = choose_fastest(candidates_.size(), resources.tuning, [&](std::size_t i) {
      Candidate& candidate = candidates_[i];
      if (constants[i].at.empty()) constants[i] = constants_of(candidate, bindings, HostBuffer::Keep::no, resources);
      return static_cast<std::uint64_t>(run(candidate, constants[i], bindings, resources).count());
    });
    if (resources.log.wants(LogLevel::info)) {
      resources.log.write(LogLevel::info, "cpu", what_ + ": chosen " + in_words(candidates_, choice));
    }
  }
  Candidate fastest = std::move(candidates_[choice.fastest]);
  candidates_.clear();
  candidates_.push_back(std::move(fastest));
}

LibraryProgram::Constants LibraryProgram::constants_of(const Candidate& candidate, std::span<Buffer* const> bindings,
                                                       HostBuffer::Keep keep, const Resources& resources) const {
  Constants constants;
  const auto place = std::ranges::find(places_, Place::constant);
  if (place == places_.end()) {
    constants.at.resize(candidate.tiles().size());
    return constants;
  }
  HostBuffer& buffer = host_buffer(bindings[static_cast<std::size_t>(place - places_.begin())]);
  const Pipeline::Constant* before = nullptr;
  for (const Pipeline& tile : candidate.tiles()) {
    const Pipeline::Constant& constant = tile.constant();
    if (before != nullptr && *before == constant) {  // tiles of rows share their weights
      constants.at.push_back(constants.at.back());
    } else if (constant.given == constant.wanted) {
      constants.at.push_back(address_of(&buffer) + constant.offset);
    } else {
      constants.held.push_back(buffer.packed(constant, keep, resources.pool, resources.stream, resources.counters));
      constants.at.push_back(static_cast<std::byte*>(constants.held.back().get_data_handle()));
    }
    before = &constant;
  }
  return constants;
}

std::chrono::nanoseconds LibraryProgram::run(Candidate& candidate, const Constants& constants,
                                             std::span<Buffer* const> bindings, const Resources& resources) const {
  Addresses addresses{};
  const auto at = [&addresses](Place place) -> std::byte*& { return addresses[static_cast<std::size_t>(place)]; };
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    if (places_[i] != Place::constant) at(places_[i]) = address_of(bindings[i]);
  }
  at(Place::workspace) = resources.workspace.at_least(candidate.workspace_bytes(resources.pool.threads()));
  const std::uint64_t begun = now_ns();
  candidate.run(resources.pool, resources.stream, addresses, constants.at);
  return std::chrono::nanoseconds(now_ns() - begun);
}

namespace {

// Whole huge pages: a tensor's reorder walks it in strides, which costs a page-table walk a step on small pages.
constexpr std::uint64_t granule = std::uint64_t{2} << 20;

}  // namespace

std::byte* Workspace::at_least(std::uint64_t bytes) {
  if (bytes <= bytes_) return memory_.get();
  const std::uint64_t rounded = (bytes + granule - 1) / granule * granule;
  memory_.reset();
  bytes_ = 0;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(granule, rounded)));
  if (memory_ == nullptr) throw std::bad_alloc();
  madvise(memory_.get(), rounded, MADV_HUGEPAGE);  // advice: a refusal changes nothing but speed
  bytes_ = rounded;
  return memory_.get();
}

namespace {

constexpr std::uint64_t apart_bytes = 4096;  // between the scratchpads of two threads
constexpr int looks_before_yield = 4000;     // about 50 us

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// One plan with the addresses that its operands were bound to last.
class ChainRun {
 public:
  ChainRun(ChainPlan plan, const dnnl::engine& engine) : plan_(std::move(plan)), counters_(plan_.phases.size()) {
    for (const ChainPhase& phase : plan_.phases) {
      std::vector<BoundTile>& tiles = phases_.emplace_back();
      for (const ChainTile& tile : phase.tiles) {
        BoundTile& bound = tiles.emplace_back();
        bound.primitive = tile.primitive;
        for (const ChainOperand& operand : tile.operands) {
          dnnl::memory memory(operand.desc, engine, DNNL_MEMORY_NONE);
          bound.arguments.push_back({operand.argument, memory.get()});
          bound.memories.push_back(std::move(memory));
          bound.at.push_back(nullptr);
        }
      }
    }
  }

  const ChainPlan& plan() const noexcept { return plan_; }

  // Answers the time of the run alone. figures: may be null; else step_ns has an element for each step of the spec.
  std::chrono::nanoseconds run(std::span<Buffer* const> bindings, const Resources& resources, HostBuffer::Keep keep,
                               ChainFigures* figures) {
    pack(bindings, keep, resources);
    const std::uint64_t scratch = (plan_.scratch_bytes + apart_bytes - 1) / apart_bytes * apart_bytes;
    const auto threads = static_cast<std::size_t>(resources.pool.threads());
    std::byte* const memory = resources.workspace.at_least(plan_.arena_bytes + threads * scratch);
    bindings_ = bindings;
    arena_ = memory;
    scratch_ = memory + plan_.arena_bytes;
    scratch_step_ = scratch;
    stream_ = &resources.stream;
    for (Counter& counter : counters_) {
      counter.next.store(0, std::memory_order_relaxed);
      counter.done.store(0, std::memory_order_relaxed);
    }
    failed_.store(false, std::memory_order_relaxed);
    failure_ = nullptr;
    begun_ns_ = now_ns();
    ends_ns_.assign(phases_.size(), begun_ns_);
    const auto work = [this](std::size_t task, std::size_t thread) { run_phases(task == 0, thread); };
    resources.pool.run(threads, std::cref(work));
    if (failed_.load()) std::rethrow_exception(failure_);
    if (figures != nullptr) {
      figures->bytes = plan_.arena_bytes;
      std::uint64_t before = begun_ns_;
      for (std::size_t i = 0; i < phases_.size(); ++i) {
        figures->step_ns[plan_.phases[i].step] += ends_ns_[i] - before;
        before = ends_ns_[i];
      }
    }
    return std::chrono::nanoseconds(phases_.empty() ? 0 : ends_ns_.back() - begun_ns_);
  }

 private:
  struct BoundTile {
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<std::byte*> at;              // the address last bound
    std::vector<dnnl_exec_arg_t> arguments;  // refers to the memories
  };
  struct alignas(64) Counter {
    std::atomic<std::uint32_t> next{0}, done{0};
  };
  struct Packed {
    std::shared_ptr<const void> contents;  // of the buffer that was packed
    dnnl::memory memory;
  };

  // The packed constants of these buffers, with the time that they take outside a run's own.
  void pack(std::span<Buffer* const> bindings, HostBuffer::Keep keep, const Resources& resources) {
    packed_.resize(plan_.constants.size());
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      auto& buffer = static_cast<HostBuffer&>(*bindings[plan_.constants[i].tensor]);
      std::shared_ptr<const void> contents = buffer.contents();
      if (packed_[i].contents == contents) continue;
      packed_[i].memory =
          buffer.packed(plan_.constants[i].form, keep, resources.pool, resources.stream, resources.counters);
      packed_[i].contents = std::move(contents);
    }
  }

  std::byte* address_of(const ChainOperand& operand, std::size_t thread) const {
    switch (operand.place) {
      case ChainPlace::arena:
        return arena_ + plan_.slots[operand.index].offset + operand.offset;
      case ChainPlace::tensor:
        return bindings_[operand.index]->mapped().data() + operand.offset;
      case ChainPlace::packed:
        return static_cast<std::byte*>(packed_[operand.index].memory.get_data_handle());
      case ChainPlace::scratch:
        return scratch_ + thread * scratch_step_;
      case ChainPlace::invalid:
        break;
    }
    return nullptr;
  }

  void run_tile(std::size_t phase, std::size_t tile, std::size_t thread) {
    BoundTile& bound = phases_[phase][tile];
    const std::vector<ChainOperand>& operands = plan_.phases[phase].tiles[tile].operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::byte* const at = address_of(operands[i], thread);
      if (at == bound.at[i]) continue;
      bound.memories[i].set_data_handle(at);
      bound.at[i] = at;
    }
    dnnl::error::wrap_c_api(dnnl_primitive_execute(bound.primitive.get(), stream_->get(),
                                                   static_cast<int>(bound.arguments.size()), bound.arguments.data()),
                            "a primitive failed while it ran");
  }

  void run_phases(bool keeps_time, std::size_t thread) {
    try {
      for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
        const auto tiles = static_cast<std::uint32_t>(phases_[phase].size());
        Counter& counter = counters_[phase];
        for (std::uint32_t tile = counter.next.fetch_add(1, std::memory_order_relaxed); tile < tiles;
             tile = counter.next.fetch_add(1, std::memory_order_relaxed)) {
          run_tile(phase, tile, thread);
          counter.done.fetch_add(1, std::memory_order_release);
        }
        for (int looks = 0; counter.done.load(std::memory_order_acquire) != tiles; ++looks) {
          if (failed_.load(std::memory_order_relaxed)) return;
          if (looks < looks_before_yield) {
            pause_briefly();
          } else {
            sched_yield();
          }
        }
        if (keeps_time) ends_ns_[phase] = now_ns();
      }
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }

  const ChainPlan plan_;
  std::vector<std::vector<BoundTile>> phases_;
  std::vector<Counter> counters_;  // by phase
  std::vector<Packed> packed_;     // by constant of the plan

  // Of the run.
  std::span<Buffer* const> bindings_;
  std::byte* arena_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::uint64_t scratch_step_ = 0;
  dnnl::stream* stream_ = nullptr;
  std::uint64_t begun_ns_ = 0;
  std::vector<std::uint64_t> ends_ns_;  // by phase
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

ChainProgram::ChainProgram(const ChainSpec& spec, const dnnl::engine& engine, int threads)
    : LibraryProgram(spec, "chain of " + std::to_string(spec.steps.size()) + " layers"), steps_(spec.steps.size()) {
  const auto add = [&](ChainLayout layout, int tiles, References references) {
    try {
      candidates_.push_back(std::make_unique<ChainRun>(plan_chain(spec, engine, layout, tiles, references), engine));
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    }
  };
  for (const ChainLayout layout : {ChainLayout::blocked, ChainLayout::rows}) {
    add(layout, threads, References::refused);
    if (threads > 1) add(layout, 2 * threads, References::refused);
  }
  if (candidates_.empty()) add(ChainLayout::blocked, threads, References::allowed);
  if (candidates_.empty()) add(ChainLayout::rows, 1, References::allowed);
  if (candidates_.empty()) throw dnnl::error(dnnl_unimplemented, "no implementation of this chain");
}

ChainProgram::~ChainProgram() = default;

std::uint64_t ChainProgram::charge() const noexcept { return (std::uint64_t{32} << 10) * steps_; }

std::chrono::nanoseconds ChainProgram::run(std::span<Buffer* const> bindings, const Resources& resources,
                                           ChainFigures* figures) const {
  if (candidates_.size() > 1) {
    Choice choice;
    if (resources.tuning.count() > 0) {
      // Packing the weights of a network takes longer than running it, so each plan gets a share of the time.
      choice = choose_fastest(candidates_.size(), resources.tuning * 4, [&](std::size_t i) {
        return static_cast<std::uint64_t>(
            candidates_[i]->run(bindings, resources, HostBuffer::Keep::no, nullptr).count());
      });
      if (resources.log.wants(LogLevel::info)) {
        resources.log.write(LogLevel::info, "cpu",
                            "chain of " + std::to_string(steps_) + " layers: chosen " +
                                candidates_[choice.fastest]->plan().name + ", " +
                                std::to_string(candidates_[choice.fastest]->plan().fused_adds) + " fused adds");
      }
    }
    auto fastest = std::move(candidates_[choice.fastest]);
    candidates_.clear();
    candidates_.push_back(std::move(fastest));
  }
  if (figures != nullptr) figures->step_ns.assign(steps_, 0);
  return candidates_.front()->run(bindings, resources, HostBuffer::Keep::yes, figures);
}

}  // namespace kiln::cpu
