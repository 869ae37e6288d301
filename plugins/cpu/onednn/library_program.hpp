// LibraryProgram: a program that calls oneDNN, and the memory that its primitives need.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program.hpp>

#include "onednn/candidate.hpp"
#include "onednn/chain_plan.hpp"
#include "onednn/host_buffer.hpp"

namespace kiln::cpu {

// Workspace: the memory in which programs keep reordered tensors and oneDNN's scratchpads while they run.
//
// Thread-safety: none; the device that owns it runs one program at a time. Ownership: owns its memory, which only
// grows: all programs of a device share it, so that it stays in the caches and costs no page faults after the largest
// has run.
class Workspace {
 public:
  // 64-byte aligned memory of at least so many bytes; contents undefined; null for none. Throws std::bad_alloc. Memory
  // that an earlier call answered may be gone.
  std::byte* at_least(std::uint64_t bytes);

 private:
  struct Release {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::uint64_t bytes_ = 0;
};

// LibraryProgram: a spec that oneDNN computes: the candidates that could, until its first run has chosen the fastest of
// them.
//
// Thread-safety: run() is called by the device while it holds its queue; the rest is immutable. Ownership: owns its
// primitives; packed constants stay with their buffers.
// Which candidate serves is found by timing on the caller's tensors, so the last bits of a result may differ between
// processes, within the bound of the spec's accuracy.

// What the device lends to a program for a run.
struct Resources {
  WorkerPool& pool;
  dnnl::stream& stream;
  Workspace& workspace;
  std::chrono::nanoseconds tuning{0};
  WorkCounters* counters = nullptr;  // may be null
  Log log;
};

class LibraryProgram : public Program {
 public:
  // invalid_argument or unsupported where the source is not a library's. Throws dnnl::error where oneDNN refuses the
  // spec.
  // threads, layout: as in OpenRequest. REQUIRES, as run(): the calling thread is set to work alone (omp_alone.hpp).
  static Result<std::unique_ptr<Program>> create(const KernelSource& source, const dnnl::engine& engine, int threads,
                                                 std::string_view layout);

  // An estimate: oneDNN does not tell the size of its generated code.
  std::uint64_t charge() const noexcept override { return std::uint64_t{128} << 10; }
  const std::string& what() const noexcept { return what_; }

  // invalid_argument where number or sizes of the bindings are not those of the spec.
  Status check(std::span<Buffer* const> bindings) const;
  // Computes once and answers how long that took; the first run also chooses. REQUIRES: check(bindings).ok(), and the
  // buffers are the device's own. Throws dnnl::error, std::bad_alloc.
  // figures: of a chain; null: not wanted.
  virtual std::chrono::nanoseconds run(std::span<Buffer* const> bindings, const Resources& resources,
                                       ChainFigures* figures) const;

 protected:
  // For a program without candidates, which overrides run().
  LibraryProgram(const KernelSpec& spec, std::string what);

 private:
  struct Constants {
    std::vector<std::byte*> at;      // by tile
    std::vector<dnnl::memory> held;  // the packed forms among them
  };

  LibraryProgram(const KernelSpec& spec, std::vector<Candidate> candidates);
  void choose(std::span<Buffer* const> bindings, const Resources& resources) const;
  Constants constants_of(const Candidate& candidate, std::span<Buffer* const> bindings, HostBuffer::Keep keep,
                         const Resources& resources) const;
  std::chrono::nanoseconds run(Candidate& candidate, const Constants& constants, std::span<Buffer* const> bindings,
                               const Resources& resources) const;

  std::string what_;  // the canonical text, for messages
  std::vector<TensorDecl> tensors_;
  std::vector<Place> places_;                  // of each tensor
  mutable std::vector<Candidate> candidates_;  // one once it is chosen
};

// ChainProgram: a chain of layers that runs as one program on the worker threads.
//
// Thread-safety: as LibraryProgram. Ownership: owns its plans; packed constants stay with their buffers.
// The first run times the plans (layouts and numbers of tiles) on the caller's tensors, within the time for tuning, and
// the fastest stays. Threads meet after each phase: they look at a counter for a moment, and then give up their core.

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
