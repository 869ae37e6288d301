// Which tensor an image or sampler takes, and as what: tables written by hand from the formats' definitions.
#include "contract/resource_checks.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace kiln;

namespace {

constexpr DType types[] = {DType::boolean, DType::u8,  DType::i8,  DType::u16, DType::i16, DType::u32,
                           DType::i32,     DType::u64, DType::i64, DType::f16, DType::f32, DType::f64};

ProgramResource texture(ResourceKind kind, ElementType element, std::uint32_t dimensions = 2) {
  ProgramResource resource;
  resource.kind = kind;
  resource.name = "t";
  resource.element = element;
  resource.texture.dimensions = dimensions;
  return resource;
}

UserKernelSpec::Binding given(Access access, DType dtype, Shape shape, ImageFormat format = ImageFormat::declared) {
  UserKernelSpec::Binding binding;
  binding.kind = BindingKind::image;
  binding.access = access;
  binding.dtype = dtype;
  binding.shape = std::move(shape);
  binding.format = format;
  return binding;
}

using Formats = std::set<std::string>;

// The formats of four channels that take a tensor of the type. shown: a result becomes a PNG.
std::map<DType, Formats> accepted(ElementType element, Access access, bool shown = true) {
  std::map<DType, Formats> found;
  for (const DType type : types) {
    for (std::size_t i = 1; i < image_formats; ++i) {
      const auto format = static_cast<ImageFormat>(i);
      if (facts_of(format).channels != 4) continue;
      UserKernelSpec::Binding binding = given(access, type, {2, 3, 4}, format);
      binding.shown = shown && access != Access::read;
      const auto match = match_texture(texture(ResourceKind::image, element), binding);
      if (match) {
        CHECK(match->format == format);
        found[type].insert(std::string(facts_of(format).name));
      }
    }
  }
  return found;
}

std::string refusal(const ProgramResource& resource, const UserKernelSpec::Binding& binding) {
  const auto match = match_texture(resource, binding);
  REQUIRE_FALSE(match);
  return match.error().text();
}

// The name of the format that a tensor has by itself; empty: there is none.
std::string natural(ResourceKind kind, ElementType element, DType type, std::int64_t channels) {
  const auto match = match_texture(texture(kind, element), given(Access::read, type, {2, 3, channels}));
  return match ? std::string(facts_of(match->format).name) : std::string();
}

}  // namespace

TEST_CASE("texture match: formats that hold every element of a tensor that is read", "[contract]") {
  CHECK(accepted(ElementType::f32, Access::read) ==
        std::map<DType, Formats>{{DType::u8, {"rgba8", "rgba16", "rgba16f", "rgba32f"}},
                                 {DType::u16, {"rgba16", "rgba32f"}},
                                 {DType::i8, {"rgba8_snorm", "rgba32f"}},
                                 {DType::i16, {"rgba16_snorm", "rgba32f"}},
                                 {DType::f16, {"rgba16f", "rgba32f"}},
                                 {DType::f32, {"rgba32f"}}});
  CHECK(accepted(ElementType::i32, Access::read) ==
        std::map<DType, Formats>{{DType::i8, {"rgba8i", "rgba16i", "rgba32i"}},
                                 {DType::i16, {"rgba16i", "rgba32i"}},
                                 {DType::i32, {"rgba32i"}}});
  CHECK(accepted(ElementType::u32, Access::read) ==
        std::map<DType, Formats>{{DType::u8, {"rgba8ui", "rgba16ui", "rgba32ui"}},
                                 {DType::u16, {"rgba16ui", "rgba32ui"}},
                                 {DType::u32, {"rgba32ui"}}});
}

TEST_CASE("texture match: formats whose texels come back in a tensor that is written", "[contract]") {
  const Formats pictures{"rgba8", "rgba16", "rgba16f", "rgba32f", "rgb10_a2"};  // samples of 0 to 1
  CHECK(accepted(ElementType::f32, Access::write) == std::map<DType, Formats>{{DType::u8, pictures},
                                                                              {DType::u16, pictures},
                                                                              {DType::i8, {"rgba8_snorm"}},
                                                                              {DType::i16, {"rgba16_snorm"}},
                                                                              {DType::f16, {"rgba16f"}},
                                                                              {DType::f32, {"rgba32f"}}});
  CHECK(accepted(ElementType::i32, Access::write) ==
        std::map<DType, Formats>{{DType::i8, {"rgba8i"}}, {DType::i16, {"rgba16i"}}, {DType::i32, {"rgba32i"}}});
  CHECK(accepted(ElementType::u32, Access::write) == std::map<DType, Formats>{{DType::u8, {"rgba8ui"}},
                                                                              {DType::u16, {"rgba16ui", "rgb10_a2ui"}},
                                                                              {DType::u32, {"rgba32ui"}}});
  // Not clamped and rounded where nobody sees it.
  CHECK(accepted(ElementType::f32, Access::write, false) ==
        std::map<DType, Formats>{{DType::u8, {"rgba8"}},
                                 {DType::u16, {"rgba16", "rgb10_a2"}},
                                 {DType::i8, {"rgba8_snorm"}},
                                 {DType::i16, {"rgba16_snorm"}},
                                 {DType::f16, {"rgba16f"}},
                                 {DType::f32, {"rgba32f"}}});
  const Formats both{"rgba8", "rgba16", "rgba16f", "rgba32f"};  // what is packed cannot be read
  CHECK(accepted(ElementType::f32, Access::read_write)[DType::u8] == both);
  // What is not written comes back as it was.
  CHECK(accepted(ElementType::f32, Access::read_write)[DType::u16] == Formats{"rgba16", "rgba32f"});
}

