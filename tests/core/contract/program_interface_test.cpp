// What a request provides against what a program declares: every mismatch is named, with both sides.
#include <kiln/program_interface.hpp>

#include <catch2/catch.hpp>

using namespace kiln;
using Catch::Contains;

namespace {

ProgramResource block(std::string name, std::uint32_t number) {
  ProgramResource resource;
  resource.kind = ResourceKind::storage_block;
  resource.name = std::move(name);
  resource.number = number;
  resource.element = ElementType::f32;
  resource.bytes = 4;
  resource.array_stride = 4;
  resource.element_bytes = 4;
  resource.open_ended = true;
  return resource;
}

ProgramResource uniform(std::string name, std::string type, ElementType element,
                        std::vector<std::uint32_t> shape = {}) {
  ProgramResource resource;
  resource.kind = ResourceKind::uniform;
  resource.name = std::move(name);
  resource.type = std::move(type);
  resource.element = element;
  resource.shape = std::move(shape);
  return resource;
}

ProgramResource argument(ResourceKind kind, std::string name, std::uint32_t index, std::uint64_t bytes) {
  ProgramResource resource;
  resource.kind = kind;
  resource.name = std::move(name);
  resource.number = index;
  resource.bytes = bytes;
  return resource;
}

UserKernelSpec::Binding buffer(Access access, std::uint64_t elements, DType dtype = DType::f32) {
  UserKernelSpec::Binding binding;
  binding.access = access;
  binding.bytes = elements * size_of(dtype);
  binding.dtype = dtype;
  binding.shape = {static_cast<std::int64_t>(elements)};
  return binding;
}

UserKernelSpec kernel(std::vector<UserKernelSpec::Binding> bindings, Dialect dialect = Dialect::glsl) {
  UserKernelSpec spec;
  spec.path = "k.comp";
  spec.text = "x";
  spec.dialect = dialect;
  spec.bindings = std::move(bindings);
  return spec;
}

void check_refused(const ProgramInterface& declared, const UserKernelSpec& spec,
                   const std::vector<std::string>& words) {
  const auto sources = provide(declared, spec);
  REQUIRE_FALSE(sources);
  CHECK(sources.error().code == StatusCode::invalid_argument);
  for (const std::string& word : words) CHECK_THAT(sources.error().message, Catch::Contains(word));
}

using Type = UserKernelSpec::Uniform::Type;

}  // namespace

TEST_CASE("program interface: bindings by position, by number and by name", "[contract]") {
  const ProgramInterface declared{{block("Offsets", 6), block("Letters", 5)}, {}};
  UserKernelSpec spec = kernel({buffer(Access::read, 8), buffer(Access::read_write, 8)});
  check_refused(declared, spec,
                {"storage block Offsets (binding 6)", "storage block Letters (binding 5)", "not provided by the job",
                 "the job provides binding 0, binding 1"});
  spec.bindings[0].number = 6;
  spec.bindings[1].name = "Letters";
  auto sources = provide(declared, spec);
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{0}, {1}});
  // The position in the list counts, also behind one that has a name.
  const ProgramInterface others{{block("A", 1), block("B", 0)}, {}};
  sources = provide(others, kernel({buffer(Access::read, 8), buffer(Access::read_write, 8)}));
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{1}, {0}});
  // Two blocks at one binding: both see the same buffer, or each has its own by name.
  const ProgramInterface twice{{block("A", 0), block("B", 0)}, {}};
  sources = provide(twice, kernel({buffer(Access::read_write, 8)}));
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{0}, {0}});
  spec = kernel({buffer(Access::read, 8), buffer(Access::read_write, 8)});
  spec.bindings[0].name = "B";
  spec.bindings[1].name = "A";
  sources = provide(twice, spec);
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{1}, {0}});
}

