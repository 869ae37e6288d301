#include "data/random_tensor.hpp"

#include <charconv>
#include <cmath>
#include <span>
#include <string>

namespace kiln::data {
namespace {

std::uint64_t mix(std::uint64_t bits) noexcept {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return bits ^ bits >> 31;
}

template <class T, class Convert>
void fill(std::span<T> to, std::uint64_t seed, Convert convert) {
  std::uint64_t state = mix(seed);
  for (T& element : to) element = convert(mix(state += 0x9E3779B97F4A7C15u));
}

}  // namespace

void fill_random(HostTensor& tensor, std::uint64_t seed) {
  switch (tensor.dtype()) {
    case DType::f32:
      fill(tensor.as<float>(), seed,
           [](std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-23f - 1.0f; });
      break;
    case DType::f64:
      fill(tensor.as<double>(), seed,
           [](std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-52 - 1.0; });
      break;
    case DType::i32:
      fill(tensor.as<std::int32_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int32_t>(bits >> 32); });
      break;
    case DType::u32:
      fill(tensor.as<std::uint32_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits >> 32); });
      break;
    case DType::u8:
      fill(tensor.as<std::uint8_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint8_t>(bits >> 56); });
      break;
    case DType::i8:
      fill(tensor.as<std::int8_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int8_t>(bits >> 56); });
      break;
    case DType::i16:
      fill(tensor.as<std::int16_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int16_t>(bits >> 48); });
      break;
    case DType::u16:
      fill(tensor.as<std::uint16_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint16_t>(bits >> 48); });
      break;
    case DType::i64:
      fill(tensor.as<std::int64_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); });
      break;
    case DType::u64:
      fill(tensor.as<std::uint64_t>(), seed, [](std::uint64_t bits) { return bits; });
      break;
    case DType::f16:
      fill(tensor.as<std::uint16_t>(), seed,
           [](std::uint64_t bits) { return to_half(static_cast<double>(bits >> 53) * 0x1p-10 - 1.0); });
      break;
    case DType::boolean:
      fill(tensor.as<std::uint8_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint8_t>(bits >> 63); });
      break;
    case DType::invalid:
      break;  // no HostTensor is made with it
  }
}

namespace {

std::optional<Result<std::uint64_t>> parse_seed(std::string_view source, std::string_view scheme) {
  if (!source.starts_with(scheme)) return std::nullopt;
  const std::string_view digits = source.substr(scheme.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (error == std::errc() && end == digits.data() + digits.size()) return Result<std::uint64_t>(seed);
  return Result<std::uint64_t>(invalid_argument("found \"" + std::string(source) + "\", expected " +
                                                std::string(scheme) +
                                                "SEED with SEED from 0 to 18446744073709551615"));
}

}  // namespace

std::optional<Result<std::uint64_t>> parse_random(std::string_view source) { return parse_seed(source, "random:"); }
std::optional<Result<std::uint64_t>> parse_he(std::string_view source) { return parse_seed(source, "he:"); }

Status fill_he(HostTensor& tensor, std::uint64_t seed) {
  const Shape& shape = tensor.shape();
  if (tensor.dtype() != DType::f32 || (shape.size() != 4 && shape.size() != 2)) {
    return invalid_argument("found \"he:" + std::to_string(seed) + "\" for " +
                            std::string(numpy_name(tensor.dtype())) + " " + to_string(shape) +
                            ", expected weights: float32 with two or four dimensions");
  }
  const std::int64_t products = shape.size() == 4 ? shape[1] * shape[2] * shape[3] : shape[0];
  const float most = static_cast<float>(std::sqrt(6.0 / static_cast<double>(products)));
  fill_random(tensor, seed);
  for (float& element : tensor.as<float>()) element *= most;
  return {};
}

}  // namespace kiln::data
