// HostTensor: a dense tensor in host memory; Constant: one that never changes again, with its digest; Tolerance: how
// far one tensor may be from another.
//
// Thread-safety: a HostTensor has no lock: while a submitted job refers to it only the job may write it. A Constant is
// immutable and may be shared between threads. Ownership: both are held by shared_ptr, and a job keeps its own
// reference until its fence, so memory outlives work that timed out. Data is row-major (C order) and 64-byte aligned.
#pragma once

#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln {

enum class DType : std::uint8_t { invalid = 0, f32, f64, i32, u32, u8 };

std::string_view to_string(DType dtype) noexcept;
std::uint32_t size_of(DType dtype) noexcept;  // bytes of one element; 0 for invalid

using Shape = std::vector<std::int64_t>;

// How far an output may be from its reference: |got - want| <= absolute + relative * |want|, element by element.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  bool operator==(const Tolerance&) const = default;
};

std::string to_string(const Shape& shape);  // "[1, 3, 224, 224]"

class HostTensor {
 public:
  // Contents are zero. Fails with invalid_argument for a negative dimension or a size beyond 2^40 bytes, and with
  // unavailable where memory is short.
  static Result<std::shared_ptr<HostTensor>> create(DType dtype, Shape shape);

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

// Created once, digested once (dtype, shape and bytes), resident once per device. Packed forms are keyed by
// (digest, layout) and dropped when the last reference to the Constant goes.
class Constant {
 public:
  // REQUIRES: nobody writes to *tensor afterwards.
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
