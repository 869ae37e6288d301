// Which calls make, fill and read a texture: a table of functions of this file stands for the driver.
#include "texture.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kiln::opengl {
namespace {

using TextureCalls = std::vector<std::string>;

std::map<GLenum, GLint> texture_limits;
TextureCalls texture_calls;
GLuint last_texture_name = 0;

template <class... Values>
void note_call(const std::string& name, Values... values) {
  std::string call = name;
  ((call += " " + std::to_string(values)), ...);
  texture_calls.push_back(call);
}

long offset_number(const void* offset) { return static_cast<long>(reinterpret_cast<std::intptr_t>(offset)); }

Gl noting_driver() {
  Gl gl{};
  gl.GetIntegerv = [](GLenum name, GLint* value) { *value = texture_limits.at(name); };
  gl.GenTextures = [](GLsizei, GLuint* name) { *name = ++last_texture_name; };
  gl.DeleteTextures = [](GLsizei, const GLuint* name) { note_call("delete", *name); };
  gl.ActiveTexture = [](GLenum unit) { note_call("unit", unit - GL_TEXTURE0); };
  gl.BindTexture = [](GLenum, GLuint name) { note_call("bind", name); };
  gl.BindBuffer = [](GLenum target, GLuint name) {
    note_call(target == GL_PIXEL_PACK_BUFFER ? "pack" : target == GL_PIXEL_UNPACK_BUFFER ? "unpack" : "other", name);
  };
  gl.PixelStorei = [](GLenum name, GLint value) {
    note_call(name == GL_PACK_ALIGNMENT     ? "pack aligned"
              : name == GL_UNPACK_ALIGNMENT ? "unpack aligned"
                                            : "other",
              value);
  };
  gl.TexBufferRange = [](GLenum, GLenum format, GLuint buffer, GLintptr offset, GLsizeiptr bytes) {
    note_call("view", format, buffer, offset, bytes);
  };
  gl.TexStorage1D = [](GLenum, GLsizei levels, GLenum format, GLsizei width) {
    note_call("1D", levels, format, width);
  };
  gl.TexStorage2D = [](GLenum, GLsizei levels, GLenum format, GLsizei width, GLsizei height) {
    note_call("2D", levels, format, width, height);
  };
  gl.TexStorage3D = [](GLenum, GLsizei levels, GLenum format, GLsizei width, GLsizei height, GLsizei depth) {
    note_call("3D", levels, format, width, height, depth);
  };
  gl.TexParameteri = [](GLenum, GLenum name, GLint value) { note_call("parameter", name, value); };
  gl.TexSubImage1D = [](GLenum, GLint level, GLint x, GLsizei width, GLenum format, GLenum type, const void* from) {
    note_call("fill", level, x, width, format, type, offset_number(from));
  };
  gl.TexSubImage2D = [](GLenum target, GLint level, GLint x, GLint y, GLsizei width, GLsizei height, GLenum format,
                        GLenum type, const void* from) {
    note_call("fill", target, level, x, y, width, height, format, type, offset_number(from));
  };
  gl.TexSubImage3D = [](GLenum, GLint level, GLint x, GLint y, GLint z, GLsizei width, GLsizei height, GLsizei depth,
                        GLenum format, GLenum type, const void* from) {
    note_call("fill", level, x, y, z, width, height, depth, format, type, offset_number(from));
  };
  gl.GetTexImage = [](GLenum target, GLint level, GLenum format, GLenum type, void* to) {
    note_call("read", target, level, format, type, offset_number(to));
  };
  gl.BindImageTexture = [](GLuint unit, GLuint name, GLint level, GLboolean layered, GLint layer, GLenum access,
                           GLenum format) { note_call("image", unit, name, level, layered, layer, access, format); };
  return gl;
}

void set_texture_limits() {
  texture_limits = {{GL_MAX_TEXTURE_SIZE, 16},           {GL_MAX_3D_TEXTURE_SIZE, 8},
                    {GL_MAX_RECTANGLE_TEXTURE_SIZE, 12}, {GL_MAX_CUBE_MAP_TEXTURE_SIZE, 10},
                    {GL_MAX_ARRAY_TEXTURE_LAYERS, 6},    {GL_MAX_TEXTURE_BUFFER_SIZE, 32}};
}

TextureSource texture_form(std::array<std::uint32_t, 3> size) {
  TextureSource form;
  form.size = size;
  form.channels = 1;
  form.dtype = DType::f32;
  form.format = ImageFormat::r32f;
  form.access = Access::read;
  return form;
}

// The calls of the first job with the texture; it is deleted afterwards.
TextureCalls calls_of_first_job(GLenum target, const TextureSource& form, Status* status = nullptr) {
  const Gl gl = noting_driver();
  set_texture_limits();
  last_texture_name = 0;
  texture_calls.clear();
  PixelTexture texture;
  const Status filled = texture.fill(gl, target, form, 5, 96);
  if (status != nullptr) *status = filled;
  const TextureCalls made = texture_calls;
  texture.drop(gl);
  return made;
}

bool has_call(const TextureCalls& made, const std::string& call) { return std::ranges::find(made, call) != made.end(); }

constexpr GLenum red_format = 0x1903, rg_format = 0x8227, rgb_format = 0x1907, rgba_format = 0x1908;
constexpr GLenum red_integer = 0x8D94, rg_integer = 0x8228, rgb_integer = 0x8D98, rgba_integer = 0x8D99;

}  // namespace

