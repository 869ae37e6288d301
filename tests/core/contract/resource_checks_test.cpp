// Whether what a job provides fits one resource, case by case: element types, lengths of uniforms, names, sizes.
#include "contract/resource_checks.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace kiln;

namespace {

ProgramResource resource_of(ResourceKind kind, std::string name, ElementType element = ElementType::f32) {
  ProgramResource made;
  made.kind = kind;
  made.name = std::move(name);
  made.element = element;
  return made;
}

UserKernelSpec::Binding given_buffer(Access access, DType dtype, Shape shape) {
  UserKernelSpec::Binding made{access, size_of(dtype)};
  made.dtype = dtype;
  for (const std::int64_t extent : shape) made.bytes *= static_cast<std::uint64_t>(extent);
  made.shape = std::move(shape);
  return made;
}

constexpr std::uint32_t no_limit = std::numeric_limits<std::uint32_t>::max();

std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_of(const std::vector<Extent>& extents) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Extent& extent : extents) pairs.emplace_back(extent.least, extent.most);
  return pairs;
}

}  // namespace

TEST_CASE("resource checks: the types of a tensor that an element may be read from", "[contract]") {
  using enum DType;
  // uint8 fits all: the bytes as they are.
  const std::pair<ElementType, std::vector<DType>> cases[] = {
      {ElementType::boolean, {i32, u32}},
      {ElementType::i8, {i8, boolean}},
      {ElementType::u8, {i8, boolean}},
      {ElementType::i16, {i16, u16}},
      {ElementType::u16, {i16, u16}},
      {ElementType::i32, {i32, u32}},
      {ElementType::u32, {i32, u32, f16}},
      {ElementType::i64, {i32, u32, i64, u64}},
      {ElementType::u64, {i32, u32, i64, u64}},
      {ElementType::f16, {f16}},
      {ElementType::f32, {f32}},
      {ElementType::f64, {f64}},
      {ElementType::unknown, {f32, f64, i8, i16, u16, i32, u32, i64, u64, f16, boolean}},
  };
  const std::map<ElementType, std::string> told = {
      {ElementType::boolean,
       "holds 32-bit booleans, and the job provides float64, expected int32, uint32, or uint8 (its "
       "bytes). Convert an array in memory to uint32 before the call. For a file, add dtype = "
       "\"uint32\", which converts the file if nothing is lost"},
      {ElementType::i8,
       "holds 8-bit integers, and the job provides float64, expected int8, bool, or uint8. Convert an "
       "array in memory to int8 before the call. For a file, add dtype = \"int8\", which converts the "
       "file if nothing is lost"},
      {ElementType::u16,
       "holds 16-bit integers, and the job provides float64, expected int16, uint16, or uint8 (its "
       "bytes). Convert an array in memory to uint16 before the call. For a file, add dtype = "
       "\"uint16\", which converts the file if nothing is lost"},
      {ElementType::i64,
       "holds 64-bit integers, and the job provides float64, expected int32, uint32, int64, uint64, or "
       "uint8 (its bytes). Convert an array in memory to int64 before the call. For a file, add dtype = "
       "\"int64\", which converts the file if nothing is lost"},
      {ElementType::f16,
       "holds float16, and the job provides float64, expected float16, or uint8 (its bytes). Convert an "
       "array in memory to float16 before the call. For a file, add dtype = \"float16\", which converts "
       "the file if nothing is lost"},
  };
  for (const auto& [element, types] : cases) {
    const ProgramResource block = resource_of(ResourceKind::storage_block, "A", element);
    for (auto type = static_cast<int>(f32); type <= static_cast<int>(boolean); ++type) {
      const auto dtype = static_cast<DType>(type);
      INFO("element " << static_cast<int>(element) << " from " << numpy_name(dtype));
      const bool expected = dtype == u8 || std::ranges::count(types, dtype) != 0;
      const Status status = check_buffer(block, given_buffer(Access::read, dtype, {4}), false);
      CHECK(status.ok() == expected);
      if (dtype == f64 && told.contains(element)) CHECK(status.message == told.at(element));
    }
    CHECK(check_buffer(block, given_buffer(Access::read, invalid, {4}), false).ok());
  }
  const Status written =
      check_buffer(resource_of(ResourceKind::storage_block, "A"), given_buffer(Access::write, i32, {4}), false);
  CHECK_THAT(written.message, Catch::EndsWith("For a file, add dtype = \"float32\""));
}