TEST_CASE("program interface: what no resource takes is named", "[contract]") {
  const ProgramInterface declared{{block("A", 0)}, {}};
  UserKernelSpec spec = kernel({buffer(Access::read_write, 8), buffer(Access::read, 8)});
  check_refused(declared, spec, {"bindings[1]", "no such storage block", "storage block A (binding 0)"});
  spec.bindings[1].name = "Weigths";
  check_refused(declared, spec, {"name = \"Weigths\"", "no such storage block"});
  spec = kernel({buffer(Access::read_write, 8)});
  spec.uniforms.push_back({"gian", Type::number, {}});
  check_refused(declared, spec, {"uniforms.gian", "no such uniform", "none"});
  // A block that the source declares and the compiler drops takes an input; a result would be lost.
  ProgramInterface unused = declared;
  unused.unused.push_back(block("B", 1));
  CHECK(provide(unused, kernel({buffer(Access::read_write, 8), buffer(Access::read, 8)})));
  check_refused(unused, kernel({buffer(Access::read_write, 8), buffer(Access::read_write, 8)}),
                {"bindings[1]", "declares but does not use this storage block", "an inout"});
}

TEST_CASE("program interface: access, type and size of a storage block", "[contract]") {
  ProgramInterface declared{{block("A", 0)}, {}};
  ProgramResource& a = declared.resources[0];
  a.access = Access::read;
  check_refused(declared, kernel({buffer(Access::read_write, 8)}), {"storage block A", "read-only", "an inout"});
  check_refused(declared, kernel({buffer(Access::write, 8)}), {"read-only", "an output"});
  a.access = Access::write;
  check_refused(declared, kernel({buffer(Access::read, 8)}), {"write-only", "an input"});
  a.access = Access::read_write;
  CHECK(provide(declared, kernel({buffer(Access::read, 8)})));
  check_refused(declared, kernel({buffer(Access::read, 8, DType::i32)}), {"holds float32", "provides int32"});
  check_refused(declared, kernel({buffer(Access::read, 8, DType::f64)}), {"holds float32", "provides float64"});
  // Advice for an application's array and for a file.
  check_refused(declared, kernel({buffer(Access::read, 8, DType::f16)}),
                {"provides float16, expected float32, or uint8 (its bytes)",
                 "Convert an array in memory to float32 before the call",
                 "For a file, add dtype = \"float32\", which converts the file"});
  CHECK(provide(declared, kernel({buffer(Access::read, 8, DType::u8)})));
  a.element = ElementType::u64;
  a.element_bytes = a.array_stride = a.bytes = 8;
  CHECK(provide(declared, kernel({buffer(Access::read, 8, DType::u32)})));
  check_refused(declared, kernel({buffer(Access::read, 7, DType::u32)}), {"elements of 8 bytes", "28 bytes"});
  check_refused(declared, kernel({buffer(Access::read, 8, DType::f32)}), {"64-bit integers", "provides float32"});
  a = block("A", 0);
  a.bytes = 64;
  a.open_ended = false;
  check_refused(declared, kernel({buffer(Access::read, 15)}), {"at least 64 bytes", "60 bytes"});
  CHECK(provide(declared, kernel({buffer(Access::read, 17)})));
}

TEST_CASE("program interface: elements with padding need a row as long as an element", "[contract]") {
  ProgramInterface declared{{block("A", 0)}, {}};
  ProgramResource& vec3 = declared.resources[0];
  vec3.array_stride = 16;
  vec3.element_bytes = 12;
  vec3.bytes = 12;
  UserKernelSpec spec = kernel({buffer(Access::read, 192)});
  spec.bindings[0].shape = {64, 3};  // 768 bytes, a multiple of 16: it would be read as 48 elements
  check_refused(declared, spec, {"stride of 16 bytes", "elements of 12 bytes", "[64, 3]", "4 elements"});
  spec.bindings[0].shape = {48, 4};
  CHECK(provide(declared, spec));
  vec3.element_bytes = 4;  // std140: float data[]
  spec.bindings[0].shape = {192};
  check_refused(declared, spec, {"stride of 16 bytes", "elements of 4 bytes"});
  vec3.element_bytes = 36;  // mat3
  vec3.array_stride = 48;
  spec.bindings[0].shape = {16, 3, 4};
  CHECK(provide(declared, spec));
}

