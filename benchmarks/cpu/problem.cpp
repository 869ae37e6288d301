#include "cpu/problem.hpp"

#include <kiln/clock.hpp>

#include "reference/compare.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace kiln::bench {

Tensor::Tensor(std::uint64_t bytes)
    : held(HostTensor::create(DType::f32, {static_cast<std::int64_t>(bytes / sizeof(float))}).value()),
      values(held->as<float>()) {}

void Tensor::poison() { std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN()); }

Problem::Problem(const KernelSpec& of, std::mt19937& random)
    : spec(of),
      input(tensors_of(of)[0].bytes),
      weights(tensors_of(of)[1].bytes),
      kiln_output(tensors_of(of).back().bytes),
      peer_output(tensors_of(of).back().bytes) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const Tensor* tensor : {&input, &weights}) {
    for (float& value : tensor->values) value = uniform(random);
  }
  kiln_output.poison();
  peer_output.poison();
}

bool Problem::is_right(const Tensor& output) const {
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  const auto compared =
      conv != nullptr
          ? reference::compare_conv2d(*conv, *input.held, *weights.held, nullptr, output.values)
          : reference::compare_gemm(std::get<GemmSpec>(spec), *input.held, *weights.held, nullptr, output.values);
  if (!compared) throw std::runtime_error(compared.error().text());
  return compared->within;
}

double milliseconds_since(std::uint64_t begun_ns) { return static_cast<double>(now_ns() - begun_ns) / 1e6; }

}  // namespace kiln::bench