TEST_CASE("resource checks: a resource is read, written or both", "[contract]") {
  ProgramResource block = resource_of(ResourceKind::storage_block, "A");
  const auto told = [&](Access access, bool all_read_only) {
    return check_access(block, given_buffer(access, DType::f32, {4}), all_read_only).message;
  };
  for (const Access access : {Access::read, Access::write, Access::read_write}) CHECK(told(access, false).empty());
  CHECK(told(Access::read, true).empty());
  CHECK(told(Access::write, true) == "is read-only in the program, and the job provides an output. Provide an input");
  CHECK(told(Access::read_write, true) ==
        "is read-only in the program, and the job provides an inout. Provide an input");
  block.access = Access::write;
  CHECK(told(Access::read, false) ==
        "is write-only in the program, and the job provides an input. Provide an output or inout");
  CHECK(told(Access::write, false).empty());
  CHECK(told(Access::read_write, false).empty());
}

TEST_CASE("resource checks: a value has exactly its bytes and a type that fits", "[contract]") {
  ProgramResource value = resource_of(ResourceKind::value_argument, "gain");
  value.bytes = 4;
  UserKernelSpec::Binding given = given_buffer(Access::read, DType::f32, {1});
  given.kind = BindingKind::value;
  CHECK(check_value(value, given).ok());
  for (const std::uint64_t bytes : {3u, 5u}) {
    given.bytes = bytes;
    CHECK(check_value(value, given).message ==
          "takes 4 bytes, and the job provides " + std::to_string(bytes) + " bytes");
  }
  given.bytes = 4;
  given.dtype = DType::i32;
  CHECK_THAT(check_value(value, given).message,
             Catch::StartsWith("is of float32, and the job provides int32, expected"));
  given = given_buffer(Access::read, DType::f32, {1});
  CHECK(check_value(value, given).ok());
  const std::string by_value = "is passed by value, and the job provides ";
  for (const auto& [access, word] :
       {std::pair{Access::write, "an output"}, std::pair{Access::read_write, "an inout"}}) {
    CHECK_THAT(check_value(value, given_buffer(access, DType::f32, {1})).message, Catch::StartsWith(by_value + word));
  }
  given.kind = BindingKind::local;
  CHECK_THAT(check_value(value, given).message, Catch::StartsWith(by_value + "local memory"));
}

TEST_CASE("resource checks: names of what a job provides and of what a program declares", "[contract]") {
  UserKernelSpec::Binding given = given_buffer(Access::read, DType::f32, {1});
  CHECK(given_as(given) == "an input");
  CHECK(described(given, 3) == "bindings[3]");
  given.name = "Letters";
  CHECK(described(given, 3) == "bindings[3] (name = \"Letters\")");
  given.number = 7;
  CHECK(described(given, 3) == "bindings[3] (name = \"Letters\") (binding = 7)");
  const std::pair<BindingKind, std::pair<std::string, std::string>> kinds[] = {
      {BindingKind::value, {"a number", "bindings[0] (name = \"x\")"}},
      {BindingKind::local, {"local memory", "bindings[0] (name = \"x\")"}},
      {BindingKind::image, {"an image", "images.x"}},
      {BindingKind::sampler, {"a sampler", "samplers.x"}},
      {BindingKind::sampler_state, {"a sampler without a texture", "samplers.x"}},
  };
  for (const auto& [kind, words] : kinds) {
    UserKernelSpec::Binding binding;
    binding.kind = kind;
    binding.name = "x";
    CHECK(given_as(binding) == words.first);
    CHECK(described(binding, 0) == words.second);
  }
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1) == "1 byte");
  CHECK(bytes_text(2) == "2 bytes");

  ProgramResource block = resource_of(ResourceKind::storage_block, "Letters");
  CHECK(described(block) == "storage block Letters");
  block.number = 5;
  CHECK(described(block) == "storage block Letters (binding 5)");
  for (const ResourceKind kind :
       {ResourceKind::buffer_argument, ResourceKind::value_argument, ResourceKind::local_argument}) {
    ProgramResource argument = resource_of(kind, "x");
    argument.type = "float";
    argument.number = 2;
    CHECK(described(argument) == std::string(to_string(kind)) + " float x (argument 2)");
  }
}

