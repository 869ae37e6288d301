#include "reference/simple_layers.hpp"

#include "reference/parallel_for.hpp"
#include "reference/rounding.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::reference {
namespace {

Reference of_size(std::size_t elements) {
  Reference reference;
  reference.value.resize(elements);
  reference.magnitude.resize(elements);
  return reference;
}

struct Window {
  std::int64_t first = 0, last = 0;  // half open, inside the input
};

Window window_at(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t taps, std::int64_t in) {
  const std::int64_t first = out * stride - pad;
  return {std::max<std::int64_t>(first, 0), std::min(first + taps, in)};
}

void pool_plane(const Pool2dSpec& spec, const double* from, double* value, double* magnitude) {
  for (std::int64_t y = 0; y < spec.out_h(); ++y) {
    const Window rows = window_at(y, spec.stride_y, spec.pad_y, spec.r, spec.h);
    for (std::int64_t x = 0; x < spec.out_w(); ++x) {
      const Window columns = window_at(x, spec.stride_x, spec.pad_x, spec.s, spec.w);
      double largest = from[rows.first * spec.w + columns.first], sum = 0, absolute = 0;
      for (std::int64_t iy = rows.first; iy < rows.last; ++iy) {
        for (std::int64_t ix = columns.first; ix < columns.last; ++ix) {
          const double each = from[iy * spec.w + ix];
          largest = std::max(largest, each);
          sum += each;
          absolute += std::abs(each);
        }
      }
      const double count = static_cast<double>((rows.last - rows.first) * (columns.last - columns.first));
      const bool is_maximum = spec.kind == PoolKind::maximum;
      *value++ = is_maximum ? largest : sum / count;
      *magnitude++ = is_maximum ? std::abs(largest) : absolute / count;
    }
  }
}

}  // namespace

double activated(Activation activation, double value) noexcept {
  if (activation == Activation::none) return value;
  const double positive = value < 0 ? 0.0 : value;
  return activation == Activation::relu6 && positive > 6 ? 6.0 : positive;
}

Reference pool2d(const Pool2dSpec& spec, std::span<const double> input, unsigned threads) {
  const std::int64_t outputs = spec.out_h() * spec.out_w();  // of a plane
  Reference reference = of_size(static_cast<std::size_t>(spec.n * spec.c * outputs));
  parallel_for(spec.n * spec.c, threads, [&](std::int64_t plane) {
    pool_plane(spec, input.data() + plane * spec.h * spec.w, reference.value.data() + plane * outputs,
               reference.magnitude.data() + plane * outputs);
  });
  return reference;
}

Reference add(const AddSpec& spec, std::span<const double> a, std::span<const double> b) {
  Reference reference = of_size(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    reference.value[i] = activated(spec.activation, a[i] + b[i]);
    reference.magnitude[i] = std::abs(a[i]) + std::abs(b[i]);
  }
  return reference;
}

Reference softmax(const SoftmaxSpec& spec, std::span<const double> input) {
  Reference reference = of_size(input.size());
  const auto length = static_cast<std::size_t>(shape_of(spec.shape).back());
  for (std::size_t row = 0; row < input.size(); row += length) {
    const std::span<const double> from = input.subspan(row, length);
    const std::span<double> value = std::span(reference.value).subspan(row, length);
    const double largest = *std::ranges::max_element(from);
    double sum = 0, spread = 0;
    for (std::size_t i = 0; i < length; ++i) sum += value[i] = std::exp(from[i] - largest);
    for (std::size_t i = 0; i < length; ++i) {
      value[i] /= sum;
      spread += value[i] * (1 + largest - from[i]);
    }
    for (std::size_t i = 0; i < length; ++i) {
      reference.magnitude[row + i] = value[i] * ((1 + largest - from[i]) + spread + 1);
    }
  }
  return reference;
}

Reference activation(const ActivationSpec& spec, std::span<const double> input) {
  Reference reference = of_size(input.size());
  for (std::size_t i = 0; i < input.size(); ++i) {
    reference.value[i] = activated(spec.activation, input[i]);
    reference.magnitude[i] = std::abs(input[i]);
  }
  return reference;
}

// The additions, and a division or a multiplication by a rounded reciprocal.
double pool2d_bound(const Pool2dSpec& spec) noexcept {
  return spec.kind == PoolKind::maximum ? 0 : direct_bound(spec.r * spec.s + 2, false);
}

double add_bound() noexcept { return direct_bound(1, false); }

double softmax_bound(std::int64_t elements_of_row) noexcept { return direct_bound(elements_of_row + 8, false); }

}  // namespace kiln::reference
