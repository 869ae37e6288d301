// Pipeline: oneDNN primitives in order, with the places of their operands: a way to compute a spec, or a part of it.
//
// Thread-safety: one thread at a time runs it; distinct pipelines are independent. Ownership: owns its primitives;
// addresses are given with each run. It knows the layout in which it wants its constant; packing it is the caller's.
#pragma once

#include <kiln/kernel.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/worker_pool.hpp"

namespace kiln::cpu {

// Where an operand lives. All but the workspace are the tensors of a spec, the constant as packed.
enum class Place : std::uint8_t { input, addend, constant, bias, output, workspace };
using Addresses = std::array<std::byte*, 6>;  // by Place; null where the spec has no such tensor

class Pipeline {
 public:
  struct Operand {
    int argument = 0;  // DNNL_ARG_…
    Place place = Place::input;
    dnnl::memory::desc desc;
    std::uint64_t offset = 0;  // bytes from the place's address
  };

  // The constant as the pipeline wants it: `given` says how it lies, from `offset` bytes on. Equal: as it lies.
  struct Constant {
    dnnl::memory::desc given, wanted;
    std::uint64_t offset = 0;
    bool operator==(const Constant& other) const {
      return offset == other.offset && given == other.given && wanted == other.wanted;
    }
  };

  // Room for a tensor within the workspace: an operand without its argument.
  Operand reserve(const dnnl::memory::desc& desc);
  // Operands without a size (an absent bias) are left out; room for the scratchpad is reserved here.
  void add(const dnnl::primitive& primitive, const dnnl::engine& engine, const dnnl::memory::desc& scratchpad,
           std::vector<Operand> operands);
  void add_reorder(const dnnl::engine& engine, Operand from, Operand to);
  void set_constant(Constant constant) { constant_ = std::move(constant); }

  const Constant& constant() const noexcept { return constant_; }
  std::uint64_t workspace_bytes() const noexcept { return workspace_bytes_; }

  // Runs the primitives and returns when their results are in memory. Throws dnnl::error.
  void run(dnnl::stream& stream, const Addresses& addresses);

 private:
  struct Bound {
    Operand operand;
    dnnl::memory memory;
    std::byte* at = nullptr;  // the address last bound: binding again costs more than comparing
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<Bound> bound;
    std::vector<dnnl_exec_arg_t> arguments;  // refers to the memories in `bound`
  };

  std::vector<Step> steps_;
  Constant constant_;
  std::uint64_t workspace_bytes_ = 0;
};

// Candidates: the ways of computing a convolution or a product, and the choice among them by time.

// Candidate: one way to compute a whole spec: tiles, each of which one thread computes from the caller's input to the
// caller's output.
//
// Thread-safety: one run at a time. Ownership: owns its pipelines.
// Tiles meet once, at the end, where primitives that the library itself spreads over threads meet after each of them:
// what a tile reorders stays in its core's cache, and on a busy machine each meeting can cost a slice of the
// scheduler's time.

// Up to here one thread is about done before several have met: its way is worth a candidate beside those in tiles.
inline constexpr double small_flops = 1e6;

class Candidate {
 public:
  // REQUIRES: tiles is not empty; each was made by a thread that is set to work alone (omp_alone.hpp).
  Candidate(std::string layout, std::vector<Pipeline> tiles) : layout_(std::move(layout)), tiles_(std::move(tiles)) {}

  const std::string& layout() const noexcept { return layout_; }  // "nChw16c jit:avx512_core, 4 tiles": for people
  const std::vector<Pipeline>& tiles() const noexcept { return tiles_; }
  std::uint64_t workspace_bytes(int threads) const noexcept;

  // constants: one per tile, as that tile wants it. The rest of `addresses` is common; its workspace has
  // workspace_bytes(pool.threads()). Throws dnnl::error.
  void run(WorkerPool& pool, dnnl::stream& stream, const Addresses& addresses,
           const std::vector<std::byte*>& constants);

 private:
  std::uint64_t tile_bytes() const noexcept;

  std::string layout_;
  std::vector<Pipeline> tiles_;
};

// Choosing among pipelines by timing them on the tensors at hand.
//
// Thread-safety: any thread; the caller keeps others off the pipelines.

struct Choice {
  static constexpr std::uint64_t not_timed = std::numeric_limits<std::uint64_t>::max();
  std::size_t fastest = 0;
  std::vector<std::uint64_t> typical_ns;  // by candidate: the lower median of its times
};

// run(i) runs candidate i once and answers how many nanoseconds that took. Candidates are timed in turns, so that a
// disturbance meets all of them; one that falls clearly behind leaves. Whoever is done quickly runs twice in a turn,
// and the second counts. No turn starts once the runs have taken `budget`, except that the first turn, in which
// everybody runs, may take twice that. At least the first candidate is run. REQUIRES: candidates is positive.
Choice choose_fastest(std::size_t candidates, std::chrono::nanoseconds budget,
                      const std::function<std::uint64_t(std::size_t)>& run);

// The ways in which oneDNN can compute a conv2d from NCHW to NCHW, cut into tiles for the threads, likely best first.
//
// Thread-safety: any thread on which OpenMP is limited to one thread (omp_alone.hpp). Ownership: the caller owns the
// candidates.

// Not empty: throws dnnl::error where oneDNN has no implementation at all. Winograd's are among them only where the
// spec's accuracy allows it. layout: "auto" for all; another name restricts them to that layout where it exists for the
// spec. REQUIRES: validate(spec).ok(); threads is positive.
std::vector<Candidate> conv2d_candidates(const Conv2dSpec& spec, const dnnl::engine& engine, int threads,
                                         std::string_view layout);

// The ways in which oneDNN can compute a gemm on row-major matrices, in blocks of rows and columns of C, likely best
// first.
//
// Thread-safety: any thread on which OpenMP is limited to one thread (omp_alone.hpp). Ownership: the caller owns the
// candidates.

// Not empty: throws dnnl::error where oneDNN has no implementation at all. REQUIRES: validate(spec).ok(); threads is
// positive.
std::vector<Candidate> gemm_candidates(const GemmSpec& spec, const dnnl::engine& engine, int threads);

// The one way for pool2d, add, softmax and activation, in tiles of planes, elements or rows. Throws dnnl::error for
// other specs. REQUIRES: as above.
std::vector<Candidate> simple_candidates(const KernelSpec& spec, const dnnl::engine& engine, int threads);

}  // namespace kiln::cpu