TEST_CASE("opengl: texture calls: a texture is made once, filled for each job and left unbound", "[opengl][texture]") {
  const Gl gl = noting_driver();
  set_texture_limits();
  last_texture_name = 0;
  PixelTexture texture;
  TextureSource form = texture_form({3, 4, 0});
  const TextureCalls filled{"unpack 5", "unpack aligned 1", "fill 3553 0 0 0 3 4 6403 5126 0", "unpack 0", "bind 0"};
  TextureCalls first{"unit 0",
                     "bind 1",
                     "2D 1 33326 3 4",
                     "parameter 10241 9728",   // GL_TEXTURE_MIN_FILTER: GL_NEAREST
                     "parameter 10240 9728",   // GL_TEXTURE_MAG_FILTER
                     "parameter 10242 33071",  // GL_TEXTURE_WRAP_S: GL_CLAMP_TO_EDGE
                     "parameter 10243 33071",
                     "parameter 32882 33071"};
  first.insert(first.end(), filled.begin(), filled.end());
  texture_calls.clear();
  CHECK(texture.fill(gl, GL_TEXTURE_2D, form, 5, 48).ok());
  CHECK(texture_calls == first);

  texture_calls.clear();
  CHECK(texture.fill(gl, GL_TEXTURE_2D, form, 5, 48).ok());
  TextureCalls again{"unit 0", "bind 1"};
  again.insert(again.end(), filled.begin(), filled.end());
  CHECK(texture_calls == again);

  form.size = {4, 3, 0};
  texture_calls.clear();
  CHECK(texture.fill(gl, GL_TEXTURE_2D, form, 5, 48).ok());
  CHECK(texture_calls.front() == "delete 1");
  CHECK(has_call(texture_calls, "2D 1 33326 4 3"));
  texture_calls.clear();
  CHECK(texture.fill(gl, GL_TEXTURE_RECTANGLE, form, 5, 48).ok());
  CHECK(texture_calls.front() == "delete 2");

  texture_calls.clear();
  texture.bind_image(gl, 3);
  texture.bind_sampler(gl, 4);
  texture.unbind(gl, 3, GL_INVALID_INDEX);
  texture.unbind(gl, GL_INVALID_INDEX, 4);
  CHECK(texture_calls == TextureCalls{"image 3 3 0 1 0 35002 33326", "unit 4", "bind 3",  // GL_READ_WRITE
                                      "image 3 0 0 0 0 35000 34836", "unit 4", "bind 0"});
  texture_calls.clear();
  texture.drop(gl);
  texture.drop(gl);
  CHECK(texture_calls == TextureCalls{"delete 3"});
}

