// Values of uniforms as components of their declared types, and where a block has them: bytes worked out by hand from
// the layout rules of GLSL.
#include <kiln/uniform_values.hpp>

#include <catch2/catch.hpp>

#include <cstring>
#include <limits>

using namespace kiln;

namespace {

using Shape32 = std::vector<std::uint32_t>;

ProgramResource uniform(ElementType element, Shape32 shape, bool matrix = false) {
  ProgramResource resource;
  resource.kind = ResourceKind::uniform;
  resource.name = "u";
  resource.element = element;
  resource.shape = std::move(shape);
  resource.matrix = matrix;
  return resource;
}

template <class To>
std::vector<To> read_as(const std::vector<std::byte>& bytes) {
  std::vector<To> values(bytes.size() / sizeof(To));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(To));
  return values;
}

Result<std::vector<std::byte>> components(const ProgramResource& resource, const std::vector<double>& numbers) {
  return uniform_components(resource, reinterpret_cast<const std::byte*>(numbers.data()),
                            UserKernelSpec::Uniform::Type::number);
}

Result<std::vector<std::byte>> components(const ProgramResource& resource, const std::vector<std::int64_t>& integers) {
  return uniform_components(resource, reinterpret_cast<const std::byte*>(integers.data()),
                            UserKernelSpec::Uniform::Type::integer);
}

template <class To>
std::vector<To> integer_as(ElementType element, std::int64_t value) {
  const auto found = components(uniform(element, {}), std::vector<std::int64_t>{value});
  REQUIRE(found);
  CHECK(found->size() == sizeof(To));
  return read_as<To>(*found);
}

bool holds(ElementType element, std::int64_t value) {
  const auto found = components(uniform(element, {}), std::vector<std::int64_t>{value});
  if (!found) CHECK(found.error().code == StatusCode::invalid_argument);
  return found.has_value();
}

// The block as floats, 0 where nothing was placed.
std::vector<float> placed(const ProgramResource& resource, const UniformPlace& place, std::size_t floats) {
  std::vector<std::byte> block(floats * sizeof(float));
  std::vector<double> values(values_in(resource));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  const auto found = components(resource, values);
  REQUIRE(found);
  place_in_block(resource, place, *found, block);
  return read_as<float>(block);
}

}  // namespace

TEST_CASE("uniform values: integers become the declared type, if it holds them", "[contract]") {
  using std::numeric_limits;
  CHECK(integer_as<std::int32_t>(ElementType::i32, -7) == std::vector<std::int32_t>{-7});
  CHECK(integer_as<std::uint32_t>(ElementType::u32, 4294967295) == std::vector<std::uint32_t>{4294967295u});
  CHECK(integer_as<std::int64_t>(ElementType::i64, -5) == std::vector<std::int64_t>{-5});
  CHECK(integer_as<std::uint64_t>(ElementType::u64, 5) == std::vector<std::uint64_t>{5});
  CHECK(integer_as<std::int8_t>(ElementType::i8, -7) == std::vector<std::int8_t>{-7});
  CHECK(integer_as<std::uint8_t>(ElementType::u8, 200) == std::vector<std::uint8_t>{200});
  CHECK(integer_as<std::int16_t>(ElementType::i16, -700) == std::vector<std::int16_t>{-700});
  CHECK(integer_as<std::uint16_t>(ElementType::u16, 60000) == std::vector<std::uint16_t>{60000});
  CHECK(integer_as<std::uint16_t>(ElementType::f16, -3) == std::vector<std::uint16_t>{0xc200});
  CHECK(integer_as<float>(ElementType::f32, 3) == std::vector<float>{3});
  CHECK(integer_as<double>(ElementType::f64, 3) == std::vector<double>{3});
  CHECK(integer_as<std::int32_t>(ElementType::boolean, 0) == std::vector<std::int32_t>{0});
  CHECK(integer_as<std::int32_t>(ElementType::boolean, 1) == std::vector<std::int32_t>{1});
  CHECK(integer_as<std::int32_t>(ElementType::boolean, -9) == std::vector<std::int32_t>{1});

  CHECK(holds(ElementType::i32, 2147483647));
  CHECK_FALSE(holds(ElementType::i32, 2147483648));
  CHECK(holds(ElementType::i32, -2147483648));
  CHECK_FALSE(holds(ElementType::i32, -2147483649));
  CHECK_FALSE(holds(ElementType::u32, -1));
  CHECK_FALSE(holds(ElementType::u32, 4294967296));
  CHECK_FALSE(holds(ElementType::u64, -1));
  CHECK_FALSE(holds(ElementType::i8, 128));
  CHECK_FALSE(holds(ElementType::u8, 256));
  CHECK_FALSE(holds(ElementType::i16, -32769));
  CHECK_FALSE(holds(ElementType::u16, 65536));
  CHECK(holds(ElementType::f16, 2048));
  CHECK_FALSE(holds(ElementType::f16, 2049));
  CHECK_FALSE(holds(ElementType::f16, 65536));
  CHECK(holds(ElementType::f32, 16777216));
  CHECK_FALSE(holds(ElementType::f32, 16777217));
  CHECK(holds(ElementType::f64, 9007199254740992));
  CHECK_FALSE(holds(ElementType::f64, 9007199254740993));
}

