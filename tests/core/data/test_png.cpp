#include "data/png.hpp"

#include <png.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csetjmp>
#include <limits>

#include "core/data/scratch_folder.hpp"
#include "data/tensor_source.hpp"

using namespace kiln;
using kiln::test::bytes_of;
using kiln::test::contents_of;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

namespace {

struct Picture {
  int colour = PNG_COLOR_TYPE_GRAY;
  int depth = 8;
  std::uint32_t width = 0, height = 0;
  int interlace = PNG_INTERLACE_NONE;
  std::vector<std::string> rows;
  std::vector<png_color> palette;
  std::vector<png_byte> palette_alpha;
  int transparent_grey = -1;  // none
};

void append(png_structp png, png_bytep bytes, std::size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(bytes), count);
}

// Pictures of every kind, through libpng itself: what Kiln writes has 8 bits.
std::string encoded(Picture picture) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append, nullptr);
  png_set_IHDR(png, info, picture.width, picture.height, picture.depth, picture.colour, picture.interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!picture.palette.empty()) {
    png_set_PLTE(png, info, picture.palette.data(), static_cast<int>(picture.palette.size()));
  }
  if (!picture.palette_alpha.empty()) {
    png_set_tRNS(png, info, picture.palette_alpha.data(), static_cast<int>(picture.palette_alpha.size()), nullptr);
  }
  if (picture.transparent_grey >= 0) {
    png_color_16 colour = {};
    colour.gray = static_cast<png_uint_16>(picture.transparent_grey);
    png_set_tRNS(png, info, nullptr, 0, &colour);
  }
  std::vector<png_bytep> rows;
  for (std::string& row : picture.rows) rows.push_back(reinterpret_cast<png_bytep>(row.data()));
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::vector<float> values_of(const std::string& file, const Shape& shape, const data::PngRequest& request = {}) {
  const auto tensor = data::parse_png(bytes_of(file), "x.png", request);
  if (!tensor) FAIL(tensor.error().text());
  CHECK((*tensor)->shape() == shape);
  return {(*tensor)->as<float>().begin(), (*tensor)->as<float>().end()};
}

Status png_failure(const std::string& file) {
  const auto tensor = data::parse_png(bytes_of(file), "x.png");
  if (tensor) return {};
  CHECK_THAT(tensor.error().message, Catch::StartsWith("file x.png: "));
  return tensor.error();
}

std::uint32_t crc_of(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// The same file with another size in its header, the checksum made right again.
std::string with_size(std::string file, std::uint32_t width, std::uint32_t height) {
  file.replace(16, 8, big_endian(width) + big_endian(height));
  file.replace(29, 4, big_endian(crc_of(file.substr(12, 17))));
  return file;
}

}  // namespace

TEST_CASE("png: grey and RGB, 8 and 16 bits", "[png]") {
  CHECK(values_of(encoded({PNG_COLOR_TYPE_GRAY, 8, 2, 2, 0, {std::string("\x00\xFF", 2), "\x33\x66"}, {}, {}}),
                  {1, 1, 2, 2}) == std::vector<float>{0, 1, 51.f / 255, 102.f / 255});
  CHECK(values_of(encoded({PNG_COLOR_TYPE_RGB, 8, 2, 1, 0, {"\x01\x02\x03\x04\x05\x06"}, {}, {}}), {1, 3, 1, 2}) ==
        std::vector<float>{1.f / 255, 4.f / 255, 2.f / 255, 5.f / 255, 3.f / 255, 6.f / 255});
  CHECK(values_of(encoded({PNG_COLOR_TYPE_GRAY, 16, 3, 1, 0, {std::string("\x00\x01\x12\x34\xFF\xFF", 6)}, {}, {}}),
                  {1, 1, 1, 3}) == std::vector<float>{1.f / 65535, 0x1234 / 65535.f, 1});
  CHECK(values_of(encoded({PNG_COLOR_TYPE_RGB, 16, 1, 1, 0, {std::string("\x80\x00\x40\x00\x20\x00", 6)}, {}, {}}),
                  {1, 3, 1, 1}) == std::vector<float>{32768 / 65535.f, 16384 / 65535.f, 8192 / 65535.f});
}