TEST_CASE("resource checks: at most eight resources are listed", "[contract]") {
  std::vector<ProgramResource> resources{resource_of(ResourceKind::image, "other")};
  CHECK(list_of(resources, ResourceKind::storage_block) == "none");
  std::string expected;
  for (int at = 0; at < 8; ++at) {
    const std::string name = "b" + std::to_string(at);
    resources.push_back(resource_of(ResourceKind::storage_block, name));
    expected += (at == 0 ? "storage block " : ", storage block ") + name;
    CHECK(list_of(resources, ResourceKind::storage_block) == expected);
  }
  for (int more = 1; more <= 2; ++more) {
    resources.push_back(resource_of(ResourceKind::storage_block, "more"));
    CHECK(list_of(resources, ResourceKind::storage_block) == expected + " and " + std::to_string(more) + " more");
  }
}

TEST_CASE("resource checks: the indices of a name, behind its last dot", "[contract]") {
  struct Case {
    std::string name;
    std::size_t size;
    std::vector<std::uint32_t> indices;
  };
  for (const Case& each : {Case{"gain", 4, {}}, Case{"a[3]", 1, {3}}, Case{"a[1][20]", 1, {1, 20}},
                           Case{"lights[2].colour", 16, {}}, Case{"lights[2].taps[4]", 14, {4}}, Case{"", 0, {}}}) {
    INFO(each.name);
    const ElementName found = element_name(each.name);
    CHECK(found.size == each.size);
    CHECK(found.indices == each.indices);
  }
}

TEST_CASE("resource checks: the lengths that the values of a uniform may have", "[contract]") {
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  ProgramResource array = resource_of(ResourceKind::uniform, "a");
  const auto of = [&](std::vector<std::uint32_t> shape, std::vector<std::uint32_t> lengths,
                      const std::vector<std::uint32_t>& indices, std::size_t outer) {
    array.shape = std::move(shape);
    array.lengths = std::move(lengths);
    return pairs_of(extents_of(array, indices, outer));
  };
  CHECK(of({}, {}, {}, 0).empty());
  CHECK(of({3}, {}, {}, 0) == Pairs{{3, 3}});
  CHECK(of({3}, {3}, {}, 0) == Pairs{{3, 3}});
  CHECK(of({2}, {5}, {}, 0) == Pairs{{2, 5}});         // the program uses two of five
  CHECK(of({5}, {2}, {}, 0) == Pairs{{5, 5}});         // never below what it uses
  CHECK(of({2}, {0}, {}, 0) == Pairs{{2, no_limit}});  // of unknown length
  // a[1] of float a[2][3]: what is given is a, or a[1] itself.
  CHECK(of({3}, {2, 3}, {1}, 1) == Pairs{{2, 2}, {3, 3}});
  CHECK(of({3}, {2, 3}, {1}, 0) == Pairs{{3, 3}});
  CHECK(of({1}, {2, 3}, {1}, 1) == Pairs{{2, 2}, {1, 3}});
  CHECK(of({3}, {0, 3}, {1}, 1) == Pairs{{2, no_limit}, {3, 3}});
  CHECK(of({3}, {}, {4}, 1) == Pairs{{5, no_limit}, {3, 3}});
  CHECK(of({3}, {4, 5, 3}, {1, 2}, 1) == Pairs{{5, 5}, {3, 3}});
  CHECK(of({}, {4}, {1}, 1) == Pairs{{4, 4}});
}

