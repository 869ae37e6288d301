#include "data/png.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/os/atomic_file.hpp"

#include <kiln/regular_file.hpp>

namespace kiln::data {
namespace {

constexpr std::array<unsigned char, png_signature_bytes> signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

// Where a jump lands, and what libpng said before it.
struct Failure {
  std::jmp_buf jump;
  char text[160] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto* const failure = static_cast<Failure*>(png_get_error_ptr(png));
  std::strncpy(failure->text, text == nullptr ? "unknown error" : text, sizeof failure->text - 1);
  std::longjmp(failure->jump, 1);
}

void on_warning(png_structp, png_const_charp) {}  // what a warning is about is decoded all the same

struct Reader {
  std::span<const std::byte> file;
  std::size_t at = 0;
};

void on_read(png_structp png, png_bytep to, std::size_t bytes) {
  auto* const reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (bytes > reader->file.size() - reader->at) png_error(png, "the file ends too early");
  std::memcpy(to, reader->file.data() + reader->at, bytes);
  reader->at += bytes;
}

struct Writer {
  std::vector<std::byte> bytes;
};

void on_write(png_structp png, png_bytep from, std::size_t bytes) {
  auto* const writer = static_cast<Writer*>(png_get_io_ptr(png));
  bool done = false;
  try {
    const auto* const first = reinterpret_cast<const std::byte*>(from);
    writer->bytes.insert(writer->bytes.end(), first, first + bytes);
    done = true;
  } catch (const std::bad_alloc&) {
    done = false;
  }
  if (!done) png_error(png, "no memory");
}

void on_flush(png_structp) {}

}  // namespace

bool has_png_signature(std::span<const std::byte> file) noexcept {
  return file.size() >= signature.size() && std::memcmp(file.data(), signature.data(), signature.size()) == 0;
}

struct PngDecoder::State {
  Reader reader;
  Failure failure;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::size_t stored_row_bytes = 0;
  std::vector<png_bytep> rows;

  // Both answer false after a jump. Neither owns anything.
  bool header(PngPixels& pixels) {
    if (setjmp(failure.jump) != 0) return false;
    png_set_user_limits(png, most_png_side, most_png_side);
    // Text, profiles and the like are skipped unread: only IHDR, PLTE, tRNS, IDAT and IEND matter here.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_read_fn(png, &reader, on_read);
    png_read_info(png, info);
    stored_row_bytes = png_get_rowbytes(png, info);
    png_set_expand(png);  // palettes to RGB, small greys to 8 bits, tRNS to alpha
    if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE) png_set_interlace_handling(png);
    png_read_update_info(png, info);
    pixels.width = png_get_image_width(png, info);
    pixels.height = png_get_image_height(png, info);
    pixels.channels = png_get_channels(png, info);
    pixels.sample_bytes = png_get_bit_depth(png, info) / 8;
    pixels.row_bytes = png_get_rowbytes(png, info);
    return true;
  }

  bool picture() {
    if (setjmp(failure.jump) != 0) return false;
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
    return true;
  }

  Status damaged() const { return corrupt(std::string("damaged PNG: ") + failure.text); }
};

PngDecoder::PngDecoder(std::span<const std::byte> file) : state_(std::make_unique<State>()) {
  state_->reader.file = file;
}

PngDecoder::~PngDecoder() { png_destroy_read_struct(&state_->png, &state_->info, nullptr); }

Status PngDecoder::read_header(PngPixels& pixels) {
  const std::span<const std::byte> file = state_->reader.file;
  if (!has_png_signature(file)) {
    return corrupt("is not a PNG file (expected \\x89PNG at the beginning)");
  }
  state_->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_->failure, on_error, on_warning);
  if (state_->png != nullptr) state_->info = png_create_info_struct(state_->png);
  if (state_->info == nullptr) return unavailable("no memory for libpng");
  if (!state_->header(pixels)) return state_->damaged();
  if (pixels.channels < 1 || pixels.channels > 4 || (pixels.sample_bytes != 1 && pixels.sample_bytes != 2)) {
    return internal_error("libpng returned " + std::to_string(pixels.channels) + " channels of " +
                          std::to_string(pixels.sample_bytes) + " bytes, expected 1 to 4 channels of 1 or 2 bytes");
  }
  return {};
}