TEST_CASE("uniform values: numbers become the nearest half", "[contract]") {
  const ProgramResource half = uniform(ElementType::f16, {4});
  const auto found = components(half, std::vector<double>{0.1, -2, 65504, HUGE_VAL});
  REQUIRE(found);
  CHECK(read_as<std::uint16_t>(*found) == std::vector<std::uint16_t>{0x2e66, 0xc000, 0x7bff, 0x7c00});
  CHECK_THAT(components(uniform(ElementType::f16, {}), std::vector<double>{65505}).error().message,
             Catch::Contains("out of range (expected at most 65504.0, the largest float16)"));
}

TEST_CASE("uniform values: numbers become float or double", "[contract]") {
  const float largest = std::numeric_limits<float>::max();
  const auto found = components(uniform(ElementType::f32, {3}), std::vector<double>{0.5, -2, largest});
  REQUIRE(found);
  CHECK(read_as<float>(*found) == std::vector<float>{0.5f, -2, largest});
  CHECK(read_as<float>(*components(uniform(ElementType::f32, {}), std::vector<double>{HUGE_VAL})) ==
        std::vector<float>{HUGE_VALF});
  CHECK(read_as<double>(*components(uniform(ElementType::f64, {2}), std::vector<double>{1e300, -0.1})) ==
        std::vector<double>{1e300, -0.1});
  for (const double beyond : {1e39, -1e39}) {
    CHECK(components(uniform(ElementType::f32, {}), std::vector<double>{beyond}).error().code ==
          StatusCode::invalid_argument);
  }
  CHECK(components(uniform(ElementType::i32, {}), std::vector<double>{1}).error().code == StatusCode::internal);
  CHECK(components(uniform(ElementType::unknown, {}), std::vector<std::int64_t>{1}).error().code ==
        StatusCode::internal);
}

TEST_CASE("uniform values: a wrong value is refused with the name of its key", "[contract]") {
  ProgramResource resource = uniform(ElementType::u32, {2});
  resource.name = "sizes";
  const std::vector<std::int64_t> wrong{1, -1};
  CHECK(components(resource, wrong).error().message ==
        "uniforms.sizes: value -1 is out of range (expected 0 to 4294967295)");
  resource.name = "Params.sizes";
  resource.block = "Params";
  CHECK_THAT(components(resource, wrong).error().message, Catch::StartsWith("blocks.Params.sizes: value -1"));
}

TEST_CASE("uniform values: matrices are given row by row and passed on column by column", "[contract]") {
  const ProgramResource matrices = uniform(ElementType::f32, {2, 3, 2}, true);  // two of three rows, two columns
  const auto found = components(matrices, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  REQUIRE(found);
  CHECK(read_as<float>(*found) == std::vector<float>{1, 3, 5, 2, 4, 6, 7, 9, 11, 8, 10, 12});
  const auto vectors = components(uniform(ElementType::f32, {2, 3}), std::vector<double>{1, 2, 3, 4, 5, 6});
  REQUIRE(vectors);
  CHECK(read_as<float>(*vectors) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("uniform values: a block has scalars and vectors at their offset and stride", "[contract]") {
  CHECK(placed(uniform(ElementType::f32, {}), {1, 8, 0, 0, false}, 4) == std::vector<float>{0, 0, 1, 0});
  CHECK(placed(uniform(ElementType::f32, {3}), {1, 4, 0, 0, false}, 5) == std::vector<float>{0, 1, 2, 3, 0});
  CHECK(placed(uniform(ElementType::f32, {3}), {1, 4, 0, 8, true}, 5) == std::vector<float>{0, 1, 2, 3, 0});
  CHECK(placed(uniform(ElementType::f32, {2, 3}), {2, 16, 16, 0, false}, 12) ==
        std::vector<float>{0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0});
  CHECK(placed(uniform(ElementType::f32, {3}), {3, 0, 8, 0, false}, 6) == std::vector<float>{1, 0, 2, 0, 3, 0});
}

TEST_CASE("uniform values: a block has matrices by columns or by rows", "[contract]") {
  const ProgramResource one = uniform(ElementType::f32, {3, 2}, true);  // 1 2, 3 4, 5 6
  CHECK(placed(one, {1, 0, 0, 16, false}, 8) == std::vector<float>{1, 3, 5, 0, 2, 4, 6, 0});
  CHECK(placed(one, {1, 4, 0, 8, true}, 8) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 0});
  CHECK(placed(one, {1, 0, 0, 16, true}, 12) == std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0});
  const ProgramResource two = uniform(ElementType::f32, {2, 2, 2}, true);  // 1 2, 3 4 and 5 6, 7 8
  CHECK(placed(two, {2, 0, 16, 8, false}, 8) == std::vector<float>{1, 3, 2, 4, 5, 7, 6, 8});
  CHECK(placed(two, {2, 4, 20, 8, true}, 10) == std::vector<float>{0, 1, 2, 3, 4, 0, 5, 6, 7, 8});
}

TEST_CASE("uniform values: what leaves its block is not written", "[contract]") {
  CHECK(placed(uniform(ElementType::f32, {4}), {4, 0, 8, 0, false}, 5) == std::vector<float>{1, 0, 2, 0, 3});
  std::vector<std::byte> block(16);
  place_in_block(uniform(ElementType::f32, {0}), {1, 0, 4, 0, false}, {}, block);
  CHECK(read_as<float>(block) == std::vector<float>{0, 0, 0, 0});
}
