#include "onednn/layouts/packing.hpp"

#include "onednn/layouts/range.hpp"

#include <algorithm>
#include <vector>

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;

// Below that, making the pieces' primitives costs more than sharing them out saves.
constexpr std::size_t worth_sharing = std::size_t{1} << 20;
constexpr std::int64_t unit = 64;  // a multiple of the library's blocks

struct Piece {
  Desc from, to;
};

// Absent where the layout has no such part: Winograd's is not a tensor's.
Desc part_of(const Desc& desc, std::size_t dimension, Range range) {
  dnnl::memory::dims extents = desc.dims();
  dnnl::memory::dims offsets(extents.size(), 0);
  extents[dimension] = range.size();
  offsets[dimension] = range.begin;
  return desc.submemory_desc(extents, offsets, true);
}

// One alone where the layouts cannot be cut.
std::vector<Piece> pieces_of(const Desc& from, const Desc& to, int count) {
  const std::vector<Piece> single{{from, to}};
  const dnnl::memory::dims extents = from.dims();
  const auto longest = static_cast<std::size_t>(std::ranges::max_element(extents) - extents.begin());
  std::vector<Piece> pieces;
  for (const Range& range : split(extents[longest], count, unit)) {
    pieces.push_back({part_of(from, longest, range), part_of(to, longest, range)});
    if (pieces.back().from.is_zero() || pieces.back().to.is_zero()) return single;
  }
  return pieces;
}

}  // namespace

void pack(const dnnl::memory& from, dnnl::memory& to, WorkerPool& pool, dnnl::stream& stream) {
  const Desc whole = to.get_desc();
  const dnnl::engine engine = stream.get_engine();
  const bool shared = pool.threads() > 1 && whole.get_size() >= worth_sharing;
  const std::vector<Piece> pieces =
      shared ? pieces_of(from.get_desc(), whole, pool.threads()) : std::vector<Piece>{{from.get_desc(), whole}};
  pool.run(pieces.size(), [&](std::size_t i, std::size_t) {
    dnnl::memory source(pieces[i].from, engine, from.get_data_handle());
    dnnl::memory target(pieces[i].to, engine, to.get_data_handle());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
  });
}

}  // namespace kiln::cpu