TEST_CASE("png: greys below 8 bits are widened to the whole range", "[png]") {
  CHECK(values_of(encoded({PNG_COLOR_TYPE_GRAY, 1, 8, 1, 0, {"\xA5"}, {}, {}}), {1, 1, 1, 8}) ==
        std::vector<float>{1, 0, 1, 0, 0, 1, 0, 1});
  CHECK(values_of(encoded({PNG_COLOR_TYPE_GRAY, 4, 2, 1, 0, {"\xF3"}, {}, {}}), {1, 1, 1, 2}) ==
        std::vector<float>{1, 51.f / 255});
}

TEST_CASE("png: a palette gives RGB", "[png]") {
  const std::vector<png_color> palette{{255, 0, 0}, {0, 51, 102}};
  CHECK(values_of(encoded({PNG_COLOR_TYPE_PALETTE, 8, 2, 1, 0, {std::string("\x01\x00", 2)}, palette, {}}),
                  {1, 3, 1, 2}) == std::vector<float>{0, 1, 51.f / 255, 0, 102.f / 255, 0});
}

TEST_CASE("png: alpha is a channel of its own, and colours are not multiplied by it", "[png]") {
  const std::string rgba =
      encoded({PNG_COLOR_TYPE_RGB_ALPHA, 8, 2, 1, 0, {std::string("\xFF\x66\x33\x80\xFF\x66\x33\x00", 8)}, {}, {}});
  const std::vector<float> colours{1, 1, 102.f / 255, 102.f / 255, 51.f / 255, 51.f / 255};
  std::vector<float> straight = colours;
  straight.insert(straight.end(), {128.f / 255, 0});
  CHECK(values_of(rgba, {1, 4, 1, 2}) == straight);
  CHECK(values_of(rgba, {1, 4, 1, 2}, {Alpha::keep, 4}) == straight);
  CHECK(values_of(rgba, {1, 3, 1, 2}, {Alpha::keep, 3}) == colours);  // there is no place for it
  CHECK(values_of(rgba, {1, 3, 1, 2}, {Alpha::drop, 0}) == colours);
  CHECK(values_of(rgba, {1, 3, 1, 2}, {Alpha::drop, 4}) == colours);
  const float half = 128.f / 255;
  const std::vector<float> multiplied{half, 0, 102.f / 255 * half, 0, 51.f / 255 * half, 0};
  CHECK(values_of(rgba, {1, 3, 1, 2}, {Alpha::premultiply, 3}) == multiplied);
  std::vector<float> with_alpha = multiplied;
  with_alpha.insert(with_alpha.end(), {half, 0});
  CHECK(values_of(rgba, {1, 4, 1, 2}, {Alpha::premultiply, 4}) == with_alpha);
}