TEST_CASE("texture match: without a format the one of the tensor", "[contract]") {
  using enum ResourceKind;
  CHECK(natural(image, ElementType::f32, DType::u8, 1) == "r8");
  CHECK(natural(image, ElementType::f32, DType::u8, 2) == "rg8");
  CHECK(natural(image, ElementType::f32, DType::u8, 4) == "rgba8");
  CHECK(natural(image, ElementType::f32, DType::u16, 4) == "rgba16");
  CHECK(natural(image, ElementType::f32, DType::i8, 4) == "rgba8_snorm");
  CHECK(natural(image, ElementType::f32, DType::f16, 2) == "rg16f");
  CHECK(natural(image, ElementType::f32, DType::f32, 1) == "r32f");
  CHECK(natural(image, ElementType::i32, DType::i16, 1) == "r16i");
  CHECK(natural(image, ElementType::u32, DType::u16, 4) == "rgba16ui");
  CHECK(natural(image, ElementType::f32, DType::f32, 3).empty());  // only the packed one has three
  CHECK(natural(sampler, ElementType::f32, DType::u8, 3) == "rgba8");
  CHECK(natural(sampler, ElementType::f32, DType::u8, 2) == "rg8");
  CHECK(natural(sampler, ElementType::u32, DType::u8, 3) == "rgba8ui");
  CHECK(natural(sampler, ElementType::i32, DType::f32, 4).empty());
  CHECK(natural(sampler, ElementType::f32, DType::f64, 4).empty());
  CHECK_THAT(refusal(texture(image, ElementType::f32), given(Access::read, DType::f64, {2, 3})),
             Catch::StartsWith("invalid_argument: has no format for float64 [2, 3]. Add format"));
  CHECK(refusal(texture(sampler, ElementType::i32), given(Access::read, DType::f32, {2, 3})) ==
        "invalid_argument: takes signed integers, and the job provides float32 [2, 3]");
}

TEST_CASE("texture match: sizes and channels of the declared dimensions", "[contract]") {
  struct Sized {
    std::uint32_t dimensions;
    bool layered, cube;
    Shape shape;
    std::array<std::uint32_t, 3> size;
    std::uint32_t channels;
  };
  const std::vector<Sized> all{
      {1, false, false, {5}, {5, 0, 0}, 1},         {1, false, false, {5, 2}, {5, 0, 0}, 2},
      {2, false, false, {3, 5}, {5, 3, 0}, 1},      {2, false, false, {3, 5, 4}, {5, 3, 0}, 4},
      {3, false, false, {2, 3, 5}, {5, 3, 2}, 1},   {3, false, false, {2, 3, 5, 1}, {5, 3, 2}, 1},
      {1, true, false, {7, 5}, {5, 7, 0}, 1},       {2, true, false, {7, 3, 5, 2}, {5, 3, 7}, 2},
      {2, false, true, {6, 5, 5, 4}, {5, 5, 6}, 4}, {2, true, true, {12, 5, 5}, {5, 5, 12}, 1}};
  for (const Sized& one : all) {
    CAPTURE(one.dimensions, one.layered, one.cube, one.shape);
    ProgramResource resource = texture(ResourceKind::sampler, ElementType::f32, one.dimensions);
    resource.texture.layered = one.layered;
    resource.texture.cube = one.cube;
    const auto match = match_texture(resource, given(Access::read, DType::f32, one.shape));
    REQUIRE(match);
    CHECK(match->size == one.size);
    CHECK(match->channels == one.channels);
    CHECK(match->dtype == DType::f32);
    CHECK(match->access == Access::read);
  }
}

