#include "data/npy.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/os/atomic_file.hpp"

#include <kiln/regular_file.hpp>

namespace kiln::data {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;

struct ElementType {
  std::string_view text;  // without the byte order
  DType dtype;
};
constexpr ElementType element_types[] = {{"f4", DType::f32}, {"f8", DType::f64}, {"f2", DType::f16},
                                         {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32},
                                         {"i8", DType::i64}, {"u1", DType::u8},  {"u2", DType::u16},
                                         {"u4", DType::u32}, {"u8", DType::u64}, {"b1", DType::boolean}};
constexpr std::string_view expected_types =
    "bool, int8 to int64, uint8 to uint64, float16, float32 or float64 (\"|b1\", \"<i1\" … \"<f8\")";

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

// What a person may see of foreign bytes: printable, and not long.
std::string shown(std::string_view foreign) {
  constexpr std::size_t most = 60;
  std::string text;
  for (const char byte : foreign.substr(0, most)) text += byte >= ' ' && byte <= '~' ? byte : '?';
  return foreign.size() > most ? text + "..." : text;
}

// Reads the small part of Python's literal syntax that NumPy writes. Each member answers false where the text differs.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool take_string(std::string_view& value) {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool take_extent(std::int64_t& value) {
    skip_spaces();
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return false;
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return true;
  }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  std::string_view rest() {
    skip_spaces();
    return text_.substr(at_);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

bool take_shape(LiteralReader& reader, Shape& shape) {
  if (!reader.take('(')) return false;
  while (!reader.take(')')) {
    std::int64_t extent = 0;
    if (shape.size() == most_npy_dimensions || !reader.take_extent(extent)) return false;
    shape.push_back(extent);
    if (!reader.take(',')) return shape.size() > 1 && reader.take(')');  // "(3)" is a number in Python, not a tuple
  }
  return true;
}

Status take_descr(LiteralReader& reader, NpyHeader& header) {
  std::string_view descr;
  if (!reader.take_string(descr)) {
    return unsupported("found descr " + shown(reader.rest()) + ", expected " + std::string(expected_types));
  }
  const char order = descr.empty() ? '\0' : descr.front();
  for (const ElementType& type : element_types) {
    if (descr.substr(descr.empty() ? 0 : 1) != type.text) continue;
    if (order == '<' || (order == '|' && size_of(type.dtype) == 1))
      header.byte_order = std::endian::little;
    else if (order == '>')
      header.byte_order = std::endian::big;
    else if (order != '=')
      break;
    header.dtype = type.dtype;
    return {};
  }
  return unsupported("found descr '" + shown(descr) + "', expected " + std::string(expected_types));
}

Status parse_dictionary(std::string_view text, NpyHeader& header) {
  LiteralReader reader(text);
  bool has_shape = false;
  const auto damaged = [&reader](std::string_view expected) {
    return corrupt("header has \"" + shown(reader.rest()) + "\", expected " + std::string(expected));
  };
  if (!reader.take('{')) return damaged("a dictionary");
  while (!reader.take('}')) {
    std::string_view key;
    if (!reader.take_string(key) || !reader.take(':')) return damaged("a key and ':'");
    if (key == "descr" && header.dtype == DType::invalid) {
      if (Status status = take_descr(reader, header); !status.ok()) return status;
    } else if (key == "fortran_order" && header.order == NpyOrder::invalid) {
      if (reader.take_word("True"))
        header.order = NpyOrder::fortran;
      else if (reader.take_word("False"))
        header.order = NpyOrder::c;
      else
        return damaged("True or False");
    } else if (key == "shape" && !has_shape) {
      if (!take_shape(reader, header.shape)) {
        return damaged("a tuple of at most " + std::to_string(most_npy_dimensions) + " integers");
      }
      has_shape = true;
    } else {
      return corrupt("header has key '" + shown(key) + "', expected descr, fortran_order and shape once each");
    }
    if (!reader.take(',')) {
      if (!reader.take('}')) return damaged("',' or '}'");
      break;
    }
  }
  if (!reader.at_end()) return damaged("nothing after the dictionary");
  if (header.dtype == DType::invalid) return corrupt("header has no descr");
  if (header.order == NpyOrder::invalid) return corrupt("header has no fortran_order");
  if (!has_shape) return corrupt("header has no shape");
  return {};
}

Status count_elements(NpyHeader& header) {
  std::uint64_t bytes = size_of(header.dtype);
  header.elements = 1;
  for (const std::int64_t extent : header.shape) {
    if (extent < 0) return corrupt("shape " + to_string(header.shape) + " has a negative dimension");
    const auto factor = static_cast<std::uint64_t>(extent);
    if (__builtin_mul_overflow(bytes, factor, &bytes) || bytes > std::uint64_t{1} << 40) {
      return corrupt("shape " + to_string(header.shape) + " of " + std::string(to_string(header.dtype)) +
                     ": larger than 2^40 bytes");
    }
    header.elements *= factor;
  }
  return {};
}

Result<NpyHeader> parse_header(std::span<const std::byte> start) {
  if (start.size() < magic.size() + 4) {
    return corrupt("found " + std::to_string(start.size()) + " bytes, expected at least " +
                   std::to_string(magic.size() + 4) + " for a .npy header");
  }
  if (std::string_view(reinterpret_cast<const char*>(start.data()), magic.size()) != magic) {
    return corrupt("is not a .npy file (expected \\x93NUMPY at the beginning)");
  }
  const unsigned major = byte_at(start, 6);
  const unsigned minor = byte_at(start, 7);
  if (major < 1 || major > 3 || minor != 0) {
    return unsupported("found .npy version " + std::to_string(major) + "." + std::to_string(minor) +
                       ", expected 1.0, 2.0 or 3.0");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t text_offset = magic.size() + 2 + length_bytes;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes && 8 + i < start.size(); ++i)
    length |= std::size_t{byte_at(start, 8 + i)} << 8 * i;
  if (length > most_npy_header_bytes) {
    return corrupt("found a header of " + std::to_string(length) + " bytes, expected at most " +
                   std::to_string(most_npy_header_bytes));
  }
  if (start.size() < text_offset + length) {
    return corrupt("found " + std::to_string(start.size()) + " bytes, expected a header that ends at byte " +
                   std::to_string(text_offset + length));
  }
  NpyHeader header;
  header.data_offset = text_offset + length;
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + text_offset, length);
  if (Status status = parse_dictionary(text, header); !status.ok()) return status;
  if (Status status = count_elements(header); !status.ok()) return status;
  return header;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> start, std::string_view name) {
  Result<NpyHeader> header = parse_header(start);
  if (!header) return header.error().within("file " + std::string(name));
  return header;
}

std::string format_npy_header(DType dtype, const Shape& shape) {
  std::string text = "{'descr': '";
  text += size_of(dtype) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  for (const ElementType& type : element_types) {
    if (type.dtype == dtype) text += type.text;
  }
  text += "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ' ';
    text += std::to_string(shape[i]) + (i + 1 < shape.size() || shape.size() == 1 ? "," : "");
  }
  text += "), }";
  const std::size_t prefix = magic.size() + 4;
  while ((prefix + text.size() + 1) % alignment != 0) text += ' ';
  text += '\n';
  std::string whole(magic);
  whole += {'\1', '\0', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return whole + text;
}

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
