// .npy files.
//
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
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/os/atomic_file.hpp"

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

// .npy files, NumPy's format for one tensor: versions 1 to 3, both byte orders, C and Fortran order; f4, f8, i4, u4,
// u1.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's.
// Foreign bytes are expected: nothing is allocated before the file's length is known to fit its header, and every error
// names the file, what was found and what was expected.

// not_found: there is no such file. corrupt: damaged, too short or too long. unsupported: another element type.
Result<std::shared_ptr<HostTensor>> read_npy(const std::filesystem::path& path);

// Its header alone, and whether the file's length fits it.
Result<NpyHeader> read_npy_form(const std::filesystem::path& path);

// The same from a whole file in memory; `name` stands in the errors.
Result<std::shared_ptr<HostTensor>> parse_npy(std::span<const std::byte> file, std::string_view name);

// Version 1.0, C order, the host's byte order. The file appears complete or not at all (kiln/result_files.hpp).
Status write_npy(const std::filesystem::path& path, const HostTensor& tensor);
// The same, but for its commit().
Result<AtomicFile> prepare_npy(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
