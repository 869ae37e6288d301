#include "reference/layers.hpp"

#include "reference/error_bounds.hpp"
#include "reference/summation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kiln::reference {
namespace {

// Input rows as doubles, padded in x, and for a stride in x split by phase, so that the elements that neighbouring
// outputs need for one kernel column lie side by side.
struct RowLayout {
  std::vector<std::int64_t> phase;   // one a slot: the residue of x (padding included) modulo stride_x that it holds
  std::vector<std::int64_t> offset;  // one a kernel column: where its elements start in a row
  std::int64_t slot = 0;             // elements a slot
  std::int64_t row = 0;              // elements a row: all slots

  explicit RowLayout(const Conv2dSpec& spec) {
    const std::int64_t width = (spec.out_w() + dot_lanes - 1) / dot_lanes * dot_lanes;
    slot = width + (spec.s - 1) * spec.dilation_x / spec.stride_x;
    for (std::int64_t s = 0; s < spec.s; ++s) {
      const std::int64_t x = s * spec.dilation_x;
      const auto found = std::find(phase.begin(), phase.end(), x % spec.stride_x);
      offset.push_back((found - phase.begin()) * slot + x / spec.stride_x);
      if (found == phase.end()) phase.push_back(x % spec.stride_x);
    }
    row = slot * static_cast<std::int64_t>(phase.size());
  }

  template <class T>
  void fill(const Conv2dSpec& spec, const T* from, double* to) const {
    for (const std::int64_t residue : phase) {
      for (std::int64_t i = 0; i < slot; ++i) {
        const std::int64_t x = i * spec.stride_x + residue - spec.pad_x;
        *to++ = x >= 0 && x < spec.w ? static_cast<double>(from[x]) : 0.0;
      }
    }
  }
};

// The part of an image's work that one task does: up to dot_rows_at_once output channels of one group.
struct ChannelBlock {
  std::int64_t group, first, count;
};

std::vector<ChannelBlock> blocks_of(const Conv2dSpec& spec) {
  std::vector<ChannelBlock> blocks;
  const std::int64_t in_group = spec.k / spec.groups;
  for (std::int64_t group = 0; group < spec.groups; ++group) {
    for (std::int64_t at = 0; at < in_group; at += dot_rows_at_once) {
      blocks.push_back({group, group * in_group + at, std::min(dot_rows_at_once, in_group - at)});
    }
  }
  return blocks;
}

class ImageConvolution {
 public:
  ImageConvolution(const Conv2dSpec& spec, std::span<const float> weights, std::span<const float> bias)
      : spec_(spec), weights_(weights), bias_(bias), layout_(spec), channels_(spec.c / spec.groups) {
    for (std::int64_t r = 0; r < spec.r; ++r) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        for (std::int64_t s = 0; s < spec.s; ++s) {
          offsets_.push_back((r * spec.dilation_y * spec.c + c) * layout_.row +
                             layout_.offset[static_cast<std::size_t>(s)]);
        }
      }
    }
    planes_.resize(static_cast<std::size_t>(spec.c * spec.h * layout_.row));
  }

  // One input channel of the image.
  template <class T>
  void load(const T* image, std::int64_t c) {
    for (std::int64_t y = 0; y < spec_.h; ++y) {
      layout_.fill(spec_, image + (c * spec_.h + y) * spec_.w, planes_.data() + (y * spec_.c + c) * layout_.row);
    }
  }

  // The outputs of one block; `value` and `magnitude` are those of the image.
  void run(const ChannelBlock& block, double* value, double* magnitude) const {
    const std::vector<double> packed = pack(block);
    const std::int64_t width = (spec_.out_w() + dot_lanes - 1) / dot_lanes * dot_lanes;
    std::vector<double> sums(static_cast<std::size_t>(2 * dot_rows_at_once * width));
    const std::int64_t taps_a_row = channels_ * spec_.s;
    for (std::int64_t y = 0; y < spec_.out_h(); ++y) {
      const std::int64_t top = y * spec_.stride_y - spec_.pad_y;
      std::int64_t first = 0, end = spec_.r;
      while (first < end && top + first * spec_.dilation_y < 0) ++first;
      while (end > first && top + (end - 1) * spec_.dilation_y >= spec_.h) --end;
      DotRows work;
      work.planes = planes_.data();
      work.origin = (top * spec_.c + block.group * channels_) * layout_.row;
      work.offsets = offsets_.data() + first * taps_a_row;
      work.weights = packed.data() + first * taps_a_row * dot_rows_at_once;
      work.taps = static_cast<std::size_t>((end - first) * taps_a_row);
      work.blocks = static_cast<std::size_t>(width / dot_lanes);
      work.sums = sums.data();
      work.magnitudes = sums.data() + dot_rows_at_once * width;
      dot_rows(work);
      for (std::int64_t j = 0; j < block.count; ++j) {
        const std::int64_t to = ((block.first + j) * spec_.out_h() + y) * spec_.out_w();
        store(block.first + j, work.sums + j * width, work.magnitudes + j * width, value + to, magnitude + to);
      }
    }
  }

 private:
  std::vector<double> pack(const ChannelBlock& block) const {
    std::vector<double> packed(offsets_.size() * dot_rows_at_once, 0.0);
    for (std::int64_t j = 0; j < block.count; ++j) {
      double* to = packed.data() + j;
      for (std::int64_t r = 0; r < spec_.r; ++r) {
        for (std::int64_t c = 0; c < channels_; ++c) {
          const float* from = weights_.data() + (((block.first + j) * channels_ + c) * spec_.r + r) * spec_.s;
          for (std::int64_t s = 0; s < spec_.s; ++s, to += dot_rows_at_once) *to = static_cast<double>(from[s]);
        }
      }
    }
    return packed;
  }

  void store(std::int64_t k, const double* sum, const double* absolute, double* value, double* magnitude) const {
    const double bias = bias_.empty() ? 0.0 : static_cast<double>(bias_[static_cast<std::size_t>(k)]);
    for (std::int64_t x = 0; x < spec_.out_w(); ++x) {
      const double whole = bias_.empty() ? sum[x] : sum[x] + bias;
      value[x] = activated(spec_.activation, whole);
      magnitude[x] = absolute[x] + std::abs(bias);
    }
  }

  const Conv2dSpec& spec_;
  std::span<const float> weights_, bias_;
  RowLayout layout_;
  std::int64_t channels_;              // of one group
  std::vector<std::int64_t> offsets_;  // one a tap, kernel row outermost: the rows inside the input are a run of them
  std::vector<double> planes_;         // [y][channel][row]: what one output row reads lies together
};

