#include <kiln/data.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace kiln::data {
namespace {

// An element of any type: exact in one of these.
using Number = std::variant<std::int64_t, std::uint64_t, double>;

template <class T>
T at(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

Number element(DType dtype, std::span<const std::byte> bytes, std::size_t index) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(at<float>(bytes, index));
    case DType::f64:
      return at<double>(bytes, index);
    case DType::f16:
      return from_half(at<std::uint16_t>(bytes, index));
    case DType::i8:
      return std::int64_t{at<std::int8_t>(bytes, index)};
    case DType::i16:
      return std::int64_t{at<std::int16_t>(bytes, index)};
    case DType::i32:
      return std::int64_t{at<std::int32_t>(bytes, index)};
    case DType::i64:
      return at<std::int64_t>(bytes, index);
    case DType::u8:
      return std::uint64_t{at<std::uint8_t>(bytes, index)};
    case DType::u16:
      return std::uint64_t{at<std::uint16_t>(bytes, index)};
    case DType::u32:
      return std::uint64_t{at<std::uint32_t>(bytes, index)};
    case DType::u64:
      return at<std::uint64_t>(bytes, index);
    case DType::boolean:
      return std::uint64_t{at<std::uint8_t>(bytes, index) != 0 ? 1u : 0u};
    case DType::invalid:
      break;
  }
  return std::uint64_t{0};
}

// The value as a T; nullopt: T does not have it.
template <class T>
std::optional<T> exact(const Number& number) {
  const auto convert = [](auto value) -> std::optional<T> {
    using From = decltype(value);
    if constexpr (std::is_integral_v<T> && std::is_integral_v<From>) {
      return std::in_range<T>(value) ? std::optional(static_cast<T>(value)) : std::nullopt;
    } else if constexpr (std::is_integral_v<T>) {
      // Both bounds are powers of two, or 0: exact as a double.
      const double below = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) && value < below)) return std::nullopt;
      return std::trunc(value) == value ? std::optional(static_cast<T>(value)) : std::nullopt;
    } else if constexpr (std::is_integral_v<From>) {
      const T result = static_cast<T>(value);
      return static_cast<long double>(result) == static_cast<long double>(value) ? std::optional(result) : std::nullopt;
    } else {
      if (std::isnan(value)) return std::numeric_limits<T>::quiet_NaN();
      if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<T>::max())) {
        return std::nullopt;
      }
      const T result = static_cast<T>(value);
      return static_cast<double>(result) == value ? std::optional(result) : std::nullopt;
    }
  };
  return std::visit(convert, number);
}

template <class T>
bool store(const std::optional<T>& value, std::span<std::byte> to, std::size_t index) {
  if (!value) return false;
  std::memcpy(to.data() + index * sizeof(T), &*value, sizeof(T));
  return true;
}

bool store(const Number& number, DType dtype, std::span<std::byte> to, std::size_t index) {
  switch (dtype) {
    case DType::f32:
      return store(exact<float>(number), to, index);
    case DType::f64:
      return store(exact<double>(number), to, index);
    case DType::f16: {
      const std::optional<double> value = exact<double>(number);
      if (!value) return false;
      const std::uint16_t half = to_half(*value);
      const bool same = std::isnan(*value) || from_half(half) == *value;
      return same && store(std::optional(half), to, index);
    }
    case DType::i8:
      return store(exact<std::int8_t>(number), to, index);
    case DType::i16:
      return store(exact<std::int16_t>(number), to, index);
    case DType::i32:
      return store(exact<std::int32_t>(number), to, index);
    case DType::i64:
      return store(exact<std::int64_t>(number), to, index);
    case DType::u8:
      return store(exact<std::uint8_t>(number), to, index);
    case DType::u16:
      return store(exact<std::uint16_t>(number), to, index);
    case DType::u32:
      return store(exact<std::uint32_t>(number), to, index);
    case DType::u64:
      return store(exact<std::uint64_t>(number), to, index);
    case DType::boolean: {
      const std::optional<std::uint8_t> value = exact<std::uint8_t>(number);
      return value && *value <= 1 && store(value, to, index);
    }
    case DType::invalid:
      break;
  }
  return false;
}

std::string text_of(const Number& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return std::to_string(*integer);
  if (const auto* integer = std::get_if<std::uint64_t>(&number)) return std::to_string(*integer);
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", std::get<double>(number));
  return text;
}

std::string place_of(std::size_t index, const Shape& shape) {
  Shape place(shape.size());
  auto rest = static_cast<std::int64_t>(index);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    place[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return to_string(place);
}

}  // namespace

Result<std::shared_ptr<HostTensor>> converted(const HostTensor& tensor, DType dtype) {
  auto made = HostTensor::create(dtype, tensor.shape());
  if (!made) return made;
  const std::span<const std::byte> from = tensor.bytes();
  const std::span<std::byte> to = (*made)->bytes();
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    const Number number = element(tensor.dtype(), from, i);
    if (store(number, dtype, to, i)) continue;
    return invalid_argument("cannot convert " + std::string(numpy_name(tensor.dtype())) + " to " +
                            std::string(numpy_name(dtype)) + " without loss: element " + place_of(i, tensor.shape()) +
                            " is " + text_of(number) + ", which " + std::string(numpy_name(dtype)) +
                            " cannot represent");
  }
  return made;
}

}  // namespace kiln::data