TEST_CASE("resource checks: the type and the lengths of a uniform's values", "[contract]") {
  using Type = UserKernelSpec::Uniform::Type;
  const ElementType integers[] = {ElementType::i8,  ElementType::u8,  ElementType::i16, ElementType::u16,
                                  ElementType::i32, ElementType::u32, ElementType::i64, ElementType::u64};
  const auto told = [](ElementType element, Type type, std::vector<std::uint32_t> shape = {},
                       const std::vector<Extent>& extents = {}, bool matrix = false) {
    ProgramResource resource = resource_of(ResourceKind::uniform, "u", element);
    resource.matrix = matrix;
    return check_uniform(resource, {"u", type, std::move(shape)}, extents).message;
  };
  for (const ElementType element : integers) {
    CHECK(told(element, Type::integer).empty());
    CHECK(told(element, Type::number) == "the job provides floating-point numbers (expected integers)");
    CHECK(told(element, Type::boolean) == "the job provides booleans (expected integers)");
  }
  for (const ElementType element : {ElementType::f16, ElementType::f32, ElementType::f64}) {
    CHECK(told(element, Type::integer).empty());
    CHECK(told(element, Type::number).empty());
    CHECK(told(element, Type::boolean) == "the job provides booleans (expected numbers)");
  }
  CHECK(told(ElementType::boolean, Type::boolean).empty());
  CHECK(told(ElementType::boolean, Type::integer) == "the job provides integers (expected true or false)");
  CHECK(told(ElementType::boolean, Type::number) == "the job provides floating-point numbers (expected true or false)");

  const auto of_lengths = [&](std::vector<std::uint32_t> shape, const std::vector<Extent>& extents) {
    return told(ElementType::f32, Type::number, std::move(shape), extents);
  };
  CHECK(of_lengths({2}, {{2, 4}}).empty());
  CHECK(of_lengths({4}, {{2, 4}}).empty());
  CHECK(of_lengths({1}, {{2, 4}}) == "the job provides 1 values (expected 2 to 4 values)");
  CHECK(of_lengths({5}, {{2, 4}}) == "the job provides 5 values (expected 2 to 4 values)");
  CHECK(of_lengths({}, {{2, 2}}) == "the job provides one value (expected 2 values)");
  CHECK(of_lengths({2}, {}) == "the job provides 2 values (expected one value)");
  CHECK(of_lengths({9, 3}, {{2, no_limit}, {3, 3}}).empty());
  CHECK(of_lengths({1, 3}, {{2, no_limit}, {3, 3}}) == "the job provides 1 x 3 values (expected 2 or more x 3 values)");
  CHECK(of_lengths({2, 4}, {{2, 2}, {3, 3}}) == "the job provides 2 x 4 values (expected 2 x 3 values)");
  CHECK(told(ElementType::f32, Type::number, {4}, {{2, 2}, {2, 2}}, true) ==
        "the job provides 4 values (expected 2 x 2 values, a matrix row by row)");
}

