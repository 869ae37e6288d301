#include "data/npy.hpp"

#include "base/os/atomic_file.hpp"
#include "data/npy_header.hpp"

#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace kiln::data {
namespace {

Status check_length(const NpyHeader& header, std::uint64_t file_bytes, std::string_view name) {
  const std::uint64_t expected = header.elements * size_of(header.dtype);
  const std::uint64_t found = file_bytes - header.data_offset;
  if (found == expected) return {};
  return corrupt("file " + std::string(name) + ": " + std::to_string(found) + " bytes of data, expected " +
                 std::to_string(expected) + " for shape " + to_string(header.shape) + " of " +
                 std::string(to_string(header.dtype)));
}

Result<NpyHeader> read_header(const RegularFile& file, const std::string& name) {
  std::vector<std::byte> start(
      static_cast<std::size_t>(std::min<std::uint64_t>(file.bytes(), most_npy_header_bytes + 12)));
  if (Status status = file.read(0, start); !status.ok()) return status;
  auto header = parse_npy_header(start, name);
  if (!header) return header;
  if (Status status = check_length(*header, file.bytes(), name); !status.ok()) return status;
  return header;
}

void swap_bytes(std::span<std::byte> bytes, std::size_t element) {
  for (std::size_t at = 0; at < bytes.size(); at += element) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element));
  }
}

// Fortran order (first index fastest) to C order (last index fastest).
Result<std::shared_ptr<HostTensor>> to_c_order(const HostTensor& fortran) {
  auto made = HostTensor::create(fortran.dtype(), fortran.shape());
  if (!made) return made;
  const Shape& shape = fortran.shape();
  const std::size_t element = size_of(fortran.dtype());
  const std::byte* from = fortran.bytes().data();
  std::byte* to = (*made)->bytes().data();
  std::vector<std::int64_t> stride(shape.size(), 1);  // of the source, in elements
  for (std::size_t axis = 1; axis < shape.size(); ++axis) stride[axis] = stride[axis - 1] * shape[axis - 1];
  Shape index(shape.size(), 0);
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < fortran.elements(); ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * element, from + static_cast<std::size_t>(source) * element, element);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < shape[axis]) break;
      source -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return made;
}

// The elements lie in `tensor` as they lay in the file: brings them to the host's byte order and to C order.
Result<std::shared_ptr<HostTensor>> finish(std::shared_ptr<HostTensor> tensor, const NpyHeader& header) {
  if (header.byte_order != std::endian::native) swap_bytes(tensor->bytes(), size_of(header.dtype));
  if (header.order == NpyOrder::fortran && header.shape.size() > 1) return to_c_order(*tensor);
  return tensor;
}

}  // namespace

Result<std::shared_ptr<HostTensor>> read_npy(const std::filesystem::path& path) {
  const std::string name = path.string();
  auto file = RegularFile::open(path);
  if (!file) return std::move(file).error();
  const auto header = read_header(*file, name);
  if (!header) return header.error();
  auto tensor = HostTensor::create(header->dtype, header->shape);
  if (!tensor) return tensor.error().within("file " + name);
  if (Status status = file->read(header->data_offset, (*tensor)->bytes()); !status.ok()) return status;
  return finish(*std::move(tensor), *header);
}

Result<NpyHeader> read_npy_form(const std::filesystem::path& path) {
  auto file = RegularFile::open(path);
  if (!file) return std::move(file).error();
  return read_header(*file, path.string());
}

Result<std::shared_ptr<HostTensor>> parse_npy(std::span<const std::byte> file, std::string_view name) {
  const auto header = parse_npy_header(file, name);
  if (!header) return header.error();
  if (Status status = check_length(*header, file.size(), name); !status.ok()) return status;
  auto tensor = HostTensor::create(header->dtype, header->shape);
  if (!tensor) return tensor.error().within("file " + std::string(name));
  const std::span<const std::byte> elements = file.subspan(header->data_offset);
  std::copy(elements.begin(), elements.end(), (*tensor)->bytes().begin());
  return finish(*std::move(tensor), *header);
}

Result<AtomicFile> prepare_npy(const std::filesystem::path& path, const HostTensor& tensor) {
  if (tensor.shape().size() > most_npy_dimensions) {
    return invalid_argument("file " + path.string() + ": found " + std::to_string(tensor.shape().size()) +
                            " dimensions, expected at most " + std::to_string(most_npy_dimensions));
  }
  const std::string header = format_npy_header(tensor.dtype(), tensor.shape());
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file).error();
  if (Status status = file->write(std::as_bytes(std::span(header.data(), header.size()))); !status.ok()) return status;
  if (Status status = file->write(tensor.bytes()); !status.ok()) return status;
  return file;
}

Status write_npy(const std::filesystem::path& path, const HostTensor& tensor) {
  auto file = prepare_npy(path, tensor);
  return file ? file->commit() : file.error();
}

}  // namespace kiln::data
