#include "reference/gemm.hpp"

#include "reference/dot_rows.hpp"
#include "reference/parallel_for.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kiln::reference {
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

}  // namespace kiln::reference