std::size_t PngDecoder::stored_row_bytes() const noexcept { return state_->stored_row_bytes; }

Status PngDecoder::read_pixels(PngPixels& pixels) {
  state_->rows.resize(pixels.height);
  for (std::size_t y = 0; y < pixels.height; ++y) {
    state_->rows[y] = reinterpret_cast<png_bytep>(pixels.rows.data() + y * pixels.row_bytes);
  }
  if (!state_->picture()) return state_->damaged();
  return {};
}

namespace {

struct Encoder {
  Writer writer;
  Failure failure;
  png_structp png = nullptr;
  png_infop info = nullptr;

  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder() { png_destroy_write_struct(&png, &info); }

  bool encode(const PngPixels& pixels) {
    if (setjmp(failure.jump) != 0) return false;
    png_set_write_fn(png, &writer, on_write, on_flush);
    const int colour =
        (pixels.channels >= 3 ? PNG_COLOR_MASK_COLOR : 0) | (pixels.channels % 2 == 0 ? PNG_COLOR_MASK_ALPHA : 0);
    png_set_IHDR(png, info, pixels.width, pixels.height, static_cast<int>(8 * pixels.sample_bytes), colour,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (std::size_t y = 0; y < pixels.height; ++y) {
      png_write_row(png, reinterpret_cast<png_const_bytep>(pixels.rows.data() + y * pixels.row_bytes));
    }
    png_write_end(png, nullptr);
    return true;
  }
};

}  // namespace

Result<std::vector<std::byte>> encode_png(const PngPixels& pixels) {
  Encoder encoder;
  encoder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder.failure, on_error, on_warning);
  if (encoder.png != nullptr) encoder.info = png_create_info_struct(encoder.png);
  if (encoder.info == nullptr) return unavailable("no memory for libpng");
  if (!encoder.encode(pixels)) return unavailable(std::string("cannot encode PNG: ") + encoder.failure.text);
  return std::move(encoder.writer.bytes);
}

namespace {

// Deflate makes at most 258 bytes of 2 bits: no honest file is smaller than its samples by more than this.
constexpr std::uint64_t most_deflate_ratio = 1032;

std::uint16_t sample_at(const PngPixels& pixels, const std::byte* row, std::size_t index) {
  if (pixels.sample_bytes == 1) return std::to_integer<std::uint8_t>(row[index]);
  const auto high = std::to_integer<unsigned>(row[2 * index]);
  return static_cast<std::uint16_t>(high << 8 | std::to_integer<unsigned>(row[2 * index + 1]));
}

PngInfo info_of(const PngPixels& pixels) {
  return {pixels.width, pixels.height, pixels.channels < 3 ? 1u : 3u, pixels.channels == 2 || pixels.channels == 4,
          pixels.sample_bytes == 1 ? DType::u8 : DType::u16};
}

Result<std::shared_ptr<HostTensor>> to_tensor(const PngPixels& pixels, const PngRequest& request) {
  const PngInfo info = info_of(pixels);
  const auto channels = static_cast<std::size_t>(info.channels(request));
  const bool multiplied = info.has_alpha && request.alpha == Alpha::premultiply;
  auto made = HostTensor::create(DType::f32, {1, info.channels(request), pixels.height, pixels.width});
  if (!made) return made;
  const std::span<float> to = (*made)->as<float>();
  const std::size_t plane = std::size_t{pixels.height} * pixels.width;
  const float most = pixels.sample_bytes == 1 ? 255.0f : 65535.0f;
  for (std::size_t y = 0; y < pixels.height; ++y) {
    const std::byte* const row = pixels.rows.data() + y * pixels.row_bytes;
    for (std::size_t x = 0; x < pixels.width; ++x) {
      const auto sample = [&](std::size_t channel) {
        return static_cast<float>(sample_at(pixels, row, x * pixels.channels + channel)) / most;
      };
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const bool by_alpha = multiplied && channel < info.colours;
        to[channel * plane + y * pixels.width + x] =
            by_alpha ? sample(channel) * sample(info.colours) : sample(channel);
      }
    }
  }
  return made;
}