TEST_CASE("png: alpha of 16 bits, of grey, of palettes and of one transparent colour is exact", "[png]") {
  const std::string grey16 = encoded({PNG_COLOR_TYPE_GRAY_ALPHA, 16, 1, 1, 0, {"\xC0\x01\x80\x03"}, {}, {}});
  CHECK(values_of(grey16, {1, 2, 1, 1}) == std::vector<float>{49153 / 65535.f, 32771 / 65535.f});
  CHECK(values_of(grey16, {1, 1, 1, 1}, {Alpha::keep, 1}) == std::vector<float>{49153 / 65535.f});
  CHECK(values_of(grey16, {1, 2, 1, 1}, {Alpha::premultiply, 2}) ==
        std::vector<float>{49153 / 65535.f * (32771 / 65535.f), 32771 / 65535.f});
  const std::string rgba16 =
      encoded({PNG_COLOR_TYPE_RGB_ALPHA, 16, 1, 1, 0, {"\x01\x02\x03\x04\x05\x06\x07\x08"}, {}, {}});
  CHECK(values_of(rgba16, {1, 4, 1, 1}) ==
        std::vector<float>{258 / 65535.f, 772 / 65535.f, 1286 / 65535.f, 1800 / 65535.f});
  const std::vector<png_color> palette{{255, 0, 0}, {0, 51, 102}};
  const std::string paletted =
      encoded({PNG_COLOR_TYPE_PALETTE, 8, 2, 1, 0, {std::string("\x01\x00", 2)}, palette, {255, 51}});
  CHECK(values_of(paletted, {1, 4, 1, 2}) == std::vector<float>{0, 1, 51.f / 255, 0, 102.f / 255, 0, 51.f / 255, 1});
  CHECK(values_of(paletted, {1, 3, 1, 2}, {Alpha::drop, 3}) == std::vector<float>{0, 1, 51.f / 255, 0, 102.f / 255, 0});
  Picture keyed{PNG_COLOR_TYPE_GRAY, 8, 2, 1, 0, {std::string("\x33\x66", 2)}, {}, {}};
  keyed.transparent_grey = 0x66;
  CHECK(values_of(encoded(keyed), {1, 2, 1, 2}) == std::vector<float>{51.f / 255, 102.f / 255, 1, 0});
}

TEST_CASE("png: what a file says before its pixels is what reading it gives", "[png]") {
  const ScratchFolder folder;
  const std::vector<png_color> palette{{255, 0, 0}, {0, 51, 102}};
  const Picture pictures[] = {{PNG_COLOR_TYPE_GRAY, 8, 2, 1, 0, {"ab"}, {}, {}},
                              {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2, 1, 0, {"abcd"}, {}, {}},
                              {PNG_COLOR_TYPE_RGB, 8, 2, 1, 0, {"abcdef"}, {}, {}},
                              {PNG_COLOR_TYPE_RGB_ALPHA, 8, 2, 1, 0, {"abcdefgh"}, {}, {}},
                              {PNG_COLOR_TYPE_PALETTE, 8, 2, 1, 0, {std::string("\x01\x00", 2)}, palette, {255, 51}}};
  for (const Picture& picture : pictures) {
    write_contents(folder / "x.png", encoded(picture));
    const auto info = data::read_png_info(folder / "x.png");
    REQUIRE(info);
    for (const Alpha alpha : {Alpha::keep, Alpha::drop, Alpha::premultiply}) {
      for (const std::int64_t channels : {0, 1, 2, 3, 4}) {
        const auto tensor = data::read_png(folder / "x.png", {alpha, channels});
        REQUIRE(tensor);
        CHECK((*tensor)->shape() == Shape{1, info->channels({alpha, channels}), info->height, info->width});
      }
    }
  }
}

TEST_CASE("png: interlaced is the same picture", "[png]") {
  Picture picture{PNG_COLOR_TYPE_GRAY, 8, 19, 13, PNG_INTERLACE_NONE, {}, {}, {}};
  for (int y = 0; y < 13; ++y) {
    std::string row;
    for (int x = 0; x < 19; ++x) row += static_cast<char>(x * 7 + y * 19);
    picture.rows.push_back(row);
  }
  const auto plain = values_of(encoded(picture), {1, 1, 13, 19});
  picture.interlace = PNG_INTERLACE_ADAM7;
  CHECK(values_of(encoded(picture), {1, 1, 13, 19}) == plain);
}

TEST_CASE("png: what is written is read back to half a step", "[png]") {
  const ScratchFolder folder;
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    auto tensor = HostTensor::create(DType::f32, {1, channels, 31, 45});
    REQUIRE(tensor);
    data::fill_random(**tensor, 3);
    for (float& value : (*tensor)->as<float>()) value = value * 0.5f + 0.5f;
    REQUIRE(data::write_png(folder / "t.png", **tensor).ok());
    const auto back = data::read_png(folder / "t.png");
    REQUIRE(back);
    REQUIRE((*back)->shape() == (*tensor)->shape());
    float worst = 0;
    for (std::size_t i = 0; i < (*back)->as<float>().size(); ++i) {
      worst = std::max(worst, std::abs((*back)->as<float>()[i] - (*tensor)->as<float>()[i]));
    }
    CHECK(worst <= 0.5f / 255 + 1e-6f);
    CHECK(folder.entries() == 1);
  }
}

