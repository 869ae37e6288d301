#include "reference/error_bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/summation.hpp"

namespace kiln::reference {

double gamma(double n, double unit) noexcept {
  if (n * unit >= 1) return std::numeric_limits<double>::infinity();
  return n * unit / (1 - n * unit);
}

double roundings_of_sum(std::int64_t products, bool has_bias) noexcept {
  return static_cast<double>(products) + (has_bias ? 1 : 0) + 1;
}

double direct_bound(std::int64_t products, bool has_bias) noexcept {
  const double n = roundings_of_sum(products, has_bias);
  return gamma(n, unit_f32) + gamma(n, unit_f64);
}

double underflow_allowance(std::int64_t products) noexcept {
  return 2 * static_cast<double>(products) * least_normal_f32;
}

namespace {

constexpr std::size_t taps = 3;
constexpr std::size_t most_points = 6;

// The three matrices of F(m, 3), in absolute values, from the finite points of the Toom-Cook construction.
struct Transforms {
  std::size_t m, t;
  std::array<std::array<double, most_points>, most_points> a{};  // [output][point]
  std::array<std::array<double, taps>, most_points> g{};         // [point][kernel tap]
  std::array<std::array<double, most_points>, most_points> b{};  // [point][input]

  explicit Transforms(const std::vector<double>& points) : m(points.size() - 1), t(points.size() + 1) {
    const auto absolute_coefficients = [&](std::size_t left_out) {
      std::vector<double> polynomial{1.0};  // lowest power first
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (i == left_out) continue;
        polynomial.push_back(0.0);
        for (std::size_t power = polynomial.size(); power-- > 0;) {
          polynomial[power] = (power == 0 ? 0.0 : polynomial[power - 1]) - points[i] * polynomial[power];
        }
      }
      for (double& coefficient : polynomial) coefficient = std::abs(coefficient);
      return polynomial;
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
      double norm = 1.0;
      for (std::size_t other = 0; other < points.size(); ++other) {
        if (other != i) norm *= points[i] - points[other];
      }
      for (std::size_t output = 0; output < m; ++output) a[output][i] = std::abs(std::pow(points[i], output));
      for (std::size_t tap = 0; tap < taps; ++tap) g[i][tap] = std::abs(std::pow(points[i], tap) / norm);
      std::ranges::copy(absolute_coefficients(i), b[i].begin());
    }
    a[m - 1][t - 1] = 1.0;  // the point at infinity
    g[t - 1][taps - 1] = 1.0;
    std::ranges::copy(absolute_coefficients(points.size()), b[t - 1].begin());
  }
};

// Adds M of every output of one image, for one algorithm. Work is shared out by channels.
class TileMagnitudes {
 public:
  TileMagnitudes(const Conv2dSpec& spec, const Transforms& transforms, std::span<const float> weights)
      : spec_(spec),
        transforms_(transforms),
        weights_(weights),
        channels_(spec.c / spec.groups),
        tiles_x_((spec.out_w() + size(transforms.m) - 1) / size(transforms.m)),
        tiles_y_((spec.out_h() + size(transforms.m) - 1) / size(transforms.m)),
        row_((tiles_x_ * tiles_y_ + size(dot_lanes) - 1) / size(dot_lanes) * size(dot_lanes)) {
    // |B^T| |x| |B| as [point][channel][tile].
    inputs_.resize(transforms.t * transforms.t * static_cast<std::size_t>(spec.c * row_));
    for (std::int64_t c = 0; c < channels_; ++c) offsets_.push_back(c * row_);
  }

  void load(const float* image, std::int64_t c) {
    const std::size_t t = transforms_.t;
    const auto m = size(transforms_.m);
    double tile[most_points][most_points];
    double half[most_points][most_points];
    for (std::int64_t index = 0; index < tiles_x_ * tiles_y_; ++index) {
      const std::int64_t top = index / tiles_x_ * m - spec_.pad_y;
      const std::int64_t left = index % tiles_x_ * m - spec_.pad_x;
      for (std::size_t i = 0; i < t; ++i) {
        for (std::size_t j = 0; j < t; ++j) {
          const std::int64_t y = top + size(i), x = left + size(j);
          const bool inside = y >= 0 && y < spec_.h && x >= 0 && x < spec_.w;
          tile[i][j] = inside ? std::abs(static_cast<double>(image[(c * spec_.h + y) * spec_.w + x])) : 0.0;
        }
      }
      for (std::size_t p = 0; p < t; ++p) {
        for (std::size_t j = 0; j < t; ++j) {
          half[p][j] = 0.0;
          for (std::size_t i = 0; i < t; ++i) half[p][j] += transforms_.b[p][i] * tile[i][j];
        }
      }
      for (std::size_t p = 0; p < t; ++p) {
        for (std::size_t q = 0; q < t; ++q) {
          double sum = 0.0;
          for (std::size_t j = 0; j < t; ++j) sum += half[p][j] * transforms_.b[q][j];
          inputs_[static_cast<std::size_t>((size(p * t + q) * spec_.c + c) * row_ + index)] = sum;
        }
      }
    }
  }