template <class T>
Reference convolve(const Conv2dSpec& spec, std::span<const T> input, std::span<const float> weights,
                   std::span<const float> bias, unsigned threads) {
  const std::int64_t outputs = spec.k * spec.out_h() * spec.out_w();  // of one image
  Reference reference;
  reference.value.resize(static_cast<std::size_t>(spec.n * outputs));
  reference.magnitude.resize(reference.value.size());
  ImageConvolution image(spec, weights, bias);
  const std::vector<ChannelBlock> blocks = blocks_of(spec);
  if (flops(spec) / 2 / static_cast<double>(spec.n) < worth_a_thread) threads = 1;
  for (std::int64_t n = 0; n < spec.n; ++n) {
    const T* const from = input.data() + n * spec.c * spec.h * spec.w;
    double* const value = reference.value.data() + n * outputs;
    double* const magnitude = reference.magnitude.data() + n * outputs;
    parallel_for(spec.c, threads, [&](std::int64_t c) { image.load(from, c); });
    parallel_for(static_cast<std::int64_t>(blocks.size()), threads,
                 [&](std::int64_t i) { image.run(blocks[static_cast<std::size_t>(i)], value, magnitude); });
  }
  return reference;
}

}  // namespace

Reference conv2d(const Conv2dSpec& spec, std::span<const float> input, std::span<const float> weights,
                 std::span<const float> bias, unsigned threads) {
  return convolve(spec, input, weights, bias, threads);
}

Reference conv2d(const Conv2dSpec& spec, std::span<const double> input, std::span<const float> weights,
                 std::span<const float> bias, unsigned threads) {
  return convolve(spec, input, weights, bias, threads);
}

