// PNG pictures to tensors and back.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's.
// A picture is an f32 tensor [1, C, H, W], C = 1 (grey) or 3 (red, green, blue), 0 to 1 = the file's sample divided by
// its largest value; the file's encoding is kept (no gamma, no colour profile is applied). A palette gives C = 3. Alpha
// is dropped by compositing over black: sample * alpha. At most 16384 x 16384. Every error names the file.
#pragma once

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace kiln::data {

inline constexpr std::uint32_t most_png_side = 16384;

// 1- to 16-bit grey, grey with alpha, RGB, RGBA or palette, interlaced or not. Bytes after the picture's end are
// ignored.
Result<std::shared_ptr<HostTensor>> read_png(const std::filesystem::path& path);

// The same from a whole file in memory; `name` stands in the errors.
Result<std::shared_ptr<HostTensor>> parse_png(std::span<const std::byte> file, std::string_view name);

// 8 bits a sample: values are clamped to 0..1 (NaN gives 0) and rounded to nearest. The file appears complete or not at
// all. invalid_argument where the tensor is not f32 [1, 1 or 3, H, W].
Status write_png(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
