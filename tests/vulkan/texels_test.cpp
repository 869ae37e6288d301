// Texels of a tensor in the format that a kernel declares, and what of it is refused.
#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

// The elements of one texel, in the bytes of their type.
template <class T>
std::vector<std::uint8_t> raw(std::initializer_list<T> values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

// A kernel that loads 64 equal texels of an image of this format.
Kernel loading(const std::string& format, const std::vector<std::uint8_t>& texel, DType dtype, std::int64_t channels,
               char component) {
  const char* const kind = format.ends_with("ui") ? "u" : format.ends_with("i") ? "i" : "";
  std::vector<std::uint8_t> all;
  for (int i = 0; i < 64; ++i) all.insert(all.end(), texel.begin(), texel.end());
  Kernel kernel("layout(" + format + ") readonly uniform " + kind + "image2D m;\n",
                "imageLoad(m, ivec2(i, 0))." + std::string(1, component));
  kernel.texture(BindingKind::image, Access::read, "m", all, dtype, {1, 64, channels});
  return kernel;
}

}  // namespace

TEST_CASE("vulkan texels: an element of another type than the format becomes a component", "[vulkan][image]") {
  if (!on_software()) return;
  const struct {
    const char* format;
    DType dtype;
    std::vector<std::uint8_t> texel;
    float value;  // of the first component
  } cases[] = {
      // Numbers of floats: integers of 8 and 16 bits are parts of one.
      {"r32f", DType::u8, raw<std::uint8_t>({255}), 1},
      {"r32f", DType::u8, raw<std::uint8_t>({51}), 0.2F},
      {"r32f", DType::u16, raw<std::uint16_t>({65535}), 1},
      {"r32f", DType::u16, raw<std::uint16_t>({13107}), 0.2F},
      {"r32f", DType::i8, raw<std::int8_t>({127}), 1},
      {"r32f", DType::i8, raw<std::int8_t>({-127}), -1},
      {"r32f", DType::i8, raw<std::int8_t>({-128}), -1},
      {"r32f", DType::i8, raw<std::int8_t>({-64}), -64.0F / 127},
      {"r32f", DType::i16, raw<std::int16_t>({32767}), 1},
      {"r32f", DType::i16, raw<std::int16_t>({-32768}), -1},
      {"r32f", DType::i16, raw<std::int16_t>({-8192}), -8192.0F / 32767},
      {"r32f", DType::f16, raw<std::uint16_t>({0xbe00}), -1.5F},
      {"r16", DType::u8, raw<std::uint8_t>({51}), 0.2F},
      // Integers as they are.
      {"r32i", DType::i8, raw<std::int8_t>({-100}), -100},
      {"r32i", DType::i16, raw<std::int16_t>({-30000}), -30000},
      {"r32ui", DType::u8, raw<std::uint8_t>({200}), 200},
      {"r32ui", DType::u16, raw<std::uint16_t>({60000}), 60000},
      {"r16i", DType::i8, raw<std::int8_t>({-100}), -100},
      {"r16ui", DType::u8, raw<std::uint8_t>({200}), 200},
  };
  for (const auto& each : cases) {
    INFO(each.format << " of type " << static_cast<int>(each.dtype) << ", expected " << each.value);
    Kernel kernel = loading(each.format, each.texel, each.dtype, 1, 'x');
    const Status status = kernel.run();
    INFO(status.text());
    REQUIRE(status.ok());
    CHECK(kernel.result()[0] == Approx(each.value).epsilon(1e-6));
    CHECK(kernel.result()[63] == kernel.result()[0]);
  }
}