TEST_CASE("opengl: texture calls: each target has its dimensions, and missing ones are 1", "[opengl][texture]") {
  struct Shape {
    GLenum target;
    std::array<std::uint32_t, 3> size;
    const char *made, *filled;
  };
  const Shape shapes[] = {{GL_TEXTURE_1D, {5, 0, 0}, "1D 1 33326 5", "fill 0 0 5 6403 5126 0"},
                          {GL_TEXTURE_1D_ARRAY, {5, 3, 0}, "2D 1 33326 5 3", "fill 35864 0 0 0 5 3 6403 5126 0"},
                          {GL_TEXTURE_2D, {5, 3, 0}, "2D 1 33326 5 3", "fill 3553 0 0 0 5 3 6403 5126 0"},
                          {GL_TEXTURE_2D, {5, 0, 0}, "2D 1 33326 5 1", "fill 3553 0 0 0 5 1 6403 5126 0"},
                          {GL_TEXTURE_RECTANGLE, {5, 3, 0}, "2D 1 33326 5 3", "fill 34037 0 0 0 5 3 6403 5126 0"},
                          {GL_TEXTURE_3D, {5, 3, 2}, "3D 1 33326 5 3 2", "fill 0 0 0 0 5 3 2 6403 5126 0"},
                          {GL_TEXTURE_3D, {5, 3, 0}, "3D 1 33326 5 3 1", "fill 0 0 0 0 5 3 1 6403 5126 0"},
                          {GL_TEXTURE_2D_ARRAY, {5, 3, 2}, "3D 1 33326 5 3 2", "fill 0 0 0 0 5 3 2 6403 5126 0"},
                          {GL_TEXTURE_CUBE_MAP_ARRAY, {2, 2, 6}, "3D 1 33326 2 2 6", "fill 0 0 0 0 2 2 6 6403 5126 0"}};
  for (const auto& [target, size, made, filled] : shapes) {
    INFO(made << ", " << filled);
    const TextureCalls all = calls_of_first_job(target, texture_form(size));
    CHECK(has_call(all, made));
    CHECK(has_call(all, filled));
    CHECK(std::ranges::count_if(all, [](const std::string& call) { return call.starts_with("fill"); }) == 1);
  }
  const Gl gl = noting_driver();
  PixelTexture cube;
  texture_calls.clear();
  REQUIRE(cube.fill(gl, GL_TEXTURE_CUBE_MAP, texture_form({2, 2, 6}), 5, 96).ok());
  CHECK(has_call(texture_calls, "2D 1 33326 2 2"));
  for (const int face : {0, 1, 2, 3, 4, 5}) {
    CHECK(has_call(texture_calls,
                   "fill " + std::to_string(34069 + face) + " 0 0 0 2 2 6403 5126 " + std::to_string(16 * face)));
  }
  texture_calls.clear();
  cube.read_back(gl, 7);
  CHECK(texture_calls.front() == "unit 0");
  CHECK(has_call(texture_calls, "pack 7"));
  CHECK(has_call(texture_calls, "pack aligned 1"));
  for (const int face : {0, 1, 2, 3, 4, 5}) {
    CHECK(
        has_call(texture_calls, "read " + std::to_string(34069 + face) + " 0 6403 5126 " + std::to_string(16 * face)));
  }
  CHECK(texture_calls.end()[-2] == "pack 0");
  CHECK(texture_calls.back() == "bind 0");
}

TEST_CASE("opengl: texture calls: the size of each target has its own limits", "[opengl][texture]") {
  struct Limited {
    GLenum target;
    std::array<std::uint32_t, 3> fits;
    const char* most;
  };
  const Limited targets[] = {{GL_TEXTURE_1D, {16, 0, 0}, "16 on a side and 16 in depth or layers"},
                             {GL_TEXTURE_2D, {16, 16, 0}, "16 on a side and 16 in depth or layers"},
                             {GL_TEXTURE_3D, {8, 8, 8}, "8 on a side and 8 in depth or layers"},
                             {GL_TEXTURE_RECTANGLE, {12, 12, 0}, "12 on a side and 16 in depth or layers"},
                             {GL_TEXTURE_CUBE_MAP, {10, 10, 6}, "10 on a side and 16 in depth or layers"},
                             {GL_TEXTURE_CUBE_MAP_ARRAY, {10, 10, 6}, "10 on a side and 6 in depth or layers"},
                             {GL_TEXTURE_1D_ARRAY, {16, 6, 0}, "16 on a side and 6 in depth or layers"},
                             {GL_TEXTURE_2D_ARRAY, {16, 16, 6}, "16 on a side and 6 in depth or layers"}};
  for (const auto& [target, fits, most] : targets) {
    Status status;
    calls_of_first_job(target, texture_form(fits), &status);
    INFO(target << ", at most " << most << ": " << status.message);
    CHECK(status.ok());
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (fits[axis] == 0 || (target == GL_TEXTURE_CUBE_MAP && axis == 2)) continue;
      std::array<std::uint32_t, 3> more = fits;
      ++more[axis];
      const TextureCalls all = calls_of_first_job(target, texture_form(more), &status);
      CHECK(status.code == StatusCode::unsupported);
      const std::string depth = std::to_string(target == GL_TEXTURE_CUBE_MAP ? 1 : std::max(more[2], 1u));
      CHECK(status.message == "an image of " + std::to_string(more[0]) + " x " + std::to_string(std::max(more[1], 1u)) +
                                  " x " + depth + " texels, the device takes at most " + most);
      CHECK(all == TextureCalls{"unit 0", "bind 1", "bind 0", "delete 1"});
    }
  }
  Status status;
  TextureSource form = texture_form({32, 0, 0});
  CHECK(calls_of_first_job(GL_TEXTURE_BUFFER, form, &status) ==
        TextureCalls{"unit 0", "bind 1", "view 33326 5 0 96", "bind 0"});
  CHECK(status.ok());
  form.size[0] = 33;
  CHECK_FALSE(has_call(calls_of_first_job(GL_TEXTURE_BUFFER, form, &status), "view 33326 5 0 96"));
  CHECK(status.code == StatusCode::unsupported);
  CHECK(status.message == "an image of 33 texels in a buffer, the device takes at most 32");
}

