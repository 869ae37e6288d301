#include "dynamic_shaders/tuner/drift_watch.hpp"

namespace kiln::dynamic_shaders {

std::size_t DriftWatch::Hash::operator()(const Key& key) const noexcept {
  std::size_t hash = std::hash<std::string>{}(key.device_id);
  const auto mix = [&](std::initializer_list<std::int64_t> extents) {
    for (const std::int64_t each : extents) {
      hash = (hash ^ static_cast<std::size_t>(each)) * 0x9e3779b97f4a7c15u;  // 2^64 ÷ the golden ratio
      hash ^= hash >> 32;
    }
  };
  if (const auto* s = std::get_if<Conv2dSpec>(&key.spec)) {
    mix({s->n, s->c, s->h, s->w, s->k, s->r, s->s, s->stride_y, s->pad_y, s->groups});
  } else if (const auto* product = std::get_if<GemmSpec>(&key.spec)) {
    mix({product->m, product->n, product->k});
  } else if (const auto* text = std::get_if<std::string>(&key.spec)) {
    mix({static_cast<std::int64_t>(std::hash<std::string>{}(*text))});
  }
  return hash;
}

bool DriftWatch::drifts(const std::string& device_id, const Spec& spec, std::uint64_t revision,
                        std::string_view variant, std::uint64_t device_ns, std::uint64_t now_ns,
                        const std::function<Winner()>& find) {
  const std::lock_guard lock(mutex_);
  if (revision != revision_ || watched_.size() >= most_specs) watched_.clear();
  revision_ = revision;
  const auto [at, is_new] = watched_.try_emplace({device_id, spec});
  Watched& watched = at->second;
  if (is_new) watched.winner = find();
  const Winner& winner = watched.winner;
  if (winner.device_ns == 0 || winner.variant != variant) return false;
  const bool slow = static_cast<double>(device_ns) > slow_factor * static_cast<double>(winner.device_ns);
  watched.slow = slow ? watched.slow + 1 : 0;
  if (watched.slow == 1) watched.slow_since_ns = now_ns;
  if (watched.told || watched.slow < slow_runs || now_ns - watched.slow_since_ns < span_ns_) return false;
  watched.told = true;
  return true;
}

}  // namespace kiln::dynamic_shaders
