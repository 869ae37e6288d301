// What provides the resources of a program: whole uniform blocks, elements of arrays, textures, and what is left over.
#include <kiln/program_interface.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace kiln;

namespace {

ProgramResource declared_as(ResourceKind kind, std::string name, std::optional<std::uint32_t> number = {}) {
  ProgramResource made;
  made.kind = kind;
  made.name = std::move(name);
  made.number = number;
  made.element = ElementType::f32;
  return made;
}

UserKernelSpec::Binding bound(BindingKind kind, Access access, std::string name, Shape shape = {4}) {
  UserKernelSpec::Binding made{access, 4, kind};
  made.dtype = DType::f32;
  for (const std::int64_t extent : shape) made.bytes *= static_cast<std::uint64_t>(extent);
  made.shape = std::move(shape);
  made.name = std::move(name);
  return made;
}

UserKernelSpec kernel_with(std::vector<UserKernelSpec::Binding> bindings,
                           std::vector<UserKernelSpec::Uniform> uniforms = {}) {
  UserKernelSpec made;
  made.path = "k.comp";
  made.text = "x";
  made.bindings = std::move(bindings);
  made.uniforms = std::move(uniforms);
  return made;
}

// What is told; empty: all is provided.
std::string told_of(const ProgramInterface& declared, const UserKernelSpec& kernel) {
  const auto sources = provide(declared, kernel);
  return sources ? std::string() : sources.error().message;
}

using Kind = UserKernelSpec::Uniform::Type;

}  // namespace

TEST_CASE("program sources: a binding of its name provides a whole uniform block", "[contract]") {
  ProgramResource block = declared_as(ResourceKind::uniform_block, "Params", 3);
  block.bytes = 16;
  ProgramResource member = declared_as(ResourceKind::uniform, "Params.gain");
  member.block = "Params";
  member.type = "float";
  const ProgramInterface declared{{block, member}, {}};
  const auto whole = provide(declared, kernel_with({bound(BindingKind::buffer, Access::read, "Params")}));
  REQUIRE(whole);
  CHECK(*whole == std::vector<ResourceSource>{{0}, {}});
  CHECK(provide(declared, kernel_with({bound(BindingKind::buffer, Access::read, "Params", {5})})));
  CHECK(told_of(declared, kernel_with({bound(BindingKind::buffer, Access::read, "Params", {3})})) ==
        "uniform block Params (binding 3): bindings[0] (name = \"Params\"): takes at least 16 bytes, and the job "
        "provides "
        "12 bytes");
  CHECK(told_of(declared, kernel_with({bound(BindingKind::buffer, Access::read_write, "Params")})) ==
        "uniform block Params (binding 3): bindings[0] (name = \"Params\"): is read-only in the program, and the job "
        "provides an inout. Provide an input");
  const auto members = provide(declared, kernel_with({}, {{"Params.gain", Kind::number, {}}}));
  REQUIRE(members);
  CHECK(*members == std::vector<ResourceSource>{{}, {0, 0, Kind::number}});
  CHECK(told_of(declared, kernel_with({})) ==
        "uniform float Params.gain: not provided by the job. Add blocks = { Params = { gain = … } }");
}

TEST_CASE("program sources: an array of arrays provides each of its elements", "[contract]") {
  ProgramInterface declared;
  for (const char* const name : {"a[0][0]", "a[0][1]", "a[1][0]", "a[1][1]"}) {
    declared.resources.push_back(declared_as(ResourceKind::uniform, name));
    declared.resources.back().shape = {3};
    declared.resources.back().lengths = {2, 2, 3};
  }
  const auto whole = provide(declared, kernel_with({}, {{"first", Kind::number, {2}}, {"a", Kind::number, {2, 2, 3}}}));
  CHECK_FALSE(whole);  // nothing takes `first`
  const auto sources = provide(declared, kernel_with({}, {{"a", Kind::number, {2, 2, 3}}}));
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{
                        {0, 0, Kind::number}, {0, 24, Kind::number}, {0, 48, Kind::number}, {0, 72, Kind::number}});
  const auto rows =
      provide(declared, kernel_with({}, {{"a[1]", Kind::number, {2, 3}}, {"a[0]", Kind::integer, {2, 3}}}));
  REQUIRE(rows);
  CHECK(*rows == std::vector<ResourceSource>{
                     {0, 48, Kind::integer}, {0, 72, Kind::integer}, {0, 0, Kind::number}, {0, 24, Kind::number}});
  CHECK_THAT(told_of(declared, kernel_with({}, {{"a[0]", Kind::number, {2, 3}}})),
             Catch::Contains("a[1][0]: not provided by the job. Add uniforms = { a = … }") &&
                 Catch::Contains("a[1][1]: not provided by the job"));
  CHECK_THAT(told_of(declared, kernel_with({}, {{"a", Kind::number, {3, 2, 3}}})),
             Catch::Contains("the job provides 3 x 2 x 3 values (expected 2 x 2 x 3 values)"));
}

