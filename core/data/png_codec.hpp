// The only user of libpng: decodes and encodes whole files in memory.
//
// Thread-safety: one thread at a time for each decoder. Ownership: a decoder borrows the file's bytes and owns libpng's
// state. libpng reports errors by longjmp: the jumps stay inside functions of png_codec.cpp that own no C++ object, and
// everything that is allocated for a caller is allocated outside them.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kiln::data {

inline constexpr std::size_t png_signature_bytes = 8;
bool has_png_signature(std::span<const std::byte> file) noexcept;

struct PngPixels {
  std::uint32_t width = 0, height = 0;
  std::uint32_t channels = 0;      // 1 grey, 2 grey + alpha, 3 RGB, 4 RGBA
  std::uint32_t sample_bytes = 0;  // 1, or 2 with the high byte first
  std::size_t row_bytes = 0;
  std::vector<std::byte> rows;  // row_bytes * height, interleaved
};

class PngDecoder {
 public:
  explicit PngDecoder(std::span<const std::byte> file);
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder();

  // Fills everything but `rows`. corrupt: not a PNG file, or a damaged one.
  Status read_header(PngPixels& pixels);
  // Bytes of one row as the file stores it, before it is widened to whole samples.
  std::size_t stored_row_bytes() const noexcept;
  // REQUIRES: read_header() succeeded, and pixels.rows has row_bytes * height bytes.
  Status read_pixels(PngPixels& pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// REQUIRES: sample_bytes is 1 or 2, channels 1 to 4, sides from 1 to 16384, rows complete.
Result<std::vector<std::byte>> encode_png(const PngPixels& pixels);

}  // namespace kiln::data
