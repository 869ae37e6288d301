// The header of a .npy file: read from foreign bytes, or written.
//
// Thread-safety: free functions and values. Ownership: values.
// Format (NumPy's, versions 1.0, 2.0 and 3.0):
//   magic   93 4E 55 4D 50 59 ("\x93NUMPY"), major u8, minor u8
//   length  of the text: u16 (version 1) or u32 (versions 2 and 3), little endian
//   text    a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded by spaces, '\n'
//   data    the elements, to the end of the file
#pragma once

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln::data {

enum class NpyOrder : std::uint8_t { invalid = 0, c, fortran };

struct NpyHeader {
  DType dtype = DType::invalid;
  std::endian byte_order = std::endian::native;
  NpyOrder order = NpyOrder::invalid;
  Shape shape;
  std::uint64_t elements = 0;     // product of shape: does not overflow
  std::uint64_t data_offset = 0;  // from the start of the file
};

inline constexpr std::size_t most_npy_header_bytes = 65536;  // of the text; NumPy itself stops at 10000
inline constexpr std::size_t most_npy_dimensions = 32;

// `start` holds the file's first bytes: all of them, or at least most_npy_header_bytes + 12. `name` stands in the
// errors. corrupt: damaged. unsupported: an element type or version that Kiln does not read.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> start, std::string_view name);

// Magic to '\n', version 1.0, C order, the host's byte order, its length a multiple of 64.
// REQUIRES: dtype is valid; shape.size() <= most_npy_dimensions.
std::string format_npy_header(DType dtype, const Shape& shape);

}  // namespace kiln::data