// The channels of a picture of samples: how many, and which of the file's each is (-1: full alpha).
struct Channels {
  std::size_t count = 0;
  int from[4] = {0, 0, 0, 0};
  bool premultiplied = false;  // all but the last
};

Result<Channels> channels_of(const PngInfo& info, const PngRequest& request) {
  const bool alpha = info.has_alpha && request.alpha != Alpha::drop;
  const std::size_t own = info.colours + (alpha ? 1 : 0);
  Channels channels;
  channels.count = request.channels == 0 ? own : static_cast<std::size_t>(request.channels);
  const bool with_alpha = channels.count == 2 || channels.count == 4;
  const std::size_t colours = channels.count - (with_alpha ? 1 : 0);
  if (colours < info.colours) {
    return invalid_argument("found " + std::to_string(info.colours) + " colour channels, expected 1 (grey) for " +
                            std::to_string(channels.count) + (channels.count == 1 ? " channel" : " channels"));
  }
  for (std::size_t i = 0; i < colours; ++i) channels.from[i] = info.colours == 1 ? 0 : static_cast<int>(i);
  if (with_alpha) channels.from[colours] = alpha ? static_cast<int>(info.colours) : -1;
  channels.premultiplied = alpha && with_alpha && request.alpha == Alpha::premultiply;
  return channels;
}

