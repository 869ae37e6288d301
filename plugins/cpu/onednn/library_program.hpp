// LibraryProgram: a spec that oneDNN computes: the candidates that could, until its first run has chosen the fastest of
// them.
//
// Thread-safety: run() is called by the device while it holds its queue; the rest is immutable. Ownership: owns its
// primitives; packed constants stay with their buffers.
// Which candidate serves is found by timing on the caller's tensors, so the last bits of a result may differ between
// processes, within the bound of the spec's accuracy.
#pragma once

#include "onednn/host_buffer.hpp"
#include "onednn/layouts/candidate.hpp"
#include "onednn/workspace.hpp"

#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace kiln::cpu {

// What the device lends to a program for a run.
struct Resources {
  WorkerPool& pool;
  dnnl::stream& stream;
  Workspace& workspace;
  std::chrono::nanoseconds tuning{0};
  WorkCounters* counters = nullptr;  // may be null
  Log log;
};

class LibraryProgram final : public Program {
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
  std::chrono::nanoseconds run(std::span<Buffer* const> bindings, const Resources& resources) const;

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
  mutable std::vector<Candidate> candidates_;  // one once it is chosen
};

}  // namespace kiln::cpu