TEST_CASE("program sources: a uniform's name that begins with another one's is another", "[contract]") {
  const ProgramInterface declared{
      {declared_as(ResourceKind::uniform, "gain"), declared_as(ResourceKind::uniform, "gains")}, {}};
  const auto sources = provide(declared, kernel_with({}, {{"gains", Kind::number, {}}, {"gain", Kind::number, {}}}));
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{0, 8, Kind::number}, {0, 0, Kind::number}});
  CHECK_THAT(told_of(declared, kernel_with({}, {{"gain", Kind::number, {}}})),
             Catch::Contains("gains: not provided by the job. Add uniforms = { gains = … }"));
  ProgramInterface optional = declared;
  optional.resources[1].mentioned = false;
  CHECK(told_of(optional, kernel_with({}, {{"gain", Kind::number, {}}})).empty());
  optional.resources[0].has_default = true;
  CHECK(told_of(optional, kernel_with({})).empty());
}

TEST_CASE("program sources: textures have the tensor of their name and kind", "[contract]") {
  ProgramResource image = declared_as(ResourceKind::image, "photo", 1),
                  sampler = declared_as(ResourceKind::sampler, "tint");
  image.texture.dimensions = sampler.texture.dimensions = 2;
  const ProgramInterface declared{{image, sampler}, {}};
  const UserKernelSpec good = kernel_with({bound(BindingKind::sampler, Access::read, "tint", {2, 3}),
                                           bound(BindingKind::image, Access::write, "photo", {4, 5})});
  const auto sources = provide(declared, good);
  REQUIRE(sources);
  REQUIRE(sources->size() == 2);
  CHECK((*sources)[0].binding == 1);
  CHECK((*sources)[0].texture.size == std::array<std::uint32_t, 3>{5, 4, 0});
  CHECK((*sources)[0].texture.access == Access::write);
  CHECK((*sources)[1].binding == 0);
  CHECK((*sources)[1].texture.size == std::array<std::uint32_t, 3>{3, 2, 0});

  ProgramInterface read_only = declared;
  read_only.resources[0].access = Access::read;
  CHECK(told_of(read_only, good) ==
        "image photo (binding 1): images.photo: is read-only in the program, and the job provides an image. Provide an "
        "input");
  ProgramInterface write_only = declared;
  write_only.resources[0].access = Access::write;
  CHECK(told_of(write_only, good).empty());
  CHECK(told_of(write_only, kernel_with({good.bindings[0]})) ==
        "image photo (binding 1): not provided by the job. Add images = { photo = { output = …, size = [W, H] } }");
  CHECK(told_of(declared, kernel_with({good.bindings[0]})) ==
        "image photo (binding 1): not provided by the job. Add images = { photo = { input = … } }");
  CHECK(told_of(declared, kernel_with({good.bindings[1]})) ==
        "sampler tint: not provided by the job. Add samplers = { tint = { input = … } }");
  UserKernelSpec flat = good;
  flat.bindings[1].shape = {20};
  CHECK_THAT(told_of(declared, flat), Catch::StartsWith("image photo (binding 1): images.photo: takes [H, W]"));
}