Result<std::shared_ptr<HostTensor>> to_samples(const PngPixels& pixels, const PngRequest& request) {
  const PngInfo info = info_of(pixels);
  const auto channels = channels_of(info, request);
  if (!channels) return channels.error();
  auto made =
      HostTensor::create(info.sample, {pixels.height, pixels.width, static_cast<std::int64_t>(channels->count)});
  if (!made) return made;
  const std::uint32_t most = pixels.sample_bytes == 1 ? 255 : 65535;
  std::size_t at = 0;
  const auto store = [&](std::uint32_t sample) {
    if (info.sample == DType::u8)
      (*made)->as<std::uint8_t>()[at++] = static_cast<std::uint8_t>(sample);
    else
      (*made)->as<std::uint16_t>()[at++] = static_cast<std::uint16_t>(sample);
  };
  for (std::size_t y = 0; y < pixels.height; ++y) {
    const std::byte* const row = pixels.rows.data() + y * pixels.row_bytes;
    for (std::size_t x = 0; x < pixels.width; ++x) {
      const auto sample = [&](int channel) -> std::uint32_t {
        return channel < 0 ? most : sample_at(pixels, row, x * pixels.channels + static_cast<std::size_t>(channel));
      };
      for (std::size_t c = 0; c < channels->count; ++c) {
        std::uint32_t value = sample(channels->from[c]);
        if (channels->premultiplied && c + 1 < channels->count) {
          value = (value * sample(channels->from[channels->count - 1]) + most / 2) / most;
        }
        store(value);
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

PngPixels samples_of(const HostTensor& tensor) {
  const Shape& shape = tensor.shape();
  PngPixels pixels;
  pixels.width = static_cast<std::uint32_t>(shape[1]);
  pixels.height = static_cast<std::uint32_t>(shape[0]);
  pixels.channels = shape.size() == 3 ? static_cast<std::uint32_t>(shape[2]) : 1;
  pixels.sample_bytes = size_of(tensor.dtype());
  pixels.row_bytes = std::size_t{pixels.width} * pixels.channels * pixels.sample_bytes;
  const std::span<const std::byte> bytes = tensor.bytes();
  pixels.rows.assign(bytes.begin(), bytes.end());
  if (pixels.sample_bytes == 2 && std::endian::native == std::endian::little) {
    for (std::size_t i = 0; i + 1 < pixels.rows.size(); i += 2) std::swap(pixels.rows[i], pixels.rows[i + 1]);
  }
  return pixels;
}

Result<PngPixels> to_pixels(const HostTensor& tensor) {
  if (Status status = check_picture(tensor.dtype(), tensor.shape()); !status.ok()) return status;
  if (tensor.dtype() != DType::f32) return samples_of(tensor);
  const Shape& shape = tensor.shape();
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

using Convert = Result<std::shared_ptr<HostTensor>> (*)(const PngPixels&, const PngRequest&);

Result<PngPicture> decode(std::span<const std::byte> file, const PngRequest& request, Convert convert = to_tensor) {
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
  auto tensor = convert(pixels, request);
  if (!tensor) return std::move(tensor).error();
  return PngPicture{std::move(*tensor), info_of(pixels)};
}

Result<std::vector<std::byte>> contents_of(const std::filesystem::path& path) {
  auto file = RegularFile::open(path);
  if (!file) return std::move(file).error();
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;  // more than the largest picture takes uncompressed
  // Of a file that is no picture only the beginning is read: decoding says what it is.
  std::vector<std::byte> beginning(
      static_cast<std::size_t>(std::min<std::uint64_t>(file->bytes(), png_signature_bytes)));
  if (Status status = file->read(0, beginning); !status.ok()) return status;
  if (!has_png_signature(beginning)) return beginning;
  return file->contents(most_bytes);
}

}  // namespace

std::int64_t PngInfo::channels(const PngRequest& request) const noexcept {
  const bool has_room = request.channels == 0 || request.channels == 2 || request.channels == 4;
  return colours + (has_alpha && has_room && request.alpha != Alpha::drop ? 1 : 0);
}

Result<std::shared_ptr<HostTensor>> parse_png(std::span<const std::byte> file, std::string_view name,
                                              const PngRequest& request) {
  auto picture = decode(file, request);
  if (!picture) return picture.error().within("file " + std::string(name));
  return std::move(picture->tensor);
}

Result<std::shared_ptr<HostTensor>> read_png(const std::filesystem::path& path, const PngRequest& request) {
  auto picture = read_picture(path, request);
  if (!picture) return std::move(picture).error();
  return std::move(picture->tensor);
}

Result<PngPicture> read_picture(const std::filesystem::path& path, const PngRequest& request) {
  const auto bytes = contents_of(path);
  if (!bytes) return bytes.error();
  auto picture = decode(*bytes, request);
  if (!picture) return picture.error().within("file " + path.string());
  return picture;
}

Result<PngPicture> read_samples(const std::filesystem::path& path, const PngRequest& request) {
  const auto bytes = contents_of(path);
  if (!bytes) return bytes.error();
  auto picture = decode(*bytes, request, to_samples);
  if (!picture) return picture.error().within("file " + path.string());
  return picture;
}

Result<PngInfo> read_png_info(const std::filesystem::path& path) {
  const auto bytes = contents_of(path);
  if (!bytes) return bytes.error();
  PngDecoder decoder(*bytes);
  PngPixels pixels;
  if (Status status = decoder.read_header(pixels); !status.ok()) return status.within("file " + path.string());
  return info_of(pixels);
}

Status check_picture(DType dtype, const Shape& shape) {
  const auto side_fits = [](std::int64_t side) { return side >= 1 && side <= most_png_side; };
  if (dtype == DType::f32 && shape.size() == 4 && shape[0] == 1 && shape[1] >= 1 && shape[1] <= 4 &&
      side_fits(shape[2]) && side_fits(shape[3])) {
    return {};
  }
  if ((dtype == DType::u8 || dtype == DType::u16) && (shape.size() == 2 || shape.size() == 3) && side_fits(shape[0]) &&
      side_fits(shape[1]) && (shape.size() == 2 || (shape[2] >= 1 && shape[2] <= 4))) {
    return {};
  }
  return invalid_argument("found " + std::string(to_string(dtype)) + " " + to_string(shape) +
                          ", expected f32 [1, C, H, W], or u8 or u16 [H, W] or [H, W, C], with C from 1 to 4, H and W "
                          "from 1 to " +
                          std::to_string(most_png_side));
}

Result<AtomicFile> prepare_png(const std::filesystem::path& path, const HostTensor& tensor) {
  const auto pixels = to_pixels(tensor);
  if (!pixels) return pixels.error().within("file " + path.string());
  const auto bytes = encode_png(*pixels);
  if (!bytes) return bytes.error().within("file " + path.string());
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file).error();
  if (Status status = file->write(*bytes); !status.ok()) return status;
  return file;
}

Status write_png(const std::filesystem::path& path, const HostTensor& tensor) {
  auto file = prepare_png(path, tensor);
  return file ? file->commit() : file.error();
}

}  // namespace kiln::data