TEST_CASE("texture match: a picture is one layer, and its channels are no side", "[contract]") {
  auto picture = given(Access::read, DType::u8, {480, 640, 4});
  picture.picture = true;
  for (const bool layered : {false, true}) {
    ProgramResource resource = texture(ResourceKind::sampler, ElementType::f32, layered ? 2 : 3);
    resource.texture.layered = layered;
    const auto match = match_texture(resource, picture);
    REQUIRE(match);
    CHECK(match->size == std::array<std::uint32_t, 3>{640, 480, 1});
    CHECK(match->channels == 4);
  }
  CHECK(match_texture(texture(ResourceKind::sampler, ElementType::f32), picture)->channels == 4);
  picture.shape = {24, 4, 4};
  ProgramResource cube = texture(ResourceKind::sampler, ElementType::f32);
  cube.texture.cube = true;
  CHECK_THAT(refusal(cube, picture),
             Catch::Contains("takes [6 x cubes, H, W], optionally with a last dimension of 1 to 4 channels") &&
                 Catch::Contains("provides a picture, uint8 [24, 4, 4]"));
}

TEST_CASE("texture match: sizes that do not fit are refused with the expected form", "[contract]") {
  const auto refused = [](std::uint32_t dimensions, bool layered, bool cube, const Shape& shape) {
    ProgramResource resource = texture(ResourceKind::sampler, ElementType::f32, dimensions);
    resource.texture.layered = layered;
    resource.texture.cube = cube;
    return refusal(resource, given(Access::read, DType::f32, shape));
  };
  using Catch::Contains;
  CHECK_THAT(refused(1, false, false, {5, 3, 2}),
             Contains("takes [W], optionally with a last dimension of 1 to 4 channels") &&
                 Contains("provides float32 [5, 3, 2]"));
  CHECK_THAT(refused(2, false, false, {5}),
             Contains("takes [H, W], optionally with a last dimension of 1 to 4 channels"));
  CHECK_THAT(refused(2, false, false, {5, 4, 5}), Contains("1 to 4 channels"));
  CHECK_THAT(refused(2, false, false, {5, 4, 0}), Contains("1 to 4 channels"));
  CHECK_THAT(refused(3, false, false, {5, 4}),
             Contains("takes [D, H, W], optionally with a last dimension of 1 to 4 channels"));
  CHECK_THAT(refused(1, true, false, {5}),
             Contains("takes [layers, W], optionally with a last dimension of 1 to 4 channels"));
  CHECK_THAT(refused(2, true, false, {5, 5}),
             Contains("takes [layers, H, W], optionally with a last dimension of 1 to 4 channels"));
  CHECK_THAT(refused(2, false, true, {6, 5}),
             Contains("takes [6 x cubes, H, W], optionally with a last dimension of 1 to 4 channels"));
  CHECK_THAT(refused(2, false, true, {6, 5, 4}), Contains("takes square faces, six (size = [W, W, 6]), and"));
  CHECK_THAT(refused(2, false, true, {12, 5, 5}), Contains("takes square faces, six (size = [W, W, 6]), and"));
  CHECK_THAT(refused(2, true, true, {7, 5, 5}),
             Contains("takes square faces, six for each cube (size = [W, W, 6 x cubes]), and"));
  CHECK_THAT(refused(0, false, false, {5}), Contains("is declared with 0 dimensions, expected 1 to 3"));
  CHECK_THAT(refused(3, true, false, {5, 5, 5, 5}), Contains("is declared with 3 dimensions and layers"));
}

TEST_CASE("texture match: formats that do not fit are refused with both sides", "[contract]") {
  using Catch::Contains;
  ProgramResource image = texture(ResourceKind::image, ElementType::f32);
  const auto refused = [&](Access access, DType dtype, std::int64_t channels, ImageFormat format) {
    return refusal(image, given(access, dtype, {2, 3, channels}, format));
  };
  CHECK_THAT(refused(Access::read, DType::u8, 4, ImageFormat::rgba8i),
             Contains("takes floating-point numbers, and the format is rgba8i"));
  CHECK_THAT(refused(Access::write, DType::u8, 3, ImageFormat::rgba8),
             Contains("has format rgba8 with 4 channels") && Contains("uint8 [2, 3, 3] with 3 channels. Add format"));
  CHECK_THAT(refused(Access::read, DType::u8, 4, ImageFormat::rg8), Contains("so some channels would be lost"));
  CHECK(match_texture(image, given(Access::read, DType::u8, {2, 3, 2}, ImageFormat::rgba8)));  // the others are 0, 0, 1
  CHECK_THAT(refused(Access::read, DType::u16, 4, ImageFormat::rgb10_a2),
             Catch::StartsWith("unsupported: ") && Contains("can only be an output"));
  CHECK_THAT(refused(Access::read, DType::u16, 4, ImageFormat::rgba8),
             Contains("provides uint16, which cannot be converted without loss (expected uint8)"));
  image.texture.format = ImageFormat::rgba16f;
  CHECK_THAT(refused(Access::read, DType::f16, 4, ImageFormat::rgba8),
             Contains("is declared as rgba16f, and the job has format = \"rgba8\""));
  CHECK(match_texture(image, given(Access::read, DType::f16, {2, 3, 4}, ImageFormat::rgba16f)));
  CHECK(match_texture(image, given(Access::read, DType::u8, {2, 3, 4}))->format == ImageFormat::rgba16f);
  CHECK_THAT(
      refusal(texture(ResourceKind::image, ElementType::i32), given(Access::read, DType::u8, {2, 3}, ImageFormat::r8)),
      Contains("takes signed integers, and the format is r8"));
  CHECK_THAT(
      refusal(texture(ResourceKind::image, ElementType::u32), given(Access::read, DType::i8, {2, 3}, ImageFormat::r8i)),
      Contains("takes unsigned integers, and the format is r8i"));
}