  // Raises allowance[output] to scale * M for `count` output channels from `first`, which lie in one group.
  void run(std::int64_t first, std::int64_t count, double scale, double* allowance) const {
    const std::size_t t = transforms_.t;
    const std::size_t m = transforms_.m;
    const std::int64_t group = first / (spec_.k / spec_.groups);
    const std::vector<double> packed = pack(first, count);
    std::vector<double> sums(static_cast<std::size_t>(2 * dot_rows_at_once * row_));
    std::vector<double> tiles(static_cast<std::size_t>(dot_rows_at_once * tiles_x_ * tiles_y_) * m * m, 0.0);
    for (std::size_t point = 0; point < t * t; ++point) {
      DotRows work;
      work.planes = inputs_.data();
      work.origin = (size(point) * spec_.c + group * channels_) * row_;
      work.offsets = offsets_.data();
      work.weights = packed.data() + point * offsets_.size() * dot_rows_at_once;
      work.taps = offsets_.size();
      work.blocks = static_cast<std::size_t>(row_) / dot_lanes;
      work.sums = sums.data();
      work.magnitudes = sums.data() + dot_rows_at_once * row_;
      dot_rows(work);
      for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t index = 0; index < tiles_x_ * tiles_y_; ++index) {
          const double sum = work.sums[j * row_ + index];
          double* const tile = tiles.data() + static_cast<std::size_t>(j * tiles_x_ * tiles_y_ + index) * m * m;
          for (std::size_t y = 0; y < m; ++y) {
            for (std::size_t x = 0; x < m; ++x) {
              tile[y * m + x] += transforms_.a[y][point / t] * transforms_.a[x][point % t] * sum;
            }
          }
        }
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t y = 0; y < spec_.out_h(); ++y) {
        for (std::int64_t x = 0; x < spec_.out_w(); ++x) {
          const std::int64_t index = j * tiles_x_ * tiles_y_ + y / size(m) * tiles_x_ + x / size(m);
          const double sum = tiles[static_cast<std::size_t>((index * size(m) + y % size(m)) * size(m) + x % size(m))];
          double& to = allowance[((first + j) * spec_.out_h() + y) * spec_.out_w() + x];
          to = std::max(to, scale * sum);
        }
      }
    }
  }

 private:
  static std::int64_t size(std::size_t value) noexcept { return static_cast<std::int64_t>(value); }

  // |G| |w| |G|^T as [point][channel][row].
  std::vector<double> pack(std::int64_t first, std::int64_t count) const {
    const std::size_t t = transforms_.t;
    std::vector<double> packed(t * t * offsets_.size() * dot_rows_at_once, 0.0);
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const float* const kernel = weights_.data() + ((first + j) * channels_ + c) * size(taps * taps);
        for (std::size_t point = 0; point < t * t; ++point) {
          double sum = 0.0;
          for (std::size_t tap = 0; tap < taps * taps; ++tap) {
            sum += transforms_.g[point / t][tap / taps] * transforms_.g[point % t][tap % taps] *
                   std::abs(static_cast<double>(kernel[tap]));
          }
          packed[static_cast<std::size_t>((size(point) * channels_ + c) * dot_rows_at_once + j)] = sum;
        }
      }
    }
    return packed;
  }

  const Conv2dSpec& spec_;
  const Transforms& transforms_;
  std::span<const float> weights_;
  std::int64_t channels_;  // of one group
  std::int64_t tiles_x_, tiles_y_;
  std::int64_t row_;  // tiles of an image, rounded up to whole blocks
  std::vector<std::int64_t> offsets_;
  std::vector<double> inputs_;
};

}  // namespace

bool winograd_applies(const Conv2dSpec& spec) noexcept {
  return spec.accuracy == Accuracy::winograd && spec.r == 3 && spec.s == 3 && spec.stride_y == 1 &&
         spec.stride_x == 1 && spec.dilation_y == 1 && spec.dilation_x == 1;
}

std::vector<double> winograd_allowance(const Conv2dSpec& spec, std::span<const float> input,
                                       std::span<const float> weights, std::span<const float> bias, unsigned threads) {
  const std::int64_t plane = spec.out_h() * spec.out_w();
  std::vector<double> allowance(static_cast<std::size_t>(spec.n * spec.k * plane), 0.0);
  const std::int64_t in_group = spec.k / spec.groups;
  const std::int64_t blocks_a_group = (in_group + dot_rows_at_once - 1) / dot_rows_at_once;
  double largest_gamma = 0.0;
  for (const std::vector<double>& points :
       {std::vector<double>{0, 1, -1}, std::vector<double>{0, 1, -1, 2, -2}, std::vector<double>{0, 1, -1, 0.5, -0.5},
        std::vector<double>{0, 0.625, -0.625, 1.5, -1.5}}) {
    const Transforms transforms(points);
    const auto t = static_cast<double>(transforms.t);
    const double roundings = 2 * (taps + 1) + 4 * (t + 1) + static_cast<double>(spec.c / spec.groups) + 2;
    const double scale = gamma(roundings, unit_f32);
    largest_gamma = std::max(largest_gamma, scale);
    TileMagnitudes magnitudes(spec, transforms, weights);
    for (std::int64_t n = 0; n < spec.n; ++n) {
      const float* const image = input.data() + n * spec.c * spec.h * spec.w;
      double* const to = allowance.data() + n * spec.k * plane;
      parallel_for(spec.c, threads, [&](std::int64_t c) { magnitudes.load(image, c); });
      parallel_for(spec.groups * blocks_a_group, threads, [&](std::int64_t i) {
        const std::int64_t at = i % blocks_a_group * dot_rows_at_once;
        magnitudes.run(i / blocks_a_group * in_group + at, std::min(dot_rows_at_once, in_group - at), scale, to);
      });
    }
  }
  if (!bias.empty()) {
    for (std::int64_t i = 0; i < spec.n * spec.k * plane; ++i) {
      allowance[static_cast<std::size_t>(i)] +=
          largest_gamma * std::abs(static_cast<double>(bias[static_cast<std::size_t>(i / plane % spec.k)]));
    }
  }
  return allowance;
}

}  // namespace kiln::reference
