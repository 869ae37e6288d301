#include "onednn/library_program.hpp"

#include "onednn/layouts/choice.hpp"
#include "onednn/layouts/conv2d.hpp"
#include "onednn/layouts/gemm.hpp"

#include <kiln/clock.hpp>

#include <cstdio>
#include <utility>

namespace kiln::cpu {
namespace {

// The order in which tensors_of() names them.
constexpr std::size_t input_at = 0;
constexpr std::size_t constant_at = 1;
constexpr std::size_t bias_at = 2;

HostBuffer& host_buffer(Buffer* buffer) { return static_cast<HostBuffer&>(*buffer); }

std::byte* address_of(Buffer* buffer) { return buffer->mapped().data(); }

std::string milliseconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(ns) / 1e6);
  return text;
}

std::string in_words(const std::vector<Pipeline>& candidates, const Choice& choice) {
  std::string text = candidates[choice.fastest].layout();
  const char* before = " of ";
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool timed = choice.least_ns[i] != Choice::not_timed;
    text += before + candidates[i].layout() + " " + (timed ? milliseconds(choice.least_ns[i]) : "not timed");
    before = ", ";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Program>> LibraryProgram::create(const KernelSource& source, const dnnl::engine& engine,
                                                        std::string_view layout) {
  if (source.dialect != Dialect::library) {
    return unsupported("program: dialect " + std::string(to_string(source.dialect)) +
                       ": device 'cpu' runs library calls only");
  }
  if (!source.spec.has_value())
    return invalid_argument("program '" + source.text + "': dialect library without a spec");
  const KernelSpec& spec = *source.spec;
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    return unsupported("kernel " + kernel->path + ": device 'cpu' runs library calls only (conv2d, gemm)");
  }
  if (Status status = validate(spec); !status.ok()) return status;
  if (const std::string text = canonical_text(spec); source.text != text) {
    return invalid_argument("program: text '" + source.text + "' is not that of its spec, '" + text + "'");
  }
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  std::vector<Pipeline> candidates =
      conv != nullptr ? conv2d_pipelines(*conv, engine, layout) : gemm_pipelines(std::get<GemmSpec>(spec), engine);
  return std::unique_ptr<Program>(new LibraryProgram(spec, std::move(candidates)));
}

LibraryProgram::LibraryProgram(const KernelSpec& spec, std::vector<Pipeline> candidates)
    : what_(canonical_text(spec)), tensors_(tensors_of(spec)), candidates_(std::move(candidates)) {}

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

std::chrono::nanoseconds LibraryProgram::run(std::span<Buffer* const> bindings, const Resources& resources) const {
  if (candidates_.size() > 1) choose(bindings, resources);
  Pipeline& pipeline = candidates_.front();
  if (pipeline.constant_given() == pipeline.constant_wanted()) return run(pipeline, {}, bindings, resources);
  const dnnl::memory packed = host_buffer(bindings[constant_at])
                                  .packed(pipeline.constant_given(), pipeline.constant_wanted(), HostBuffer::Keep::yes,
                                          resources.stream, resources.counters);
  return run(pipeline, packed, bindings, resources);
}

void LibraryProgram::choose(std::span<Buffer* const> bindings, const Resources& resources) const {
  Choice choice;
  if (resources.tuning.count() > 0) {
    std::vector<dnnl::memory> packed(candidates_.size());
    choice = choose_fastest(candidates_.size(), resources.tuning, [&](std::size_t i) {
      Pipeline& pipeline = candidates_[i];
      if (!packed[i] && pipeline.constant_given() != pipeline.constant_wanted()) {
        packed[i] = host_buffer(bindings[constant_at])
                        .packed(pipeline.constant_given(), pipeline.constant_wanted(), HostBuffer::Keep::no,
                                resources.stream, resources.counters);
      }
      return static_cast<std::uint64_t>(run(pipeline, packed[i], bindings, resources).count());
    });
    if (resources.log.wants(LogLevel::info)) {
      resources.log.write(LogLevel::info, "cpu", what_ + ": chosen " + in_words(candidates_, choice));
    }
  }
  Pipeline fastest = std::move(candidates_[choice.fastest]);
  candidates_.clear();
  candidates_.push_back(std::move(fastest));
}

std::chrono::nanoseconds LibraryProgram::run(Pipeline& pipeline, const dnnl::memory& constant,
                                             std::span<Buffer* const> bindings, const Resources& resources) const {
  Addresses addresses{};
  const auto at = [&addresses](Place place) -> std::byte*& { return addresses[static_cast<std::size_t>(place)]; };
  at(Place::input) = address_of(bindings[input_at]);
  at(Place::constant) =
      constant ? static_cast<std::byte*>(constant.get_data_handle()) : address_of(bindings[constant_at]);
  if (bindings.size() == 4) at(Place::bias) = address_of(bindings[bias_at]);
  at(Place::output) = address_of(bindings.back());
  at(Place::workspace) = resources.workspace.at_least(pipeline.workspace_bytes());
  const std::uint64_t begun = now_ns();
  pipeline.run(resources.stream, addresses);
  return std::chrono::nanoseconds(now_ns() - begun);
}

}  // namespace kiln::cpu