TEST_CASE("program interface: structs with padding lie in rows as long as they are, or in one row", "[contract]") {
  ProgramInterface declared{{block("A", 0)}, {}};
  ProgramResource& particles = declared.resources[0];  // vec3 and float and vec3 and padding
  particles.struct_elements = true;
  particles.array_stride = 32;
  particles.element_bytes = 28;
  particles.bytes = 28;
  UserKernelSpec spec = kernel({buffer(Access::read, 448)});  // 1,792 bytes: 56 structs, or 64 without padding
  spec.bindings[0].shape = {64, 7};
  check_refused(declared, spec, {"stride of 32 bytes", "elements of 28 bytes", "[64, 7]", "8 elements"});
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{56, 8}, {56, 2, 4}, {448}, {28, 16}}) {
    spec.bindings[0].shape = shape;
    CHECK(provide(declared, spec));
  }
  particles.element_bytes = 32;  // no padding: any shape
  spec.bindings[0].shape = {64, 7};
  CHECK(provide(declared, spec));
}

TEST_CASE("program interface: uniforms by name, type and shape", "[contract]") {
  ProgramInterface declared{
      {block("A", 0), uniform("gain", "float", ElementType::f32), uniform("first", "int", ElementType::i32)}, {}};
  UserKernelSpec spec = kernel({buffer(Access::read_write, 8)});
  check_refused(declared, spec, {"uniform float gain", "uniform int first", "not provided by the job"});
  spec.uniforms = {{"first", Type::integer, {}}, {"gain", Type::number, {}}};
  const auto sources = provide(declared, spec);
  REQUIRE(sources);
  CHECK((*sources)[1] == ResourceSource{1, 8, Type::number});
  CHECK((*sources)[2] == ResourceSource{1, 0, Type::integer});
  spec.uniforms[0].type = Type::number;
  check_refused(declared, spec, {"uniform int first", "floating-point numbers", "expected integers"});
  spec.uniforms[0].type = Type::boolean;
  check_refused(declared, spec, {"uniform int first", "booleans"});
  spec.uniforms = {{"first", Type::integer, {}}, {"gain", Type::integer, {}}};
  CHECK(provide(declared, spec));  // 3 for a float
  spec.uniforms[1].shape = {2};
  check_refused(declared, spec, {"uniform float gain", "2 values", "expected one value"});
  declared.resources[1].has_default = true;
  spec.uniforms.pop_back();
  const auto with_default = provide(declared, spec);
  REQUIRE(with_default);
  CHECK((*with_default)[1].binding == ResourceSource::none);
  declared.resources[2] = uniform("m", "mat2", ElementType::f32, {2, 2});
  declared.resources[2].matrix = true;
  spec.uniforms = {{"m", Type::number, {4}}};
  check_refused(declared, spec, {"uniform mat2 m", "4 values", "2 x 2 values", "row by row"});
}

TEST_CASE("program interface: images, samplers and counters that the job does not provide are named", "[contract]") {
  for (const ResourceKind kind : {ResourceKind::image, ResourceKind::sampler, ResourceKind::atomic_counter}) {
    ProgramResource resource;
    resource.kind = kind;
    resource.name = "photo";
    resource.number = 0;
    check_refused({{block("A", 0), resource}, {}}, kernel({buffer(Access::read_write, 8)}),
                  {std::string(to_string(kind)) + " photo (binding 0)", "not provided by the job"});
  }
}

TEST_CASE("program interface: counters of one buffer have one binding", "[contract]") {
  ProgramResource hits, misses;
  hits.kind = misses.kind = ResourceKind::atomic_counter;
  hits.name = "hits", misses.name = "misses";
  hits.number = misses.number = 0;
  hits.bytes = 4, misses.bytes = 8;
  UserKernelSpec spec = kernel({buffer(Access::read_write, 8), buffer(Access::read_write, 8)});
  spec.bindings[0].name = "hits", spec.bindings[1].name = "misses";
  check_refused({{hits, misses}, {}}, spec,
                {"atomic counter hits (binding 0)", "shares its buffer with atomic counter misses",
                 "bindings[0] and bindings[1]"});
  spec.bindings.pop_back();
  CHECK(provide({{hits, misses}, {}}, spec));
}

