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

Status unknown_source(std::string_view source, std::string_view role) {
  return invalid_argument(std::string(role) + ": found \"" + std::string(source) +
                          "\", expected random:SEED, a .npy file or a .png file");
}

PngRequest png_request(const TensorRequest& request) {
  return {request.alpha, request.shape.size() == 4 ? request.shape[1] : 0};
}

Status check_form(const std::filesystem::path& path, DType dtype, const Shape& shape, const TensorRequest& request) {
  const auto mismatch = [&](const std::string& found, const std::string& wanted) {
    return invalid_argument(std::string(request.role) + ": file " + path.string() + ": " + found + ", expected " +
                            wanted);
  };
  if (dtype != request.dtype) {
    return mismatch("dtype " + std::string(to_string(dtype)), std::string(to_string(request.dtype)));
  }
  return shape == request.shape ? Status{} : mismatch("shape " + to_string(shape), to_string(request.shape));
}

// Alpha that was asked for and changes the number of channels is named.
Status check_picture_form(const std::filesystem::path& path, const PngInfo& info, const TensorRequest& request) {
  const std::int64_t channels = info.channels(png_request(request));
  const Status status = check_form(path, DType::f32, {1, channels, info.height, info.width}, request);
  if (!info.has_alpha || request.shape.size() != 4 || request.shape[1] == channels) return status;
  return status.within("alpha = \"" + std::string(to_string(request.alpha)) + "\"");
}

}  // namespace

Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base,
                                                const TensorRequest& request, std::string* note) {
  if (const auto seed = parse_random(source)) {
    if (!*seed) return seed->error().within(request.role);
    auto tensor = HostTensor::create(request.dtype, request.shape);
    if (!tensor) return tensor.error().within(request.role);
    fill_random(**tensor, **seed);
    return tensor;
  }
  const std::filesystem::path path = base / std::filesystem::path(source);
  const FileKind kind = kind_of(path);
  if (kind == FileKind::invalid) return unknown_source(source, request.role);
  if (kind == FileKind::npy) {
    auto tensor = read_npy(path);
    if (!tensor) return tensor.error().within(request.role);
    if (Status status = check_form(path, (*tensor)->dtype(), (*tensor)->shape(), request); !status.ok()) return status;
    return tensor;
  }
  auto picture = read_picture(path, png_request(request));
  if (!picture) return picture.error().within(request.role);
  if (Status status = check_picture_form(path, picture->info, request); !status.ok()) return status;
  const bool left_out = picture->info.has_alpha && picture->tensor->shape()[1] == picture->info.colours;
  if (left_out && request.alpha == Alpha::keep && note != nullptr) {
    *note = std::string(request.role) + ": file " + path.string() +
            ": its alpha channel is left out: " + std::to_string(picture->info.colours + 1) +
            " channels would keep it; alpha = \"drop\" ends this note, " + "\"premultiply\" multiplies colours by it";
  }
  return std::move(picture->tensor);
}

Status check_tensor(std::string_view source, const std::filesystem::path& base, const TensorRequest& request) {
  if (const auto seed = parse_random(source)) return *seed ? Status{} : seed->error().within(request.role);
  const std::filesystem::path path = base / std::filesystem::path(source);
  const FileKind kind = kind_of(path);
  if (kind == FileKind::invalid) return unknown_source(source, request.role);
  if (kind == FileKind::npy) {
    const auto header = read_npy_form(path);
    if (!header) return header.error().within(request.role);
    return check_form(path, header->dtype, header->shape, request);
  }
  const auto info = read_png_info(path);
  return info ? check_picture_form(path, *info, request) : info.error().within(request.role);
}

Result<TensorRequest> npy_form(std::string_view source, const std::filesystem::path& base, std::string_view role) {
  const std::filesystem::path path = base / std::filesystem::path(source);
  if (parse_random(source) || kind_of(path) != FileKind::npy) {
    return invalid_argument(
        std::string(role) + ": found \"" + std::string(source) +
        "\", expected a .npy file; random:SEED and .png can be the input, weights and bias of conv2d "
        "and gemm");
  }
  const auto header = read_npy_form(path);
  if (!header) return header.error().within(role);
  return TensorRequest{header->dtype, header->shape, role, Alpha::keep};
}

Status check_storable(const std::filesystem::path& path, DType dtype, const Shape& shape) {
  const FileKind kind = kind_of(path);
  if (kind == FileKind::npy) return {};
  if (kind == FileKind::png) return check_picture(dtype, shape).within("file " + path.string());
  return invalid_argument("file " + path.string() + ": found extension \"" + path.extension().string() +
                          "\", expected .npy or .png");
}

Result<AtomicFile> prepare_tensor(const std::filesystem::path& path, const HostTensor& tensor) {
  if (Status status = check_storable(path, tensor.dtype(), tensor.shape()); !status.ok()) return status;
  if (const std::filesystem::path folder = path.parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return io_error("file " + path.string() + ": cannot make folder " + folder.string() + ": " + error.message());
  }
  return kind_of(path) == FileKind::npy ? prepare_npy(path, tensor) : prepare_png(path, tensor);
}

Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor) {
  auto file = prepare_tensor(path, tensor);
  return file ? file->commit() : file.error();
}

}  // namespace kiln::data
