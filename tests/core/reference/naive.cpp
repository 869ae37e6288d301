#include "core/reference/naive.hpp"

#include <cmath>
#include <stdexcept>

#include "data/tensor_source.hpp"

namespace kiln::test {

template <class T>
std::vector<T> naive_sums(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights,
                          const HostTensor* bias, Order order, bool absolute) {
  const auto in = input.as<float>();
  const auto w = weights.as<float>();
  const std::int64_t channels = spec.c / spec.groups;
  std::vector<T> out;
  for (std::int64_t n = 0; n < spec.n; ++n) {
    for (std::int64_t k = 0; k < spec.k; ++k) {
      for (std::int64_t y = 0; y < spec.out_h(); ++y) {
        for (std::int64_t x = 0; x < spec.out_w(); ++x) {
          T sum = 0;
          const auto add = [&](std::int64_t c, std::int64_t r, std::int64_t s) {
            const std::int64_t iy = y * spec.stride_y - spec.pad_y + r * spec.dilation_y;
            const std::int64_t ix = x * spec.stride_x - spec.pad_x + s * spec.dilation_x;
            if (iy < 0 || iy >= spec.h || ix < 0 || ix >= spec.w) return;
            const std::int64_t ic = k / (spec.k / spec.groups) * channels + c;
            const T product =
                static_cast<T>(w[static_cast<std::size_t>(((k * channels + c) * spec.r + r) * spec.s + s)]) *
                static_cast<T>(in[static_cast<std::size_t>(((n * spec.c + ic) * spec.h + iy) * spec.w + ix)]);
            sum += absolute ? std::abs(product) : product;
          };
          if (order == Order::by_row) {
            for (std::int64_t r = 0; r < spec.r; ++r)
              for (std::int64_t c = 0; c < channels; ++c)
                for (std::int64_t s = 0; s < spec.s; ++s) add(c, r, s);
          } else {
            for (std::int64_t c = 0; c < channels; ++c)
              for (std::int64_t r = 0; r < spec.r; ++r)
                for (std::int64_t s = 0; s < spec.s; ++s) add(c, r, s);
          }
          if (bias != nullptr) {
            const T added = static_cast<T>(bias->as<float>()[static_cast<std::size_t>(k)]);
            sum += absolute ? std::abs(added) : added;
          }
          if (!absolute && spec.activation == Activation::relu && sum < 0) sum = 0;
          out.push_back(sum);
        }
      }
    }
  }
  return out;
}

template std::vector<float> naive_sums<float>(const Conv2dSpec&, const HostTensor&, const HostTensor&,
                                              const HostTensor*, Order, bool);
template std::vector<double> naive_sums<double>(const Conv2dSpec&, const HostTensor&, const HostTensor&,
                                                const HostTensor*, Order, bool);

Naive naive_conv2d(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights, const HostTensor* bias,
                   Order order) {
  return {naive_sums<double>(spec, input, weights, bias, order, false),
          naive_sums<double>(spec, input, weights, bias, order, true)};
}

std::shared_ptr<HostTensor> tensor_of(Shape shape, std::uint64_t seed, Values values) {
  auto tensor = HostTensor::create(DType::f32, std::move(shape));
  if (!tensor) throw std::runtime_error(tensor.error().message);
  data::fill_random(**tensor, seed);
  if (values == Values::integers) {
    for (float& value : (*tensor)->as<float>()) value = std::floor(value * 8);
  }
  return *tensor;
}

ConvTensors tensors_for(const Conv2dSpec& spec, std::uint64_t seed, Values values) {
  ConvTensors tensors;
  tensors.input = tensor_of({spec.n, spec.c, spec.h, spec.w}, 3 * seed, values);
  tensors.weights = tensor_of({spec.k, spec.c / spec.groups, spec.r, spec.s}, 3 * seed + 1, values);
  if (spec.bias == Bias::per_channel) tensors.bias = tensor_of({spec.k}, 3 * seed + 2, values);
  return tensors;
}

}  // namespace kiln::test
