#include "cache/policy/parts/ghost_table.hpp"

#include "cache/policy/parts/mix.hpp"

#include <algorithm>
#include <bit>

namespace kiln {

GhostTable::Bucket& GhostTable::bucket_in(std::vector<Bucket>& buckets, std::uint64_t hash) noexcept {
  return buckets[mix(hash) & (buckets.size() - 1)];
}

void GhostTable::reserve(std::size_t keys) {
  if (keys <= capacity_) return;
  // Twice as many places as keys: of eight places four are taken on average, so that full buckets are rare.
  std::vector<Bucket> larger(std::bit_ceil(2 * keys / ways + 1));
  std::vector<Ghost> known_ones;
  for (const Bucket& bucket : buckets_) {
    std::copy_if(bucket.begin(), bucket.end(), std::back_inserter(known_ones),
                 [&](const Ghost& g) { return known(g); });
  }
  for (const Ghost& ghost : known_ones) {
    Bucket& bucket = bucket_in(larger, ghost.hash);
    Ghost& oldest = *std::min_element(bucket.begin(), bucket.end(),
                                      [](const Ghost& a, const Ghost& b) { return a.noted < b.noted; });
    if (oldest.noted < ghost.noted) oldest = ghost;
  }
  buckets_.swap(larger);
  capacity_ = keys;
}

void GhostTable::note(std::uint64_t hash, double value) noexcept {
  if (buckets_.empty()) return;
  Bucket& bucket = bucket_in(buckets_, hash);
  Ghost* place = &bucket[0];
  for (Ghost& ghost : bucket) {
    if (ghost.noted != 0 && ghost.hash == hash) {
      place = &ghost;
      break;
    }
    if (ghost.noted < place->noted) place = &ghost;
  }
  *place = {hash, ++notes_, value};
}

std::optional<double> GhostTable::take(std::uint64_t hash) noexcept {
  if (buckets_.empty()) return std::nullopt;
  for (Ghost& ghost : bucket_in(buckets_, hash)) {
    if (ghost.hash != hash || !known(ghost)) continue;
    const double value = ghost.value;
    ghost = {};
    return value;
  }
  return std::nullopt;
}

std::size_t GhostTable::size() const noexcept {
  std::size_t count = 0;
  for (const Bucket& bucket : buckets_) {
    count +=
        static_cast<std::size_t>(std::count_if(bucket.begin(), bucket.end(), [&](const Ghost& g) { return known(g); }));
  }
  return count;
}

}  // namespace kiln
