#include <kiln/config_text.hpp>
#include <kiln/tensor.hpp>
#include <kiln/uniform_values.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace kiln {
namespace {

template <class To>
void append(std::vector<std::byte>& to, To value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

Status not_exact(std::int64_t value) {
  return invalid_argument("value " + std::to_string(value) +
                          " cannot be stored exactly in this type. Write the value with a decimal point");
}

template <class To>
Status convert_integer(std::int64_t value, std::vector<std::byte>& to) {
  if constexpr (std::is_integral_v<To>) {
    if (!std::in_range<To>(value)) {
      return invalid_argument("value " + std::to_string(value) + " is out of range (expected " +
                              std::to_string(std::numeric_limits<To>::min()) + " to " +
                              std::to_string(std::numeric_limits<To>::max()) + ")");
    }
  } else {
    const To held = static_cast<To>(value);
    if (static_cast<long double>(held) != static_cast<long double>(value)) {
      return not_exact(value);
    }
  }
  append(to, static_cast<To>(value));
  return {};
}

Status convert_value(ElementType element, const std::byte* from, UserKernelSpec::Uniform::Type given,
                     std::vector<std::byte>& to) {
  if (given == UserKernelSpec::Uniform::Type::number) {
    double value = 0;
    std::memcpy(&value, from, sizeof value);
    if (element == ElementType::f64) return append(to, value), Status();
    const bool half = element == ElementType::f16;
    if (!half && element != ElementType::f32)
      return internal_error("found a floating-point value, expected an integer or a boolean");
    const double most = half ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
    if (std::isfinite(value) && std::abs(value) > most) {
      return invalid_argument("value " + config::print_number(value) + " is out of range (expected at most " +
                              config::print_number(most) + ", the largest " + (half ? "float16" : "float32") + ")");
    }
    if (half) return append(to, to_half(value)), Status();
    return append(to, static_cast<float>(value)), Status();
  }
  std::int64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  switch (element) {
    case ElementType::boolean:
      return convert_integer<std::int32_t>(value != 0 ? 1 : 0, to);
    case ElementType::i8:
      return convert_integer<std::int8_t>(value, to);
    case ElementType::u8:
      return convert_integer<std::uint8_t>(value, to);
    case ElementType::i16:
      return convert_integer<std::int16_t>(value, to);
    case ElementType::u16:
      return convert_integer<std::uint16_t>(value, to);
    case ElementType::f16:
      if (from_half(to_half(static_cast<double>(value))) != static_cast<double>(value)) return not_exact(value);
      append(to, to_half(static_cast<double>(value)));
      return {};
    case ElementType::i32:
      return convert_integer<std::int32_t>(value, to);
    case ElementType::u32:
      return convert_integer<std::uint32_t>(value, to);
    case ElementType::f32:
      return convert_integer<float>(value, to);
    case ElementType::f64:
      return convert_integer<double>(value, to);
    case ElementType::i64:
      return convert_integer<std::int64_t>(value, to);
    case ElementType::u64:
      return convert_integer<std::uint64_t>(value, to);
    default:
      return internal_error("the uniform has no type");
  }
}

}  // namespace

Result<std::vector<std::byte>> uniform_components(const ProgramResource& resource, const std::byte* values,
                                                  UserKernelSpec::Uniform::Type given) {
  const std::uint64_t count = values_in(resource);
  // Matrices come row by row and go column by column.
  const std::size_t dimensions = resource.shape.size();
  const std::uint64_t columns = resource.matrix ? resource.shape[dimensions - 1] : 1;
  const std::uint64_t rows = resource.matrix ? resource.shape[dimensions - 2] : 1;
  std::vector<std::byte> components;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t matrix = i / (rows * columns);
    const std::uint64_t within = i % (rows * columns);
    const std::uint64_t at = matrix * rows * columns + within % rows * columns + within / rows;
    Status status = convert_value(resource.element, values + at * sizeof(double), given, components);
    if (!status.ok()) return status.within((resource.block.empty() ? "uniforms." : "blocks.") + resource.name);
  }
  return components;
}

void place_in_block(const ProgramResource& resource, const UniformPlace& member, std::span<const std::byte> components,
                    std::vector<std::byte>& block) {
  const std::size_t dimensions = resource.shape.size();
  const std::size_t columns = resource.matrix ? resource.shape[dimensions - 1] : 1;
  const auto elements = static_cast<std::size_t>(member.count);
  const std::size_t count = values_in(resource);
  if (count == 0) return;
  const std::size_t bytes = components.size() / count;
  const std::size_t rows = count / elements / columns;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t element = i / (rows * columns);
    const std::size_t column = i / rows % columns;
    const std::size_t row = i % rows;
    const auto stride = static_cast<std::size_t>(member.matrix_stride);
    std::size_t at = static_cast<std::size_t>(member.offset) + element * static_cast<std::size_t>(member.array_stride);
    at += member.row_major && resource.matrix ? row * stride + column * bytes : column * stride + row * bytes;
    if (at + bytes <= block.size()) std::memcpy(block.data() + at, components.data() + i * bytes, bytes);
  }
}

}  // namespace kiln