TEST_CASE("opengl: texture calls: a texture of a buffer is the buffer, in each job", "[opengl][texture]") {
  const Gl gl = noting_driver();
  set_texture_limits();
  last_texture_name = 0;
  PixelTexture texture;
  REQUIRE(texture.fill(gl, GL_TEXTURE_BUFFER, texture_form({8, 0, 0}), 5, 32).ok());
  texture_calls.clear();
  REQUIRE(texture.fill(gl, GL_TEXTURE_BUFFER, texture_form({8, 0, 0}), 5, 32).ok());
  CHECK(texture_calls == TextureCalls{"unit 0", "bind 1", "bind 0"});
  texture_calls.clear();
  texture.read_back(gl, 5);
  CHECK(texture_calls.empty());
}

TEST_CASE("opengl: texture calls: filters and wraps have OpenGL's numbers", "[opengl][texture]") {
  const std::pair<TextureFilter, const char*> filters[] = {
      {TextureFilter::automatic, "9728"}, {TextureFilter::nearest, "9728"}, {TextureFilter::linear, "9729"}};
  for (const auto& [filter, number] : filters) {
    TextureSource form = texture_form({4, 4, 0});
    form.filter = filter;
    const TextureCalls all = calls_of_first_job(GL_TEXTURE_2D, form);
    CHECK(has_call(all, std::string("parameter 10240 ") + number));
    CHECK(has_call(all, std::string("parameter 10241 ") + number));
  }
  struct Wrap {
    TextureWrap wrap;
    const char *number, *name;
    bool of_rectangle;
  };
  for (const auto& [wrap, number, name, of_rectangle] :
       {Wrap{TextureWrap::clamp, "33071", "clamp", true}, Wrap{TextureWrap::repeat, "10497", "repeat", false},
        Wrap{TextureWrap::mirror, "33648", "mirror", false}, Wrap{TextureWrap::border, "33069", "border", true}}) {
    INFO(name);
    TextureSource form = texture_form({4, 4, 0});
    form.wrap = wrap;
    const TextureCalls all = calls_of_first_job(GL_TEXTURE_2D, form);
    for (const char* axis : {"10242", "10243", "32882"}) {
      CHECK(has_call(all, "parameter " + std::string(axis) + " " + number));
    }
    Status status;
    calls_of_first_job(GL_TEXTURE_RECTANGLE, form, &status);
    CHECK(status.ok() == of_rectangle);
    if (of_rectangle) continue;
    CHECK(status.code == StatusCode::invalid_argument);
    CHECK(status.message == "a rectangle texture (sampler2DRect) with wrap = \"" + std::string(name) +
                                "\", expected \"clamp\" or \"border\"");
  }
}

TEST_CASE("opengl: texture calls: a view of a buffer leaves its unit empty", "[opengl][texture]") {
  const Gl gl = noting_driver();
  const auto format = std::to_string(GL_RGBA32F), reads = std::to_string(GL_READ_ONLY);
  last_texture_name = 6;
  const auto calls_of = [&](const auto& done) {
    texture_calls.clear();
    done();
    return texture_calls;
  };
  TexelView view;
  CHECK(calls_of([&] { view.bind(gl, 3, View::texels, 5, 20); }) ==
        TextureCalls{"unit 3", "bind 7", "view " + format + " 5 0 32"});
  CHECK(calls_of([&] { TexelView::unbind(gl, 3, View::texels); }) == TextureCalls{"unit 3", "bind 0"});
  CHECK(calls_of([&] { view.bind(gl, 2, View::image, 5, 20); }) ==
        TextureCalls{"unit 2", "bind 7", "image 2 7 0 0 0 " + reads + " " + format});
  CHECK(calls_of([&] { TexelView::unbind(gl, 2, View::image); }) ==
        TextureCalls{"unit 2", "bind 0", "image 2 0 0 0 0 " + reads + " " + format});
  CHECK(calls_of([&] { TexelView::unbind(gl, 2, View::storage); }).empty());
  CHECK(calls_of([&] { view.drop(gl); }) == TextureCalls{"delete 7"});
  CHECK(calls_of([&] { view.drop(gl); }).empty());
}