TEST_CASE("resource checks: the filter and the wrap of a sampler", "[contract]") {
  UserKernelSpec::Binding given;
  given.kind = BindingKind::sampler_state;
  const auto sampler = [&](ElementType element, TextureFilter filter, TextureWrap wrap) {
    given.filter = filter;
    given.wrap = wrap;
    return match_sampler(resource_of(ResourceKind::sampler_state, "s", element), given);
  };
  for (const ElementType element : {ElementType::f32, ElementType::i32, ElementType::u32, ElementType::unknown}) {
    const auto made = sampler(element, TextureFilter::automatic, TextureWrap::mirror);
    REQUIRE(made);
    CHECK(made->filter == (element == ElementType::f32 ? TextureFilter::linear : TextureFilter::nearest));
    CHECK(made->wrap == TextureWrap::mirror);
    CHECK(sampler(element, TextureFilter::nearest, TextureWrap::clamp));
  }
  CHECK(sampler(ElementType::f32, TextureFilter::linear, TextureWrap::border));
  CHECK(sampler(ElementType::i32, TextureFilter::nearest, TextureWrap::border));
  const auto told = [](const Result<TextureSource>& made) {
    REQUIRE_FALSE(made);
    return made.error().message;
  };
  CHECK(told(sampler(ElementType::u32, TextureFilter::linear, TextureWrap::clamp)) ==
        "reads integers, and filter = \"linear\" does not support integers (expected \"nearest\")");
  CHECK(told(sampler(ElementType::unknown, TextureFilter::linear, TextureWrap::clamp)) ==
        "reads integers and floating-point numbers, and filter = \"linear\" does not support integers (expected "
        "\"nearest\")");
  CHECK(told(sampler(ElementType::unknown, TextureFilter::nearest, TextureWrap::border)) ==
        "reads integers and floating-point numbers, which have no common border colour. Use another wrap, or two "
        "samplers");
}

TEST_CASE("resource checks: a texture without a sampler has neither filter nor wrap", "[contract]") {
  ProgramResource texture = resource_of(ResourceKind::sampler, "t");
  texture.texture.dimensions = 2;
  texture.texture.alone = true;
  UserKernelSpec::Binding given = given_buffer(Access::read, DType::f32, {3, 4});
  given.kind = BindingKind::sampler;
  const auto made = match_texture(texture, given);
  REQUIRE(made);
  CHECK(made->filter == TextureFilter::nearest);
  for (const auto& [filter, wrap] : {std::pair{TextureFilter::nearest, TextureWrap::clamp},
                                     std::pair{TextureFilter::automatic, TextureWrap::repeat}}) {
    given.filter = filter;
    given.wrap = wrap;
    const auto refused = match_texture(texture, given);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "is a texture without a sampler. Set filter and wrap for the sampler instead");
  }
  texture.texture.alone = false;
  CHECK(match_texture(texture, given));
}

TEST_CASE("resource checks: sizes at their bounds", "[contract]") {
  ProgramResource block = resource_of(ResourceKind::storage_block, "A");
  block.bytes = 16;
  block.array_offset = 8;
  block.array_stride = 8;
  block.element_bytes = 8;
  block.open_ended = true;
  const auto told = [&](DType dtype, Shape shape) {
    return check_buffer(block, given_buffer(Access::read, dtype, std::move(shape)), false).message;
  };
  CHECK(told(DType::f32, {4}).empty());
  CHECK(told(DType::f32, {3}) == "takes at least 16 bytes, and the job provides 12 bytes");
  CHECK(told(DType::f32, {5}) ==
        "has an array with elements of 8 bytes from byte 8 on, and the job provides 20 bytes, which ends within an "
        "element");
  block.open_ended = false;
  CHECK(told(DType::f32, {5}).empty());
  block.open_ended = true;
  block.array_offset = 0;
  block.bytes = 4;
  block.element_bytes = 4;
  CHECK(told(DType::f32, {4, 2}).empty());
  CHECK(told(DType::f32, {2, 2, 2}).empty());
  CHECK(told(DType::f32, {4}) ==
        "has an array with elements of 4 bytes and a stride of 8 bytes, and the job provides float32 [4]. Provide a "
        "tensor of shape [N, 2] with the padding of each element, or declare an array without padding");
  CHECK(told(DType::f32, {4, 1}) ==
        "has an array with elements of 4 bytes and a stride of 8 bytes, and the job provides float32 [4, 1]. Pad the "
        "last "
        "dimension to 2 elements, or declare an array without padding");
}

