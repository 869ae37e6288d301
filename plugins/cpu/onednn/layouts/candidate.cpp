#include "onednn/layouts/candidate.hpp"

#include <algorithm>
#include <functional>

namespace kiln::cpu {
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

}  // namespace kiln::cpu
