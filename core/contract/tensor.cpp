#include <kiln/tensor.hpp>

#include <cstdlib>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::int64_t most_bytes = std::int64_t{1} << 40;

Result<std::int64_t> elements_of(DType dtype, const Shape& shape) {
  const std::int64_t element = size_of(dtype);
  if (element == 0) return invalid_argument("tensor " + to_string(shape) + ": no element type");
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

std::uint32_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::u8:
      return 1;
    case DType::invalid:
      break;
  }
  return 0;
}

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
  const std::size_t padded = (bytes + alignment - 1) / alignment * alignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(alignment, padded == 0 ? alignment : padded));
  if (data == nullptr) {
    return unavailable("tensor " + to_string(shape) + ": no memory for " + std::to_string(bytes) + " bytes");
  }
  std::memset(data, 0, padded);
  return std::shared_ptr<HostTensor>(new HostTensor(dtype, std::move(shape), *elements, data, bytes));
}

Result<std::shared_ptr<HostTensor>> HostTensor::borrow(DType dtype, Shape shape, std::byte* data,
                                                       std::function<void()> released) {
  const auto elements = elements_of(dtype, shape);
  if (!elements) return elements.error();
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    return invalid_argument("tensor " + to_string(shape) + ": its memory is " +
                            (data == nullptr ? "null" : "not aligned") +
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
