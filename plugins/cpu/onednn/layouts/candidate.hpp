// Candidate: one way to compute a whole spec: tiles, each of which one thread computes from the caller's input to the
// caller's output.
//
// Thread-safety: one run at a time. Ownership: owns its pipelines.
// Tiles meet once, at the end, where primitives that the library itself spreads over threads meet after each of them:
// what a tile reorders stays in its core's cache, and on a busy machine each meeting can cost a slice of the
// scheduler's time.
#pragma once

#include "onednn/layouts/pipeline.hpp"
#include "onednn/worker_pool.hpp"

#include <string>
#include <vector>

namespace kiln::cpu {

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

}  // namespace kiln::cpu
