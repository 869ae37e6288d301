#include "support/simulated/sim_model.hpp"

#include <cmath>

namespace kiln::support {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t bits) noexcept { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

}  // namespace

double noise_factor(double noise, std::uint64_t seed, std::uint64_t draw) noexcept {
  if (noise <= 0) return 1;
  const std::uint64_t first = mix(seed * 0x100000001b3u + draw);
  // Box-Muller.
  const double radius = std::sqrt(-2 * std::log(uniform(first)));
  return std::exp(noise * radius * std::cos(6.283185307179586 * uniform(mix(first))));
}

}  // namespace kiln::support