TEST_CASE("png: values outside 0..1 are clamped", "[png]") {
  const ScratchFolder folder;
  auto tensor = HostTensor::create(DType::f32, {1, 1, 1, 6});
  REQUIRE(tensor);
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float values[] = {-3, 7, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 0.5f};
  std::copy(std::begin(values), std::end(values), (*tensor)->as<float>().begin());
  REQUIRE(data::write_png(folder / "t.png", **tensor).ok());
  CHECK(values_of(contents_of(folder / "t.png"), {1, 1, 1, 6}) == std::vector<float>{0, 1, 1, 0, 0, 128.f / 255});
}

TEST_CASE("png: a tensor that is no picture is not written", "[png]") {
  const ScratchFolder folder;
  for (const Shape& shape :
       {Shape{3, 4, 4}, Shape{2, 3, 4, 4}, Shape{1, 5, 4, 4}, Shape{1, 3, 0, 4}, Shape{1, 1, 1, 16385}}) {
    const auto tensor = HostTensor::create(DType::f32, shape);
    REQUIRE(tensor);
    const Status status = data::write_png(folder / "t.png", **tensor);
    CHECK(status.code == StatusCode::invalid_argument);
    CHECK_THAT(status.message, Catch::Contains("t.png") && Catch::Contains(to_string(shape)) &&
                                   Catch::Contains("f32 [1, C, H, W], or u8 or u16 [H, W]"));
  }
  const auto integers = HostTensor::create(DType::u8, {1, 1, 2, 2});
  CHECK(data::write_png(folder / "t.png", **integers).code == StatusCode::invalid_argument);
  CHECK(folder.entries() == 0);
}

TEST_CASE("png: files that are not PNG, or are cut or changed anywhere", "[png]") {
  CHECK_THAT(png_failure("GIF89a and so on").message, Catch::Contains("PNG"));
  CHECK(png_failure("").code == StatusCode::corrupt);
  const std::string whole = encoded({PNG_COLOR_TYPE_RGB, 8, 3, 2, 0, {"abcdefghi", "jklmnopqr"}, {}, {}});
  REQUIRE(png_failure(whole).ok());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    INFO("cut at " << bytes);
    CHECK(png_failure(whole.substr(0, bytes)).code == StatusCode::corrupt);
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    INFO("changed at " << at);
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    CHECK(png_failure(changed).code == StatusCode::corrupt);
  }
  CHECK(png_failure(whole + "more").ok());
}

TEST_CASE("png: every reader rejects a file without the PNG signature", "[png]") {
  const ScratchFolder folder;
  const std::string signature("\x89PNG\r\n\x1A\n", 8);
  const std::string whole = encoded({PNG_COLOR_TYPE_GRAY, 8, 1, 1, 0, {"a"}, {}, {}});
  REQUIRE(whole.substr(0, 8) == signature);
  CHECK(data::has_png_signature(bytes_of(signature)));
  CHECK(data::has_png_signature(bytes_of(whole)));
  CHECK_THAT(png_failure(signature).message, Catch::StartsWith("file x.png: damaged PNG: "));
  std::vector<std::string> others{"", "GIF89a and so on", signature.substr(0, 7), whole.substr(1), " " + whole};
  for (std::size_t at = 0; at < signature.size(); ++at) {
    others.push_back(whole);
    others.back()[at] = static_cast<char>(others.back()[at] ^ 1);
  }
  const std::string told = ": is not a PNG file (expected \\x89PNG at the beginning)";
  const std::filesystem::path path = folder / "x.png";
  for (std::size_t i = 0; i < others.size(); ++i) {
    INFO("file " << i);
    CHECK_FALSE(data::has_png_signature(bytes_of(others[i])));
    CHECK(png_failure(others[i]).text() == "corrupt: file x.png" + told);
    write_contents(path, others[i]);
    const auto planes = data::read_png(path);
    REQUIRE_FALSE(planes);
    CHECK(planes.error().text() == "corrupt: file " + path.string() + told);
    const auto samples = data::read_samples(path);
    REQUIRE_FALSE(samples);
    CHECK(samples.error().text() == "corrupt: file " + path.string() + told);
    const auto info = data::read_png_info(path);
    REQUIRE_FALSE(info);
    CHECK(info.error().text() == "corrupt: file " + path.string() + told);
  }
}