TEST_CASE("program sources: what is left over is told, unless the program declares and does not use it", "[contract]") {
  const ProgramInterface nothing{{}, {}};
  const auto image = bound(BindingKind::image, Access::read, "photo", {2, 2});
  const auto result = bound(BindingKind::image, Access::write, "photo", {2, 2});
  const auto state = bound(BindingKind::sampler_state, Access::read, "near");
  CHECK(told_of(nothing, kernel_with({image})) == "images.photo: the program has no such image (it has none)");
  CHECK(told_of(nothing, kernel_with({bound(BindingKind::sampler, Access::read, "photo", {2, 2})})) ==
        "samplers.photo: the program has no such sampler (it has none)");
  CHECK(told_of(nothing, kernel_with({state})) ==
        "samplers.near: the program has no such separate sampler (it has none)");
  CHECK_THAT(told_of(nothing, kernel_with({}, {{"gain", Kind::number, {}}})), Catch::Contains("no such uniform"));

  ProgramInterface unused;
  for (const char* const name : {"photo", "near", "gain"})
    unused.unused.push_back(declared_as(ResourceKind::uniform, name));
  CHECK(told_of(unused, kernel_with({image})).empty());
  CHECK(told_of(unused, kernel_with({state})).empty());
  CHECK(told_of(unused, kernel_with({}, {{"gain", Kind::number, {}}})).empty());
  CHECK(told_of(unused, kernel_with({result})) ==
        "images.photo: the program declares but does not use this image, so the image cannot be written");
  CHECK(told_of(unused, kernel_with({bound(BindingKind::image, Access::read, "photo[1]", {2, 2})})).empty());
  CHECK_FALSE(told_of(unused, kernel_with({bound(BindingKind::image, Access::read, "photos", {2, 2})})).empty());
}

TEST_CASE("program sources: a block that the program does not use takes an input", "[contract]") {
  ProgramResource dropped = declared_as(ResourceKind::storage_block, "B", 0);
  dropped.mentioned = false;
  dropped.bytes = 64;  // not compared: nothing reads it
  const ProgramInterface declared{{dropped}, {}};
  const auto sources = provide(declared, kernel_with({bound(BindingKind::buffer, Access::read, "B")}));
  REQUIRE(sources);
  CHECK(*sources == std::vector<ResourceSource>{{0}});
  const auto none = provide(declared, kernel_with({}));
  REQUIRE(none);
  CHECK(*none == std::vector<ResourceSource>{{}});
  CHECK(told_of(declared, kernel_with({bound(BindingKind::buffer, Access::write, "B")})) ==
        "storage block B (binding 0): bindings[0] (name = \"B\"): the program declares but does not use this storage "
        "block, so an output cannot be written");
  ProgramInterface shared = declared;  // another block at its binding is used
  shared.resources.push_back(declared_as(ResourceKind::storage_block, "C", 0));
  CHECK(told_of(shared, kernel_with({bound(BindingKind::buffer, Access::write, "")})).empty());
  UserKernelSpec other_number = kernel_with({bound(BindingKind::buffer, Access::read, "B")});
  other_number.bindings[0].number = 2;
  CHECK_THAT(told_of(declared, other_number),
             Catch::Contains("the job gives the name together with binding 2. Remove one of them"));
  other_number.bindings[0].number = 0;
  CHECK(told_of(declared, other_number).empty());
}

TEST_CASE("program sources: the advice for a missing block is an input or an output of its number", "[contract]") {
  ProgramResource block = declared_as(ResourceKind::storage_block, "A", 2);
  CHECK_THAT(told_of({{block}, {}}, kernel_with({})),
             Catch::EndsWith("Add { input = … } with binding = 2 or name = \"A\""));
  block.access = Access::write;
  CHECK_THAT(told_of({{block}, {}}, kernel_with({})),
             Catch::EndsWith("Add { output = …, shape = [N] } with binding = 2 or name = \"A\""));
  block.number.reset();
  CHECK_THAT(told_of({{block}, {}}, kernel_with({})),
             Catch::EndsWith("Add { output = …, shape = [N] } with name = \"A\""));
  ProgramResource counter = declared_as(ResourceKind::atomic_counter, "hits", 0);
  counter.bytes = 12;
  CHECK_THAT(
      told_of({{counter}, {}}, kernel_with({})),
      Catch::EndsWith("Add bindings = [ …, { output = FILE, shape = [3], dtype = \"uint32\", name = \"hits\" } ]"));
  CHECK_THAT(told_of({{declared_as(ResourceKind::invalid, "x")}, {}}, kernel_with({})),
             Catch::Contains("a job cannot provide this kind of resource"));
}
