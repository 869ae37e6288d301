#include "data/png.hpp"

#include "base/atomic_file.hpp"
#include "data/png_codec.hpp"
#include "data/regular_file.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::data {
namespace {

// Deflate makes at most 258 bytes of 2 bits: no honest file is smaller than its samples by more than this.
constexpr std::uint64_t most_deflate_ratio = 1032;

std::uint16_t sample_at(const PngPixels& pixels, const std::byte* row, std::size_t index) {
  if (pixels.sample_bytes == 1) return std::to_integer<std::uint8_t>(row[index]);
  const auto high = std::to_integer<unsigned>(row[2 * index]);
  return static_cast<std::uint16_t>(high << 8 | std::to_integer<unsigned>(row[2 * index + 1]));
}

Result<std::shared_ptr<HostTensor>> to_tensor(const PngPixels& pixels) {
  const std::size_t colours = pixels.channels < 3 ? 1 : 3;
  const bool has_alpha = pixels.channels == 2 || pixels.channels == 4;
  auto made = HostTensor::create(DType::f32, {1, static_cast<std::int64_t>(colours), pixels.height, pixels.width});
  if (!made) return made;
  const std::span<float> to = (*made)->as<float>();
  const std::size_t plane = std::size_t{pixels.height} * pixels.width;
  const float most = pixels.sample_bytes == 1 ? 255.0f : 65535.0f;
  for (std::size_t y = 0; y < pixels.height; ++y) {
    const std::byte* const row = pixels.rows.data() + y * pixels.row_bytes;
    for (std::size_t x = 0; x < pixels.width; ++x) {
      const std::size_t first = x * pixels.channels;
      const float alpha = has_alpha ? static_cast<float>(sample_at(pixels, row, first + colours)) / most : 1.0f;
      for (std::size_t colour = 0; colour < colours; ++colour) {
        const float sample = static_cast<float>(sample_at(pixels, row, first + colour)) / most;
        to[colour * plane + y * pixels.width + x] = sample * alpha;
      }
    }
  }
  return made;
}

std::byte to_byte(float value) {
  if (!(value > 0.0f)) return std::byte{0};  // NaN too
  if (value >= 1.0f) return std::byte{255};
  return static_cast<std::byte>(std::lround(value * 255.0f));
}

Result<PngPixels> to_pixels(const HostTensor& tensor) {
  const Shape& shape = tensor.shape();
  const auto side_fits = [](std::int64_t side) { return side >= 1 && side <= most_png_side; };
  if (tensor.dtype() != DType::f32 || shape.size() != 4 || shape[0] != 1 || (shape[1] != 1 && shape[1] != 3) ||
      !side_fits(shape[2]) || !side_fits(shape[3])) {
    return invalid_argument("found " + std::string(to_string(tensor.dtype())) + " " + to_string(shape) +
                            ", expected f32 [1, 1 or 3, H, W] with H and W from 1 to " + std::to_string(most_png_side));
  }
  PngPixels pixels;
  pixels.width = static_cast<std::uint32_t>(shape[3]);
  pixels.height = static_cast<std::uint32_t>(shape[2]);
  pixels.channels = static_cast<std::uint32_t>(shape[1]);
  pixels.sample_bytes = 1;
  pixels.row_bytes = std::size_t{pixels.width} * pixels.channels;
  pixels.rows.resize(pixels.row_bytes * pixels.height);
  const std::span<const float> from = tensor.as<float>();
  const std::size_t plane = std::size_t{pixels.height} * pixels.width;
  for (std::size_t at = 0; at < plane; ++at) {
    for (std::size_t c = 0; c < pixels.channels; ++c)
      pixels.rows[at * pixels.channels + c] = to_byte(from[c * plane + at]);
  }
  return pixels;
}

Result<std::shared_ptr<HostTensor>> decode(std::span<const std::byte> file) {
  PngDecoder decoder(file);
  PngPixels pixels;
  if (Status status = decoder.read_header(pixels); !status.ok()) return status;
  const std::uint64_t bytes = std::uint64_t{decoder.stored_row_bytes()} * pixels.height;
  if (bytes / most_deflate_ratio > file.size()) {
    return corrupt("found " + std::to_string(file.size()) + " bytes, expected at least " +
                   std::to_string(bytes / most_deflate_ratio) + " for " + std::to_string(pixels.width) + " x " +
                   std::to_string(pixels.height) + " pixels");
  }
  pixels.rows.resize(pixels.row_bytes * pixels.height);
  if (Status status = decoder.read_pixels(pixels); !status.ok()) return status;
  return to_tensor(pixels);
}

}  // namespace

Result<std::shared_ptr<HostTensor>> parse_png(std::span<const std::byte> file, std::string_view name) {
  auto tensor = decode(file);
  if (!tensor) return tensor.error().within("file " + std::string(name));
  return tensor;
}

Result<std::shared_ptr<HostTensor>> read_png(const std::filesystem::path& path) {
  auto file = RegularFile::open(path);
  if (!file) return std::move(file).error();
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;  // more than the largest picture takes uncompressed
  if (file->bytes() > most_bytes) {
    return invalid_argument("file " + path.string() + ": found " + std::to_string(file->bytes()) +
                            " bytes, expected at most " + std::to_string(most_bytes));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file->bytes()));
  if (Status status = file->read(0, bytes); !status.ok()) return status;
  return parse_png(bytes, path.string());
}

Status write_png(const std::filesystem::path& path, const HostTensor& tensor) {
  const auto pixels = to_pixels(tensor);
  if (!pixels) return pixels.error().within("file " + path.string());
  const auto bytes = encode_png(*pixels);
  if (!bytes) return bytes.error().within("file " + path.string());
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file).error();
  if (Status status = file->write(*bytes); !status.ok()) return status;
  return file->commit();
}

}  // namespace kiln::data
