#include "data/png_codec.hpp"

#include "data/png.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string>

namespace kiln::data {
namespace {

constexpr std::array<unsigned char, png_signature_bytes> signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t most_chunk_bytes = std::size_t{8} << 20;  // of memory for one chunk; IDAT is streamed

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
    png_set_chunk_malloc_max(png, most_chunk_bytes);
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
    return corrupt("found a file that does not start with the signature of PNG, expected \\x89PNG");
  }
  state_->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_->failure, on_error, on_warning);
  if (state_->png != nullptr) state_->info = png_create_info_struct(state_->png);
  if (state_->info == nullptr) return unavailable("no memory for libpng");
  if (!state_->header(pixels)) return state_->damaged();
  if (pixels.channels < 1 || pixels.channels > 4 || (pixels.sample_bytes != 1 && pixels.sample_bytes != 2)) {
    return internal_error("libpng made " + std::to_string(pixels.channels) + " channels of " +
                          std::to_string(pixels.sample_bytes) + " bytes, expected 1 to 4 of 1 or 2");
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

}  // namespace kiln::data
