// What is stored of a module beside its program: a loaded program needs no parser.
#include "codec/reflection.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace kiln::vulkan {
namespace {

ProgramResource resource_of(ResourceKind kind, std::int64_t handle) {
  ProgramResource resource;
  resource.kind = kind;
  resource.handle = handle;
  return resource;
}

ModuleRecord record_sample() {
  ModuleRecord module{{0x07230203, 5, 6}, "blur", {0x00010300, {64, 2, 1}, 4096, 5, {1, 22}}, {}};
  Reflection& reflection = module.reflection;
  reflection.slots = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4, 7},
                      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, 8},
                      {VK_DESCRIPTOR_TYPE_SAMPLER, 1, 9}};
  reflection.blocks = {{48, 1, 0}, {16, {}, 0}};
  reflection.members = {{1, {3, 4, 16, 8, true}}};
  reflection.textures = {{0, 3, VK_IMAGE_VIEW_TYPE_CUBE, {5}}};
  reflection.push_constant_bytes = 16;
  reflection.resources = {
      resource_of(ResourceKind::storage_block, 3), resource_of(ResourceKind::uniform, 0),
      resource_of(ResourceKind::uniform_block, 1), resource_of(ResourceKind::sampler, 0),
      resource_of(ResourceKind::image, 0),         resource_of(ResourceKind::sampler_state, std::int64_t{2} << 32),
  };
  reflection.unused = {resource_of(ResourceKind::uniform, 99)};
  return module;
}

std::vector<std::byte> bytes_of_record(const ModuleRecord& module) {
  std::vector<std::byte> bytes;
  append(module, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("vulkan record: every member comes back", "[vulkan][record]") {
  const std::optional<ModuleRecord> read = read_module(bytes_of_record(record_sample()));
  REQUIRE(read);
  CHECK(read->words == std::vector<std::uint32_t>{0x07230203, 5, 6});
  CHECK(read->entry == "blur");
  CHECK(read->needs.version == 0x00010300);
  CHECK(read->needs.workgroup == std::array<std::uint32_t, 3>{64, 2, 1});
  CHECK(read->needs.shared_bytes == 4096);
  CHECK(read->needs.uses == 5);
  CHECK(read->needs.capabilities == std::vector<std::uint32_t>{1, 22});
  const Reflection& reflection = read->reflection;
  REQUIRE(reflection.slots.size() == 3);
  CHECK(reflection.slots[0].type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
  CHECK(reflection.slots[0].count == 4);
  CHECK(reflection.slots[0].declared == 7);
  REQUIRE(reflection.blocks.size() == 2);
  CHECK(reflection.blocks[0].bytes == 48);
  CHECK(reflection.blocks[0].slot == 1u);
  CHECK_FALSE(reflection.blocks[1].slot.has_value());
  REQUIRE(reflection.members.size() == 1);
  CHECK(reflection.members[0].block == 1);
  CHECK(reflection.members[0].place.count == 3);
  CHECK(reflection.members[0].place.offset == 4);
  CHECK(reflection.members[0].place.array_stride == 16);
  CHECK(reflection.members[0].place.matrix_stride == 8);
  CHECK(reflection.members[0].place.row_major);
  REQUIRE(reflection.textures.size() == 1);
  CHECK(reflection.textures[0].slot == 0);
  CHECK(reflection.textures[0].element == 3);
  CHECK(reflection.textures[0].view == VK_IMAGE_VIEW_TYPE_CUBE);
  CHECK(reflection.textures[0].samplers == std::vector<std::size_t>{5});
  CHECK(reflection.push_constant_bytes == 16);
  REQUIRE(reflection.resources.size() == 6);
  CHECK(reflection.resources[5].kind == ResourceKind::sampler_state);
  CHECK(reflection.unused.size() == 1);
}

TEST_CASE("vulkan record: cut, longer, or with a number of nothing it is not read", "[vulkan][record]") {
  const std::vector<std::byte> whole = bytes_of_record(record_sample());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size << " of " << whole.size() << " bytes");
    CHECK_FALSE(read_module(std::span(whole).first(size)));
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  CHECK_FALSE(read_module(longer));
  const std::function<void(Reflection&)> changes[] = {
      [](Reflection& r) { r.resources[0].handle = 4; },                      // the slot has four elements
      [](Reflection& r) { r.resources[0].handle = std::int64_t{3} << 32; },  // there are three slots
      [](Reflection& r) { r.resources[0].handle = -1; },
      [](Reflection& r) { r.resources[1].handle = 1; },
      [](Reflection& r) { r.resources[2].handle = 2; },
      [](Reflection& r) { r.resources[3].handle = 1; },
      [](Reflection& r) { r.resources[4].handle = -1; },
      [](Reflection& r) { r.resources[5].handle += 1; },
      [](Reflection& r) { r.resources[5].kind = ResourceKind::buffer_argument; },
      [](Reflection& r) { r.blocks[0].slot = 3; },
      [](Reflection& r) { r.blocks[0].element = 1; },
      [](Reflection& r) { r.members[0].block = 2; },
      [](Reflection& r) { r.textures[0].slot = 3; },
      [](Reflection& r) { r.textures[0].element = 4; },
      [](Reflection& r) { r.textures[0].samplers = {6}; },
  };
  for (const auto& change : changes) {
    INFO("change " << &change - changes);
    ModuleRecord module = record_sample();
    change(module.reflection);
    CHECK_FALSE(read_module(bytes_of_record(module)));
  }
}

}  // namespace kiln::vulkan