TEST_CASE("program interface: a sampler without a texture has a filter, a wrap and no tensor", "[contract]") {
  ProgramResource state;
  state.kind = ResourceKind::sampler_state;
  state.name = "s";
  state.element = ElementType::f32;
  check_refused({{state}, {}}, kernel({}), {"separate sampler s: not provided by the job. Add samplers = { s = "});
  UserKernelSpec spec = kernel({buffer(Access::read, 8)});
  spec.bindings[0] = {};
  spec.bindings[0].kind = BindingKind::sampler_state;
  spec.bindings[0].access = Access::read;
  spec.bindings[0].name = "s";
  spec.bindings[0].wrap = TextureWrap::mirror;
  CHECK(validate(KernelSpec(spec)).ok());
  CHECK(tensors_of(spec).empty());
  const auto found = provide({{state}, {}}, spec);
  REQUIRE(found);
  CHECK((*found)[0].binding == ResourceSource::none);
  CHECK((*found)[0].texture.filter == TextureFilter::linear);
  CHECK((*found)[0].texture.wrap == TextureWrap::mirror);
  state.element = ElementType::i32;
  CHECK((*provide({{state}, {}}, spec))[0].texture.filter == TextureFilter::nearest);
  const std::string before = canonical_text(spec);
  spec.bindings[0].filter = TextureFilter::linear;
  CHECK(canonical_text(spec) != before);
  check_refused({{state}, {}}, spec, {"separate sampler s: samplers.s: reads integers"});
  check_refused({{}, {}}, spec, {"samplers.s: the program has no such separate sampler"});
}

TEST_CASE("program interface: a value without a uniform is named by its key", "[contract]") {
  ProgramResource params;
  params.kind = ResourceKind::uniform_block;
  params.name = "Params";
  params.mentioned = false;
  UserKernelSpec spec = kernel({});
  spec.uniforms = {{"gain", Type::number, {}}, {"Params.gain", Type::number, {}}, {"Parms.gain", Type::number, {}}};
  check_refused(
      {{params}, {}}, spec,
      {"uniforms.gain: the program", "blocks.Params.gain: the program", "uniforms or blocks: Parms.gain: the program"});
}

TEST_CASE("program interface: advice can be pasted into TOML", "[contract]") {
  ProgramResource member = uniform("Params.lights[0].power", "float", ElementType::f32);
  member.block = "Params";
  ProgramResource sampler;
  sampler.kind = ResourceKind::sampler;
  sampler.name = "material.texels[1]";
  check_refused({{uniform("light.pos", "vec3", ElementType::f32, {3}), member, sampler}, {}}, kernel({}),
                {"Add uniforms = { \"light.pos\" = … }", "Add blocks = { Params = { \"lights[0].power\" = … } }",
                 "Add samplers = { \"material.texels[1]\" = { input = … } }"});
}

TEST_CASE("program interface: a value is of the uniform of its whole name, and others are told apart", "[contract]") {
  ProgramInterface declared;
  declared.resources = {uniform("a[12]", "float", ElementType::f32), uniform("gain", "float", ElementType::f32)};
  UserKernelSpec spec = kernel({});
  spec.uniforms = {
      {"a[1", Type::number, {}}, {"a[12]", Type::number, {}}, {"gain", Type::number, {}}, {"wrong", Type::number, {}}};
  const auto sources = provide(declared, spec);
  REQUIRE_FALSE(sources);
  CHECK(sources.error().message ==
        "uniforms.a[1: the program has no such uniform (it has uniform float a[12], uniform float gain); "
        "uniforms.wrong: the "
        "program has no such uniform (it has uniform float a[12], uniform float gain)");
  spec.uniforms.erase(spec.uniforms.begin());
  spec.uniforms.pop_back();
  const auto found = provide(declared, spec);
  REQUIRE(found);
  REQUIRE(found->size() == 2);
  CHECK(found->at(0).offset == 0);
  CHECK(found->at(1).offset == 8);
}

