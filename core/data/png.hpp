// PNG pictures.
//
// The only user of libpng: decodes and encodes whole files in memory.
//
// Thread-safety: one thread at a time for each decoder. Ownership: a decoder borrows the file's bytes and owns libpng's
// state. libpng reports errors by longjmp: the jumps stay inside functions that own no C++ object, and
// everything that is allocated for a caller is allocated outside them.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/os/atomic_file.hpp"

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

// PNG pictures to tensors and back.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's.
// A picture is an f32 tensor [1, C, H, W], 0 to 1 = the file's sample divided by its largest value, or its samples: a
// u8 or u16 tensor [H, W, C]. The file's encoding is kept (no gamma, no colour profile is applied). C = 1 (grey) or 3
// (red, green, blue; a palette too), and one channel more where the file has alpha, also as a transparent colour
// (tRNS). Alpha is straight: colours are not multiplied by it. At most 16384 x 16384. Every error names the file.

inline constexpr std::uint32_t most_png_side = 16384;

// What becomes of alpha. keep: a channel of its own. drop: left out. premultiply: colours are multiplied by it, and it
// is a channel of its own. `channels` 1 or 3: alpha is left out in any case, since there is no place for it. 0: any
// number.
struct PngRequest {
  Alpha alpha = Alpha::keep;
  std::int64_t channels = 0;
};

struct PngInfo {
  std::uint32_t width = 0, height = 0;
  std::uint32_t colours = 0;  // 1 or 3
  bool has_alpha = false;
  DType sample = DType::invalid;  // u8 or u16

  // C of the tensor that a request gets; `channels` of the request is a wish that the file may not meet.
  std::int64_t channels(const PngRequest& request) const noexcept;
};

// 1- to 16-bit grey, grey with alpha, RGB, RGBA or palette, interlaced or not. Bytes after the picture's end are
// ignored.
Result<std::shared_ptr<HostTensor>> read_png(const std::filesystem::path& path, const PngRequest& request = {});

// The same, with what the file says of itself.
struct PngPicture {
  std::shared_ptr<HostTensor> tensor;
  PngInfo info;
};
Result<PngPicture> read_picture(const std::filesystem::path& path, const PngRequest& request = {});

// The samples of a file. channels: 0, those of the file and `alpha`; 1 and 2, a grey picture; 3 and 4, also from a grey
// one. Alpha that the file does not have is full. invalid_argument: a picture with colours where 1 or 2 are wanted.
Result<PngPicture> read_samples(const std::filesystem::path& path, const PngRequest& request = {});

// The same from a whole file in memory; `name` stands in the errors.
Result<std::shared_ptr<HostTensor>> parse_png(std::span<const std::byte> file, std::string_view name,
                                              const PngRequest& request = {});

// What a file says of itself before its pixels, which may be damaged all the same.
Result<PngInfo> read_png_info(const std::filesystem::path& path);

// invalid_argument: write_png() takes no such tensor.
Status check_picture(DType dtype, const Shape& shape);

// f32: 8 bits a sample; values are clamped to 0..1 (NaN gives 0) and rounded to nearest. u8 and u16: their samples. The
// file appears complete or not at all. invalid_argument where the tensor is not f32 [1, C, H, W], or u8 or u16 [H, W]
// or [H, W, C], with C = 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA).
Status write_png(const std::filesystem::path& path, const HostTensor& tensor);
// The same, but for its commit().
Result<AtomicFile> prepare_png(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