TEST_CASE("png: default values of picture facts", "[png]") {
  const data::PngInfo info{};
  CHECK(info.width == 0);
  CHECK(info.height == 0);
  CHECK(info.colours == 0);
  CHECK_FALSE(info.has_alpha);
  CHECK(info.sample == DType::invalid);
  const data::PngPixels pixels{};
  CHECK(pixels.width == 0);
  CHECK(pixels.height == 0);
  CHECK(pixels.channels == 0);
  CHECK(pixels.sample_bytes == 0);
  CHECK(pixels.row_bytes == 0);
  CHECK(pixels.rows.empty());
}

TEST_CASE("png: sizes beyond the limit or beyond what the file can hold", "[png]") {
  const std::string whole = encoded({PNG_COLOR_TYPE_GRAY, 8, 1, 1, 0, {"a"}, {}, {}});
  CHECK(png_failure(with_size(whole, 1, 1)).ok());
  CHECK(png_failure(with_size(whole, 16385, 1)).code == StatusCode::corrupt);
  CHECK(png_failure(with_size(whole, 1, 1 << 20)).code == StatusCode::corrupt);
  // Of files that are otherwise right.
  const auto grey = [](std::uint32_t width, std::uint32_t height) {
    return encoded({PNG_COLOR_TYPE_GRAY, 8, width, height, 0, std::vector(height, std::string(width, 'a')), {}, {}});
  };
  CHECK(png_failure(grey(16384, 1)).ok());
  CHECK(png_failure(grey(1, 16384)).ok());
  for (const std::string& file : {grey(16385, 1), grey(1, 16385)}) {
    const Status beyond = png_failure(file);
    CHECK(beyond.code == StatusCode::corrupt);
    CHECK_THAT(beyond.message, Catch::Contains("Invalid IHDR"));
  }
  const Status bomb = png_failure(with_size(whole, 16384, 16384));
  CHECK(bomb.code == StatusCode::corrupt);
  // Deflate makes at most 1,032 bytes of one.
  CHECK_THAT(bomb.message, Catch::EndsWith("found " + std::to_string(whole.size()) +
                                           " bytes, expected at least 260111 for 16384 x 16384 pixels"));
}

TEST_CASE("png: text and profiles are skipped unread, whatever they hold", "[png]") {
  const std::string whole = encoded({PNG_COLOR_TYPE_GRAY, 8, 1, 1, 0, {"a"}, {}, {}});
  for (const char* kind : {"teSt", "tEXt", "zTXt", "iTXt", "iCCP", "sPLT", "eXIf", "hIST"}) {
    CAPTURE(kind);
    const std::string typed = kind + std::string(1 << 20, 'x');  // of none of these kinds a right one
    std::string file = whole;
    file.insert(33, big_endian(1 << 20) + typed + big_endian(crc_of(typed)));
    CHECK(png_failure(file).ok());
  }
}

TEST_CASE("png: the fuzzer's seeds are what they are called", "[png]") {
  int pictures = 0;
  for (const auto& file : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/corpus/png")) {
    INFO(file.path());
    const auto tensor = data::read_png(file.path());
    CHECK(tensor.has_value() == (file.path().filename() != "bomb.png"));
    ++pictures;
  }
  CHECK(pictures >= 12);
}

TEST_CASE("png: a missing file is named", "[png]") {
  const ScratchFolder folder;
  const auto none = data::read_png(folder / "none.png");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == StatusCode::not_found);
  CHECK_THAT(none.error().message, Catch::Contains("none.png"));
}
