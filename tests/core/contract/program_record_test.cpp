// A ProgramInterface as bytes and back. That a member is missing does not compile; that it comes back is here.
#include <kiln/program_record.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kiln {
namespace {

struct Numbers {
  std::array<std::uint32_t, 3> grid{0, 0, 0};
  std::optional<float> limit;
  std::vector<std::uint16_t> halves;
  std::vector<std::string> names;
  bool last = false;
};

template <class Archive>
void fields(Archive& archive, Archived<Numbers> auto& numbers) {
  auto& [grid, limit, halves, names, last] = numbers;
  archive(grid, limit, halves, names, last);
}

template <class Struct>
std::vector<std::byte> record_of(const Struct& value) {
  std::vector<std::byte> bytes;
  RecordWriter{bytes}(value);
  return bytes;
}

template <class Struct>
std::optional<Struct> read_back(std::span<const std::byte> bytes) {
  Struct value;
  RecordReader read(bytes);
  read(value);
  return read.read_all() ? std::optional(value) : std::nullopt;
}

ProgramInterface sample() {
  ProgramResource block;
  block.kind = ResourceKind::storage_block;
  block.name = "Particles";
  block.number = 3;
  block.access = Access::read;
  block.element = ElementType::f32;
  block.bytes = 48;
  block.array_offset = 16;
  block.array_stride = 32;
  block.element_bytes = 28;
  block.struct_elements = true;
  block.open_ended = true;
  block.mentioned = false;
  block.handle = 2;
  ProgramResource uniform;
  uniform.kind = ResourceKind::uniform;
  uniform.name = "Params.turn";
  uniform.type = "mat3[2]";
  uniform.element = ElementType::f64;
  uniform.shape = {2, 3, 3};
  uniform.lengths = {2};
  uniform.matrix = true;
  uniform.has_default = true;
  uniform.block = "Params[1]";
  uniform.unusable = "a reason";
  ProgramResource image;
  image.kind = ResourceKind::image;
  image.texture = {2, true, true, false, true, ImageFormat::rgba8};
  ProgramResource unused;
  unused.name = "idle";
  return {{block, uniform, image}, {unused}};
}

}  // namespace

TEST_CASE("program record: every member of an interface comes back", "[contract][record]") {
  const auto read = read_back<ProgramInterface>(record_of(sample()));
  REQUIRE(read);
  REQUIRE(read->resources.size() == 3);
  const ProgramResource& block = read->resources[0];
  CHECK(block.kind == ResourceKind::storage_block);
  CHECK(block.name == "Particles");
  CHECK(block.number == 3u);
  CHECK(block.access == Access::read);
  CHECK(block.element == ElementType::f32);
  CHECK(block.bytes == 48);
  CHECK(block.array_offset == 16);
  CHECK(block.array_stride == 32);
  CHECK(block.element_bytes == 28);
  CHECK(block.struct_elements);
  CHECK(block.open_ended);
  CHECK_FALSE(block.mentioned);
  CHECK(block.handle == 2);
  const ProgramResource& uniform = read->resources[1];
  CHECK(uniform.type == "mat3[2]");
  CHECK_FALSE(uniform.number.has_value());
  CHECK(uniform.element == ElementType::f64);
  CHECK(uniform.shape == std::vector<std::uint32_t>{2, 3, 3});
  CHECK(uniform.lengths == std::vector<std::uint32_t>{2});
  CHECK(uniform.matrix);
  CHECK(uniform.has_default);
  CHECK(uniform.block == "Params[1]");
  CHECK(uniform.unusable == "a reason");
  const TextureShape& shape = read->resources[2].texture;
  CHECK(shape.dimensions == 2);
  CHECK(shape.layered);
  CHECK(shape.cube);
  CHECK_FALSE(shape.buffer);
  CHECK(shape.alone);
  CHECK(shape.format == ImageFormat::rgba8);
  REQUIRE(read->unused.size() == 1);
  CHECK(read->unused[0].name == "idle");
}

TEST_CASE("program record: arrays, lists and what may be absent come back", "[contract][record]") {
  for (const bool present : {true, false}) {
    Numbers numbers{{1, 2, 0xffffffff}, {}, {7, 65535}, {"", "one"}, present};
    if (present) numbers.limit = 0.5F;
    const auto read = read_back<Numbers>(record_of(numbers));
    REQUIRE(read);
    CHECK(read->grid == numbers.grid);
    CHECK(read->limit == numbers.limit);
    CHECK(read->halves == numbers.halves);
    CHECK(read->names == numbers.names);
    CHECK(read->last == present);
  }
}

TEST_CASE("program record: cut, longer, or with a length of what is not there, it is not read", "[contract][record]") {
  const std::vector<std::byte> whole = record_of(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size << " of " << whole.size() << " bytes");
    CHECK_FALSE(read_back<ProgramInterface>(std::span(whole).first(size)));
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  CHECK_FALSE(read_back<ProgramInterface>(longer));
  std::vector<std::byte> endless = whole;
  endless[3] = std::byte{0xff};  // the number of resources
  CHECK_FALSE(read_back<ProgramInterface>(endless));
  std::vector<std::byte> numbers = record_of(Numbers{{}, {}, {1, 2, 3}, {}, true});
  numbers[13] = std::byte{4};  // behind three counts and an absent number: the length of `halves`
  CHECK_FALSE(read_back<Numbers>(numbers));
  numbers[13] = std::byte{3};
  CHECK(read_back<Numbers>(numbers));
  numbers.back() = std::byte{2};  // no bool
  CHECK_FALSE(read_back<Numbers>(numbers));
}

}  // namespace kiln
