#include <kiln/tensor.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>

namespace kiln {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::int64_t most_bytes = std::int64_t{1} << 40;

struct DTypeFacts {
  std::string_view name, numpy;
  std::uint32_t bytes;
};
constexpr DTypeFacts dtypes[] = {
    {"invalid", "", 0},   {"f32", "float32", 4}, {"f64", "float64", 8}, {"i32", "int32", 4},  {"u32", "uint32", 4},
    {"u8", "uint8", 1},   {"i8", "int8", 1},     {"i16", "int16", 2},   {"u16", "uint16", 2}, {"i64", "int64", 8},
    {"u64", "uint64", 8}, {"f16", "float16", 2}, {"bool", "bool", 1}};

const DTypeFacts& facts_of(DType dtype) noexcept {
  const auto at = static_cast<std::size_t>(dtype);
  return dtypes[at < std::size(dtypes) ? at : 0];
}

Result<std::int64_t> elements_of(DType dtype, const Shape& shape) {
  const std::int64_t element = size_of(dtype);
  if (element == 0) return invalid_argument("tensor " + to_string(shape) + ": element type is not set");
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return invalid_argument("tensor " + to_string(shape) + ": a dimension is negative");
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > most_bytes / element) {
      return invalid_argument("tensor " + to_string(shape) + ": larger than 2^40 bytes");
    }
  }
  return elements;
}

}  // namespace

std::string_view to_string(DType dtype) noexcept { return facts_of(dtype).name; }
std::string_view numpy_name(DType dtype) noexcept { return facts_of(dtype).numpy; }
std::uint32_t size_of(DType dtype) noexcept { return facts_of(dtype).bytes; }

DType dtype_named(std::string_view numpy_name) noexcept {
  for (std::size_t i = 1; i < std::size(dtypes); ++i) {
    if (dtypes[i].numpy == numpy_name) return static_cast<DType>(i);
  }
  return DType::invalid;
}

double from_half(std::uint16_t bits) noexcept {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

std::uint16_t to_half(double value) noexcept {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00);
  const double magnitude = std::abs(value);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  constexpr double beyond = 65520;  // halfway between the largest number and the next step
  if (magnitude >= beyond) return static_cast<std::uint16_t>(sign | 0x7C00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // Units in the last place: 2^-24 below the normal numbers.
  const int unit = std::max(exponent - 11, -24);
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // A carry of the rounding goes into the exponent by itself.
  const std::uint32_t bits = unit == -24 ? steps : steps - 1024 + (static_cast<std::uint32_t>(unit + 25) << 10);
  return static_cast<std::uint16_t>(sign | bits);
}

namespace {

// Tensors from this size on lie in huge pages where the kernel gives them on request: each small page costs a fault
// when it is written first, and entries in the tables of the processor and of a hypervisor whenever it is read.
constexpr std::size_t huge_page = std::size_t{2} << 20, large_bytes = std::size_t{16} << 20;

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<std::shared_ptr<HostTensor>> HostTensor::create(DType dtype, Shape shape) {
  const auto elements = elements_of(dtype, shape);
  if (!elements) return elements.error();
  const std::size_t bytes = static_cast<std::size_t>(*elements) * size_of(dtype);
  const std::size_t padded = std::max((bytes + alignment - 1) / alignment * alignment, alignment);
  const bool is_large = padded >= large_bytes;
  const std::size_t whole = is_large ? (padded + huge_page - 1) / huge_page * huge_page : padded;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(is_large ? huge_page : alignment, whole));
  if (data == nullptr) {
    return unavailable("tensor " + to_string(shape) + ": no memory for " + std::to_string(bytes) + " bytes");
  }
  if (is_large) madvise(data, whole, MADV_HUGEPAGE);  // advice: a refusal changes nothing but speed
  std::memset(data, 0, padded);
  return std::shared_ptr<HostTensor>(new HostTensor(dtype, std::move(shape), *elements, data, bytes));
}

Result<std::shared_ptr<HostTensor>> HostTensor::borrow(DType dtype, Shape shape, std::byte* data,
                                                       std::function<void()> released) {
  const auto elements = elements_of(dtype, shape);
  if (!elements) return elements.error();
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    return invalid_argument("tensor " + to_string(shape) + ": memory is " + (data == nullptr ? "null" : "not aligned") +
                            ", expected an address that is a multiple of " + std::to_string(alignment));
  }
  const std::size_t bytes = static_cast<std::size_t>(*elements) * size_of(dtype);
  auto* made = new HostTensor(dtype, std::move(shape), *elements, nullptr, bytes);
  std::shared_ptr<HostTensor> tensor(made, [released = std::move(released)](HostTensor* of) {
    of->data_ = nullptr;  // the caller's
    delete of;
    if (released) released();
  });
  made->data_ = data;
  return tensor;
}

HostTensor::HostTensor(DType dtype, Shape shape, std::int64_t elements, std::byte* data, std::size_t bytes) noexcept
    : dtype_(dtype), shape_(std::move(shape)), elements_(elements), data_(data), bytes_(bytes) {}

HostTensor::~HostTensor() { std::free(data_); }

std::shared_ptr<const Constant> Constant::create(std::shared_ptr<const HostTensor> tensor) {
  if (tensor == nullptr) return nullptr;
  KeyEncoder encoder;
  encoder.field("dtype", to_string(tensor->dtype()));
  encoder.field("shape", to_string(tensor->shape()));
  const Digest contents = sha256(tensor->bytes());
  encoder.field("bytes", std::string_view(reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size()));
  return std::shared_ptr<const Constant>(new Constant(std::move(tensor), encoder.digest()));
}

Constant::Constant(std::shared_ptr<const HostTensor> tensor, Digest digest) noexcept
    : tensor_(std::move(tensor)), digest_(digest) {}

}  // namespace kiln