TEST_CASE("program interface: of a large block, missing and mistyped values are told in a few words", "[contract]") {
  ProgramInterface declared;
  UserKernelSpec spec = kernel({});
  ProgramResource table;
  table.kind = ResourceKind::uniform_block;
  table.name = "Table";
  declared.resources.push_back(table);
  for (int i = 0; i < 1000; ++i) {
    const std::string member = "data[" + std::to_string(i) + "].a";
    declared.resources.push_back(uniform("Table." + member, "int", ElementType::i32));
    declared.resources.back().block = "Table";
    spec.uniforms.push_back({"Tabel." + member, Type::integer, {}});
  }
  const auto sources = provide(declared, spec);
  REQUIRE_FALSE(sources);
  const std::string& message = sources.error().message;
  INFO(message);
  CHECK(message.size() < 4000);
  CHECK_THAT(message, Contains("Table.data[3].a: not provided by the job") && !Contains("Table.data[4].a: not") &&
                          Contains("996 more problems in uniform block Table"));
  CHECK_THAT(message,
             Contains("Tabel.data[0].a: the program has no such uniform (it has uniform int Table.data[0].a, ") &&
                 Contains(" and 992 more)") && Contains("996 more problems in Tabel"));
}

static ProgramResource open_block_of_floats() {
  ProgramResource block;
  block.kind = ResourceKind::storage_block;
  block.name = "P";
  block.number = 0;
  block.access = Access::read_write;
  block.element = ElementType::f32;
  block.open_ended = true;
  return block;
}

TEST_CASE("program interface: bytes fill an array with padding as they are", "[contract]") {
  ProgramResource block = open_block_of_floats();
  block.array_stride = 16;
  block.element_bytes = 12;
  UserKernelSpec spec = kernel({buffer(Access::read_write, 16)});
  spec.bindings[0].bytes = 32;
  spec.bindings[0].dtype = DType::u8;
  spec.bindings[0].shape = {32};
  const ProgramInterface declared{{block}, {}};
  CHECK(provide(declared, spec));
  spec.bindings[0].bytes = 30;
  spec.bindings[0].shape = {30};
  check_refused(declared, spec, {"ends within an element"});
  spec.bindings[0] = buffer(Access::read_write, 8);
  spec.bindings[0].dtype = DType::f32;
  spec.bindings[0].shape = {8};
  check_refused(declared, spec, {"Provide a tensor of shape [N, 4] with the padding of each element"});
  block.element = ElementType::u8;  // packed values, not the block's bytes
  block.array_stride = 4, block.element_bytes = 3;
  spec.bindings[0] = buffer(Access::read_write, 8);
  spec.bindings[0].dtype = DType::u8;
  spec.bindings[0].shape = {32};
  check_refused({{block}, {}}, spec, {"Provide a tensor of shape [N, 4] with the padding of each element"});
}