TEST_CASE("vulkan texels: channels that a tensor lacks are 0, and the fourth is 1", "[vulkan][image]") {
  if (!on_software()) return;
  const struct {
    const char* format;
    DType dtype;
    std::vector<std::uint8_t> texel;
    std::int64_t channels;
    std::array<float, 4> values;
  } cases[] = {
      {"rgba32f", DType::f32, raw<float>({7}), 1, {7, 0, 0, 1}},
      {"rgba32f", DType::f32, raw<float>({7, 8}), 2, {7, 8, 0, 1}},
      {"rgba32f", DType::f32, raw<float>({7, 8, 9}), 3, {7, 8, 9, 1}},
      {"rgba16f", DType::f16, raw<std::uint16_t>({0x3e00}), 1, {1.5F, 0, 0, 1}},
      {"rgba8", DType::u8, raw<std::uint8_t>({51, 102, 153}), 3, {0.2F, 0.4F, 0.6F, 1}},
      {"rgba16", DType::u16, raw<std::uint16_t>({13107, 65535}), 2, {0.2F, 1, 0, 1}},
      {"rgba8_snorm", DType::i8, raw<std::int8_t>({-127, 127}), 2, {-1, 1, 0, 1}},
      {"rgba16_snorm", DType::i16, raw<std::int16_t>({-32767, 16384}), 2, {-1, 16384.0F / 32767, 0, 1}},
      {"rgba32i", DType::i32, raw<std::int32_t>({-7, 8}), 2, {-7, 8, 0, 1}},
      {"rgba32ui", DType::u32, raw<std::uint32_t>({3000000000U}), 1, {3e9F, 0, 0, 1}},
      {"rgba16i", DType::i16, raw<std::int16_t>({-7, 8, 9}), 3, {-7, 8, 9, 1}},
      {"rgba8ui", DType::u8, raw<std::uint8_t>({7, 8, 9}), 3, {7, 8, 9, 1}},
  };
  for (const auto& each : cases) {
    for (std::size_t i = 0; i < 4; ++i) {
      INFO(each.format << " of " << each.channels << " channels, component " << i);
      Kernel kernel = loading(each.format, each.texel, each.dtype, each.channels, "xyzw"[i]);
      const Status status = kernel.run();
      INFO(status.text());
      REQUIRE(status.ok());
      CHECK(kernel.result()[63] == Approx(each.values[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("vulkan texels: what drivers round in ways of their own is refused", "[vulkan][image]") {
  if (!on_software()) return;
  const std::string end = " is not supported on Vulkan devices. Provide the format's type, or use an opengl device";
  refuse(loading("r16f", raw<std::uint8_t>({1}), DType::u8, 1, 'x'),
         "image2D m: a tensor of uint8 with 1 channels as r16f" + end);
}

TEST_CASE("vulkan texels: images of every kind have the job's texels", "[vulkan][image]") {
  if (!on_software()) return;
  std::vector<float> values(6 * 4 * 4 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  // Each lane loads the texel of its number, counted through rows, columns and layers.
  const struct {
    const char* type;
    const char* place;
    Shape shape;
  } cases[] = {
      {"image1D", "int(i)", {64}},
      {"image2D", "ivec2(i % 8, i / 8)", {8, 8, 1}},
      {"image3D", "ivec3(i % 4, i / 4 % 4, i / 16)", {4, 4, 4, 1}},
      {"image1DArray", "ivec2(i % 16, i / 16)", {4, 16, 1}},
      {"image2DArray", "ivec3(i % 4, i / 4 % 4, i / 16)", {4, 4, 4, 1}},
      {"imageCube", "ivec3(i % 4, i / 4 % 4, i / 16)", {6, 4, 4, 1}},
      {"imageCubeArray", "ivec3(i % 4, i / 4 % 4, i / 16)", {12, 4, 4, 1}},
  };
  for (const auto& each : cases) {
    INFO(each.type);
    std::int64_t count = 1;
    for (const std::int64_t side : each.shape) count *= side;
    const std::vector<float> texels(values.begin(), values.begin() + count);
    Kernel kernel(std::string("layout(r32f) readonly uniform ") + each.type + " m;\n",
                  std::string("imageLoad(m, ") + each.place + ").x");
    kernel.texture(BindingKind::image, Access::read, "m", texels, DType::f32, each.shape);
    const Status status = kernel.run();
    INFO(status.text());
    REQUIRE(status.ok());
    CHECK(kernel.result() == ramp());
  }
}

}  // namespace kiln::vulkan