TEST_CASE("texture match: a texture in a buffer is the tensor's own bytes, so its format is the tensor's",
          "[contract]") {
  using Catch::Contains;
  ProgramResource line = texture(ResourceKind::sampler, ElementType::f32, 1);
  line.texture.buffer = true;
  CHECK(match_texture(line, given(Access::read, DType::f32, {5, 4})));
  CHECK(match_texture(line, given(Access::read, DType::u8, {5})));
  CHECK_THAT(refusal(line, given(Access::read, DType::f32, {5, 3})),
             Contains("is a buffer texture and has format rgba32f, which is float32 with 4 channels, and the job "
                      "provides float32 [5, 3] with 3 channels"));
  CHECK_THAT(refusal(line, given(Access::read, DType::u8, {5, 4}, ImageFormat::rgba32f)),
             Contains("has format rgba32f") && Contains("uint8 [5, 4] with 4 channels"));
  line.kind = ResourceKind::image;
  line.texture.format = ImageFormat::rgba32f;
  CHECK_THAT(refusal(line, given(Access::read, DType::f32, {5})),
             Contains("4 channels") && Contains("with 1 channels"));
  CHECK_THAT(refusal(line, given(Access::write, DType::u8, {5, 4})), Contains("float32 with 4 channels"));
}

TEST_CASE("texture match: integers are read without a filter, others with one", "[contract]") {
  auto binding = given(Access::read, DType::u8, {2, 3});
  binding.wrap = TextureWrap::mirror;
  const ProgramResource numbers = texture(ResourceKind::sampler, ElementType::f32);
  const ProgramResource integers = texture(ResourceKind::sampler, ElementType::u32);
  CHECK(match_texture(numbers, binding)->filter == TextureFilter::linear);
  CHECK(match_texture(integers, binding)->filter == TextureFilter::nearest);
  CHECK(match_texture(numbers, binding)->wrap == TextureWrap::mirror);
  binding.filter = TextureFilter::nearest;
  CHECK(match_texture(numbers, binding)->filter == TextureFilter::nearest);
  CHECK(match_texture(integers, binding)->filter == TextureFilter::nearest);
  binding.filter = TextureFilter::linear;
  CHECK(match_texture(numbers, binding)->filter == TextureFilter::linear);
  CHECK_THAT(refusal(integers, binding), Catch::Contains("which filter = \"linear\" does not support"));
}

TEST_CASE("texture match: errors name the role of the binding in the job", "[contract]") {
  struct Word {
    BindingKind kind;
    Access access;
    std::string expected;
  };
  const std::vector<Word> words{{BindingKind::value, Access::read, "a number"},
                                {BindingKind::local, Access::read_write, "local memory"},
                                {BindingKind::image, Access::read, "an image"},
                                {BindingKind::image, Access::write, "an image"},
                                {BindingKind::sampler, Access::read, "a sampler"},
                                {BindingKind::sampler, Access::write, "a sampler"},
                                {BindingKind::sampler_state, Access::read, "a sampler without a texture"},
                                {BindingKind::buffer, Access::read, "an input"},
                                {BindingKind::buffer, Access::write, "an output"},
                                {BindingKind::buffer, Access::read_write, "an inout"}};
  for (const Word& word : words) {
    auto binding = given(word.access, DType::f32, {2, 3});
    binding.kind = word.kind;
    CHECK(given_as(binding) == word.expected);
    ProgramResource resource = texture(ResourceKind::sampler, ElementType::f32);
    const Status status = check_access(resource, binding, true);
    if (word.access == Access::read) {
      CHECK(status.text() == "ok");
    } else {
      CHECK(status.text() == "invalid_argument: is read-only in the program, and the job provides " + word.expected +
                                 ". Provide an input");
    }
  }
}