TEST_CASE("program interface: the padding of an array's elements is where the program has it", "[contract]") {
  ProgramResource block = open_block_of_floats();
  const struct {
    std::uint64_t element_bytes, stride;
    Shape shape, padded;
    std::string advice;
  } cases[] = {
      {12, 16, {4, 3}, {4, 4}, "Pad the last dimension to 4 elements"},        // vec3
      {36, 48, {4, 3, 3}, {4, 3, 4}, "Pad the last dimension to 4 elements"},  // mat3
      {16, 32, {4, 2, 2}, {4, 2, 4}, "Pad the last dimension to 4 elements"},  // mat2 of std140
      // A row_major mat3x4 lies as four rows of three: another dimension is padded.
      {48, 64, {4, 3, 4}, {4, 4, 4}, "Provide a tensor of shape [N, 16] with the padding of each element"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.element_bytes, each.stride);
    block.element_bytes = each.element_bytes;
    block.array_stride = each.stride;
    UserKernelSpec spec = kernel({buffer(Access::read_write, 4)});
    const auto give = [&](const Shape& shape) {
      spec.bindings[0].dtype = DType::f32;
      spec.bindings[0].shape = shape;
      std::uint64_t elements = 1;
      for (const std::int64_t extent : shape) elements *= static_cast<std::uint64_t>(extent);
      spec.bindings[0].bytes = 4 * elements;
    };
    give(each.shape);
    if (spec.bindings[0].bytes % each.stride == 0) {
      check_refused({{block}, {}}, spec, {each.advice});
    } else {
      check_refused({{block}, {}}, spec, {"ends within an element"});
    }
    give(each.padded);
    CHECK(provide({{block}, {}}, spec));
  }
}

TEST_CASE("program interface: what is given for a resource that cannot be set is not named twice", "[contract]") {
  ProgramResource shadow;
  shadow.kind = ResourceKind::sampler;
  shadow.name = "depth";
  shadow.type = "sampler2DShadow";
  shadow.unusable = "a job cannot provide this type";
  ProgramResource chosen = uniform("choice", "subroutine", ElementType::unknown);
  chosen.unusable = "a job cannot choose it";
  UserKernelSpec spec = kernel({buffer(Access::read, 8)});
  spec.bindings[0].kind = BindingKind::sampler;
  spec.bindings[0].name = "depth";
  spec.uniforms = {{"choice", Type::integer, {}}};
  const auto sources = provide({{shadow, chosen}, {}}, spec);
  REQUIRE_FALSE(sources);
  CHECK(sources.error().message ==
        "sampler sampler2DShadow depth: a job cannot provide this type; uniform subroutine choice: a job cannot choose "
        "it");
}

TEST_CASE("program interface: arguments of OpenCL C", "[contract]") {
  const ProgramInterface declared{
      {argument(ResourceKind::buffer_argument, "src", 0, 0), argument(ResourceKind::value_argument, "gain", 1, 4),
       argument(ResourceKind::local_argument, "part", 2, 0), argument(ResourceKind::buffer_argument, "dst", 3, 0)},
      {}};
  UserKernelSpec::Binding value = buffer(Access::read, 1);
  value.kind = BindingKind::value;
  UserKernelSpec::Binding local = buffer(Access::read_write, 64);
  local.kind = BindingKind::local;
  const UserKernelSpec good =
      kernel({buffer(Access::read, 8), value, local, buffer(Access::read_write, 8)}, Dialect::opencl_c);
  const auto sources = provide(declared, good);
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{0}, {1}, {ResourceSource::none, 256}, {2}});
  UserKernelSpec spec = good;
  spec.bindings[1] = buffer(Access::read, 1);  // an input file with the bytes of the number
  CHECK(provide(declared, spec));
  spec.bindings[1] = buffer(Access::read, 2);
  check_refused(declared, spec, {"value argument gain (argument 1)", "4 bytes", "8 bytes"});
  spec.bindings[1] = buffer(Access::read_write, 1);
  check_refused(declared, spec, {"gain", "passed by value", "an inout"});
  spec = good;
  std::swap(spec.bindings[0], spec.bindings[1]);
  check_refused(declared, spec, {"buffer argument src (argument 0)", "points to a buffer", "a number"});
  spec = good;
  spec.bindings[2] = buffer(Access::read, 64);
  check_refused(declared, spec, {"local memory argument part (argument 2)", "local = BYTES"});
  spec = good;
  spec.bindings.pop_back();
  check_refused(declared, spec, {"buffer argument dst (argument 3)", "not provided by the job", "3 bindings"});
  spec = good;
  spec.bindings.push_back(buffer(Access::read, 8));
  check_refused(declared, spec, {"bindings[4]", "takes 4 arguments"});
}