TEST_CASE("resource checks: elements with padding take rows as long as one of them, or whole structs", "[contract]") {
  struct Case {
    bool structs;
    ElementType element;
    std::uint64_t used, stride;
    DType dtype;
    Shape shape;
    std::string advice;  // empty: it fits
  };
  const std::string pad = "Pad the last dimension to ", provide = "Provide a tensor of shape [N, ";
  const std::string with = "] with the padding of each element";
  using enum ElementType;
  const Case cases[] = {
      {false, f32, 12, 16, DType::f32, {5, 4}, ""},
      {false, f32, 12, 16, DType::f32, {4, 3}, pad + "4 elements"},
      {false, f32, 36, 48, DType::f32, {8, 3, 3}, pad + "4 elements"},  // of a mat3
      {false, f32, 36, 48, DType::f32, {8, 3, 4}, ""},
      {false, f32, 36, 48, DType::f32, {8, 9}, pad + "12 elements"},
      {false, f32, 36, 48, DType::f32, {8, 12}, ""},
      {false, f32, 12, 16, DType::f32, {4, 3, 1}, provide + "4" + with},  // 4 is no multiple of 3
      {false, f32, 12, 16, DType::f32, {8, 2}, provide + "4" + with},
      {false, f32, 12, 16, DType::f32, {2, 8}, provide + "4" + with},  // two of them in a row
      {false, f32, 12, 16, DType::f32, {32}, provide + "4" + with},
      {false, f64, 24, 32, DType::f64, {4, 3}, pad + "4 elements"},
      {false, f32, 12, 16, DType::u8, {64}, ""},  // the bytes of the block
      {false, f32, 12, 16, DType::u8, {4, 16}, ""},
      {false, f32, 12, 16, DType::u8, {8, 8}, provide + "16" + with},
      {false, u8, 3, 4, DType::u8, {16}, provide + "4" + with},
      {false, i8, 3, 4, DType::u8, {16}, provide + "4" + with},
      {false, u8, 3, 4, DType::u8, {4, 3}, pad + "4 elements"},
      {false, f32, 12, 16, DType::invalid, {3}, ""},
      {false, f32, 0, 16, DType::f32, {3}, ""},
      {false, f32, 16, 16, DType::f32, {3}, ""},
      {true, f32, 28, 32, DType::f32, {5}, ""},  // one dimension says nothing of structs
      {true, f32, 28, 32, DType::f32, {5, 8}, ""},
      {true, f32, 28, 32, DType::f32, {5, 16}, ""},  // two structs in a row
      {true, f32, 28, 32, DType::f32, {5, 12}, provide + "8" + with},
      {true, f32, 28, 32, DType::f32, {5, 7}, pad + "8 elements"},
      {true, f32, 28, 32, DType::f32, {5, 8, 4}, ""},
      {true, f32, 28, 32, DType::f32, {5, 8, 3}, provide + "8" + with},
      {true, f32, 28, 32, DType::f32, {5, 4, 12}, provide + "8" + with},
  };
  for (const Case& each : cases) {
    ProgramResource block = resource_of(ResourceKind::storage_block, "A", each.element);
    block.array_stride = each.stride, block.element_bytes = each.used, block.struct_elements = each.structs;
    const std::string elements = "has an array with elements of " + std::to_string(each.used) +
                                 " bytes and a stride of " + std::to_string(each.stride) +
                                 " bytes, and the job provides " + std::string(numpy_name(each.dtype)) + " " +
                                 to_string(each.shape) + ". ";
    INFO(elements);
    CHECK(check_buffer(block, given_buffer(Access::read, each.dtype, each.shape), false).message ==
          (each.advice.empty() ? "" : elements + each.advice + ", or declare an array without padding"));
  }
}
