// Any bytes as a PNG file: a picture with values from 0 to 1, or an error that names the file. Checksums are made right
// first, since no mutation would pass them; the bytes as they are go through as well.
#include <zlib.h>

#include <cstdlib>
#include <span>
#include <vector>

#include "data/png.hpp"

namespace {

std::uint32_t big_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}

// Chunks: length u32, type u32, `length` bytes, CRC-32 of type and bytes; all big endian, after a signature of 8 bytes.
void repair_checksums(std::vector<std::uint8_t>& file) {
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    const std::size_t length = big_endian(file.data() + at);
    if (length > file.size() - at - 12) return;
    const std::uint32_t crc = static_cast<std::uint32_t>(crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4)));
    for (std::size_t byte = 0; byte < 4; ++byte) {
      file[at + 8 + length + byte] = static_cast<std::uint8_t>(crc >> (24 - 8 * byte));
    }
    at += 12 + length;
  }
}

void decode(std::span<const std::uint8_t> file) {
  const auto tensor = kiln::data::parse_png(std::as_bytes(file), "fuzzed.png");
  if (!tensor) {
    if (tensor.error().message.rfind("file fuzzed.png: ", 0) != 0) std::abort();
    return;
  }
  const auto& shape = (*tensor)->shape();
  if (shape.size() != 4 || shape[0] != 1 || shape[1] < 1 || shape[1] > 4) std::abort();
  for (const float value : (*tensor)->as<float>()) {
    if (!(value >= 0 && value <= 1)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  decode({data, size});
  std::vector<std::uint8_t> repaired(data, data + size);
  repair_checksums(repaired);
  decode(repaired);
  return 0;
}
