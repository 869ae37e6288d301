// HostTensor: a dense tensor in host memory. Constant: an immutable tensor with a digest. Tolerance: an error bound.
//
// Data is row-major (C order) and 64-byte aligned. Sizes are in bytes.
// Thread-safety: a HostTensor has no lock; while a job uses the tensor, only the job may write it. Threads may share a
// Constant. Ownership: shared_ptr; a job owns a reference until its fence is reached, also after a timeout.
//
//   auto tensor = kiln::HostTensor::create(kiln::DType::f32, {1, 3, 224, 224});
//   if (!tensor) return tensor.error();
//   for (float& value : (*tensor)->as<float>()) value = 1.0f;
#pragma once

#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// f16: IEEE 754 binary16. boolean: one byte, 0 or 1.
enum class DType : std::uint8_t { invalid = 0, f32, f64, i32, u32, u8, i8, i16, u16, i64, u64, f16, boolean };

std::string_view to_string(DType dtype) noexcept;         // "f32", "bool"
std::string_view numpy_name(DType dtype) noexcept;        // "float32", "bool": the spelling in configurations
DType dtype_named(std::string_view numpy_name) noexcept;  // invalid: no such type
std::uint32_t size_of(DType dtype) noexcept;              // bytes of one element; 0 for invalid
double from_half(std::uint16_t bits) noexcept;            // the value of an f16 element
std::uint16_t to_half(double value) noexcept;             // rounded to nearest, ties to even

using Shape = std::vector<std::int64_t>;

// Bound for each element: |got - want| <= absolute + relative * |want|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  bool operator==(const Tolerance&) const = default;
};

std::string to_string(const Shape& shape);  // "[1, 3, 224, 224]"

class HostTensor {
 public:
  // Creates a tensor of zeros. invalid_argument: a negative dimension, or more than 2^40 bytes. unavailable: out of
  // memory.
  static Result<std::shared_ptr<HostTensor>> create(DType dtype, Shape shape);
  // Uses memory of the caller. The memory must be 64-byte aligned and stay valid until `released` is called. `released` is
  // called on any thread after the last reference to the tensor is gone. invalid_argument: as create(), or the memory is
  // not aligned; `released` is then not called.
  static Result<std::shared_ptr<HostTensor>> borrow(DType dtype, Shape shape, std::byte* data,
                                                    std::function<void()> released);

  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
  ~HostTensor();

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t elements() const noexcept { return elements_; }
  std::span<std::byte> bytes() noexcept { return {data_, bytes_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, bytes_}; }

  // REQUIRES: sizeof(T) == size_of(dtype()).
  template <class T>
  std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(elements_)};
  }
  template <class T>
  std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(elements_)};
  }

 private:
  HostTensor(DType dtype, Shape shape, std::int64_t elements, std::byte* data, std::size_t bytes) noexcept;

  DType dtype_;
  Shape shape_;
  std::int64_t elements_;
  std::byte* data_;
  std::size_t bytes_;
};

// An immutable tensor. Kiln hashes it once (dtype, shape and bytes) and uploads it once per device. Packed forms have the
// key (digest, layout) and are freed with the last reference to the Constant.
class Constant {
 public:
  // REQUIRES: nothing writes *tensor afterwards.
  static std::shared_ptr<const Constant> create(std::shared_ptr<const HostTensor> tensor);

  const HostTensor& tensor() const noexcept { return *tensor_; }
  const std::shared_ptr<const HostTensor>& shared_tensor() const noexcept { return tensor_; }
  const Digest& digest() const noexcept { return digest_; }

 private:
  Constant(std::shared_ptr<const HostTensor> tensor, Digest digest) noexcept;

  std::shared_ptr<const HostTensor> tensor_;
  Digest digest_;
};

}  // namespace kiln