namespace {

constexpr std::int64_t rows_a_task = 64;

template <class T>
Reference multiply(const GemmSpec& spec, std::span<const T> a, std::span<const float> b, std::span<const float> bias,
                   unsigned threads) {
  Reference reference;
  reference.value.resize(static_cast<std::size_t>(spec.m * spec.n));
  reference.magnitude.resize(reference.value.size());
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(spec.k));
  for (std::int64_t k = 0; k < spec.k; ++k) offsets[static_cast<std::size_t>(k)] = k * dot_lanes;

  // A task: dot_lanes columns of B, packed side by side, times rows_a_task rows of A.
  const auto task = [&](std::int64_t first_column, std::int64_t first_row) {
    const std::int64_t columns = std::min(dot_lanes, spec.n - first_column);
    const std::int64_t last_row = std::min(first_row + rows_a_task, spec.m);
    std::vector<double> panel(static_cast<std::size_t>(spec.k * dot_lanes), 0.0);
    for (std::int64_t k = 0; k < spec.k; ++k) {
      const float* const from = b.data() + k * spec.n + first_column;
      std::copy(from, from + columns, panel.data() + k * dot_lanes);
    }
    std::vector<double> packed(static_cast<std::size_t>(spec.k * dot_rows_at_once), 0.0);
    double sums[dot_rows_at_once * dot_lanes];
    double magnitudes[dot_rows_at_once * dot_lanes];
    for (std::int64_t row = first_row; row < last_row; row += dot_rows_at_once) {
      const std::int64_t rows = std::min(dot_rows_at_once, last_row - row);
      for (std::int64_t j = 0; j < rows; ++j) {
        const T* const from = a.data() + (row + j) * spec.k;
        for (std::int64_t k = 0; k < spec.k; ++k)
          packed[static_cast<std::size_t>(k * dot_rows_at_once + j)] = static_cast<double>(from[k]);
      }
      dot_rows({panel.data(), 0, offsets.data(), packed.data(), offsets.size(), 1, sums, magnitudes});
      for (std::int64_t j = 0; j < rows; ++j) {
        for (std::int64_t i = 0; i < columns; ++i) {
          const double added =
              bias.empty() ? 0.0 : static_cast<double>(bias[static_cast<std::size_t>(first_column + i)]);
          const double sum = sums[j * dot_lanes + i];
          const double whole = bias.empty() ? sum : sum + added;
          const auto to = static_cast<std::size_t>((row + j) * spec.n + first_column + i);
          reference.value[to] = activated(spec.activation, whole);
          reference.magnitude[to] = magnitudes[j * dot_lanes + i] + std::abs(added);
        }
      }
    }
  };
  const std::int64_t panels = (spec.n + dot_lanes - 1) / dot_lanes;
  const std::int64_t bands = (spec.m + rows_a_task - 1) / rows_a_task;
  if (flops(spec) / 2 < worth_a_thread) threads = 1;
  parallel_for(panels * bands, threads,
               [&](std::int64_t i) { task(i % panels * dot_lanes, i / panels * rows_a_task); });
  return reference;
}

}  // namespace

Reference gemm(const GemmSpec& spec, std::span<const float> a, std::span<const float> b, std::span<const float> bias,
               unsigned threads) {
  return multiply(spec, a, b, bias, threads);
}

Reference gemm(const GemmSpec& spec, std::span<const double> a, std::span<const float> b, std::span<const float> bias,
               unsigned threads) {
  return multiply(spec, a, b, bias, threads);
}

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
  const double positive = value > 0 ? value : 0.0;  // 0 of a NaN, as devices compute max(value, 0)
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
    // An element of 0 has no rounding, however far it is from the largest: a masked one is infinitely far.
    const auto rounding = [&](std::size_t i) { return value[i] == 0 ? 0 : 1 + largest - from[i]; };
    double sum = 0, spread = 0;
    for (std::size_t i = 0; i < length; ++i) sum += value[i] = std::exp(from[i] - largest);
    for (std::size_t i = 0; i < length; ++i) {
      value[i] /= sum;
      spread += value[i] * rounding(i);
    }
    for (std::size_t i = 0; i < length; ++i) {
      reference.magnitude[row + i] = value[i] * (rounding(i) + spread + 1);
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
