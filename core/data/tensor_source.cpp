#include "data/tensor_source.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"
#include "data/random_tensor.hpp"

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace kiln::data {
namespace {

enum class FileKind : std::uint8_t { invalid = 0, npy, png };

FileKind kind_of(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& letter : extension) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  if (extension == ".npy") return FileKind::npy;
  if (extension == ".png") return FileKind::png;
  return FileKind::invalid;
}

}  // namespace

Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base, DType dtype,
                                                const Shape& expected, std::string_view role) {
  if (const auto seed = parse_random(source)) {
    if (!*seed) return seed->error().within(role);
    auto tensor = HostTensor::create(dtype, expected);
    if (!tensor) return tensor.error().within(role);
    fill_random(**tensor, **seed);
    return tensor;
  }
  const std::filesystem::path path = base / std::filesystem::path(source);
  const FileKind kind = kind_of(path);
  if (kind == FileKind::invalid) {
    return invalid_argument(std::string(role) + ": found \"" + std::string(source) +
                            "\", expected random:SEED, a .npy file or a .png file");
  }
  auto tensor = kind == FileKind::npy ? read_npy(path) : read_png(path);
  if (!tensor) return tensor.error().within(role);
  const auto mismatch = [&](const std::string& found, const std::string& wanted) {
    return invalid_argument(std::string(role) + ": file " + path.string() + ": " + found + ", expected " + wanted);
  };
  if ((*tensor)->dtype() != dtype) {
    return mismatch("dtype " + std::string(to_string((*tensor)->dtype())), std::string(to_string(dtype)));
  }
  if ((*tensor)->shape() != expected) return mismatch("shape " + to_string((*tensor)->shape()), to_string(expected));
  return tensor;
}

Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor) {
  const FileKind kind = kind_of(path);
  if (kind == FileKind::invalid) {
    return invalid_argument("file " + path.string() + ": found extension \"" + path.extension().string() +
                            "\", expected .npy or .png");
  }
  if (const std::filesystem::path folder = path.parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return io_error("file " + path.string() + ": cannot make folder " + folder.string() + ": " + error.message());
  }
  return kind == FileKind::npy ? write_npy(path, tensor) : write_png(path, tensor);
}

}  // namespace kiln::data
