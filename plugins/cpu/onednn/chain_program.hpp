// ChainProgram: a chain of layers that runs as one program on the worker threads.
//
// Thread-safety: as LibraryProgram. Ownership: owns its plans; packed constants stay with their buffers.
// The first run times the plans (layouts and numbers of tiles) on the caller's tensors, within the time for tuning, and
// the fastest stays. Threads meet after each phase: they look at a counter for a moment, and then give up their core.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "onednn/chain_plan.hpp"
#include "onednn/library_program.hpp"

namespace kiln::cpu {

class ChainRun;

class ChainProgram final : public LibraryProgram {
 public:
  // Throws dnnl::error. REQUIRES: validate(spec).ok(), and as LibraryProgram::create().
  ChainProgram(const ChainSpec& spec, const dnnl::engine& engine, int threads);
  ~ChainProgram() override;

  std::uint64_t charge() const noexcept override;
  std::chrono::nanoseconds run(std::span<Buffer* const> bindings, const Resources& resources,
                               ChainFigures* figures) const override;

 private:
  mutable std::vector<std::unique_ptr<ChainRun>> candidates_;  // one once it is chosen
  std::size_t steps_;
};

}  // namespace kiln::cpu