TEST_CASE("opengl: texture calls: texels are passed by their channels and type", "[opengl][texture]") {
  const std::pair<DType, GLenum> types[] = {{DType::f32, 0x1406}, {DType::f16, 0x140B}, {DType::i8, 0x1400},
                                            {DType::i16, 0x1402}, {DType::i32, 0x1404}, {DType::u8, 0x1401},
                                            {DType::u16, 0x1403}, {DType::u32, 0x1405}};
  constexpr GLenum real[] = {red_format, rg_format, rgb_format, rgba_format};
  constexpr GLenum integer[] = {red_integer, rg_integer, rgb_integer, rgba_integer};
  const Gl gl = noting_driver();
  set_texture_limits();
  for (const auto& [dtype, type] : types) {
    for (const std::uint32_t channels : {1u, 2u, 3u, 4u}) {
      for (const bool is_integer : {false, true}) {
        TextureSource form = texture_form({2, 2, 0});
        form.dtype = dtype;
        form.channels = channels;
        form.format = is_integer ? ImageFormat::rgba8ui : ImageFormat::rgba8;
        const std::string words =
            std::to_string((is_integer ? integer : real)[channels - 1]) + " " + std::to_string(type);
        PixelTexture texture;
        texture_calls.clear();
        REQUIRE(texture.fill(gl, GL_TEXTURE_2D, form, 5, 64).ok());
        CHECK(has_call(texture_calls, "fill 3553 0 0 0 2 2 " + words + " 0"));
        texture_calls.clear();
        texture.read_back(gl, 5);
        CHECK(has_call(texture_calls, "read 3553 0 " + words + " 0"));
      }
    }
  }
}

TEST_CASE("opengl: texture calls: image formats have OpenGL's numbers", "[opengl][texture]") {
  using F = ImageFormat;
  const std::pair<F, GLenum> formats[] = {{F::rgba32f, 0x8814},
                                          {F::rgba16f, 0x881A},
                                          {F::rg32f, 0x8230},
                                          {F::rg16f, 0x822F},
                                          {F::r11f_g11f_b10f, 0x8C3A},
                                          {F::r32f, 0x822E},
                                          {F::r16f, 0x822D},
                                          {F::rgba16, 0x805B},
                                          {F::rgb10_a2, 0x8059},
                                          {F::rgba8, 0x8058},
                                          {F::rg16, 0x822C},
                                          {F::rg8, 0x822B},
                                          {F::r16, 0x822A},
                                          {F::r8, 0x8229},
                                          {F::rgba16_snorm, 0x8F9B},
                                          {F::rgba8_snorm, 0x8F97},
                                          {F::rg16_snorm, 0x8F99},
                                          {F::rg8_snorm, 0x8F95},
                                          {F::r16_snorm, 0x8F98},
                                          {F::r8_snorm, 0x8F94},
                                          {F::rgba32i, 0x8D82},
                                          {F::rgba16i, 0x8D88},
                                          {F::rgba8i, 0x8D8E},
                                          {F::rg32i, 0x823B},
                                          {F::rg16i, 0x8239},
                                          {F::rg8i, 0x8237},
                                          {F::r32i, 0x8235},
                                          {F::r16i, 0x8233},
                                          {F::r8i, 0x8231},
                                          {F::rgba32ui, 0x8D70},
                                          {F::rgba16ui, 0x8D76},
                                          {F::rgb10_a2ui, 0x906F},
                                          {F::rgba8ui, 0x8D7C},
                                          {F::rg32ui, 0x823C},
                                          {F::rg16ui, 0x823A},
                                          {F::rg8ui, 0x8238},
                                          {F::r32ui, 0x8236},
                                          {F::r16ui, 0x8234},
                                          {F::r8ui, 0x8232}};
  for (const auto& [format, number] : formats) {
    TextureSource form = texture_form({2, 2, 0});
    form.format = format;
    INFO(number);
    CHECK(has_call(calls_of_first_job(GL_TEXTURE_2D, form), "2D 1 " + std::to_string(number) + " 2 2"));
  }
}

}  // namespace kiln::opengl
