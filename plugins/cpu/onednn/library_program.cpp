#include "onednn/library_program.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include <kiln/clock.hpp>

#include "onednn/candidate.hpp"
#include "onednn/chain_program.hpp"

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
    return unsupported("program: dialect " + std::string(to_string(source.dialect)) +
                       ": device 'cpu' runs library calls only");
  }
  if (!source.spec.has_value())
    return invalid_argument("program '" + source.text + "': dialect library without a spec");
  const KernelSpec& spec = *source.spec;
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    return unsupported("kernel " + kernel->path +
                       ": device 'cpu' runs library calls only, no source of the user's own");
  }
  if (Status status = validate(spec); !status.ok()) return status;
  if (const std::string text = canonical_text(spec); source.text != text) {
    return invalid_argument("program: text '" + source.text + "' is not that of its spec, '" + text + "'");
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
    if (bindings[i] == nullptr) return invalid_argument(what_ + ": " + tensors_[i].name + ": no buffer is bound");
    if (bindings[i]->bytes() < tensors_[i].bytes) {
      return invalid_argument(what_ + ": " + tensors_[i].name + ": a buffer of " +
                              std::to_string(bindings[i]->bytes()) + " bytes, expected " +
                              std::to_string(tensors_[i].bytes));
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

}  // namespace kiln::cpu
