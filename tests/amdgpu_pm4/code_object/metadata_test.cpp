// The metadata note of a code object, made here key by key: what is read from it, and what each key may not say.
#include "amdgpu_pm4/code_object/metadata.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln_json.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

Json whole_argument() {
  return {{".offset", 8},
          {".size", 8},
          {".value_kind", "global_buffer"},
          {".name", "x"},
          {".type_name", "float*"},
          {".pointee_align", 64},
          {".is_const", true}};
}

Json whole_kernel() {
  return {{".name", "saxpy"},
          {".symbol", "saxpy.kd"},
          {".group_segment_fixed_size", 512},
          {".private_segment_fixed_size", 16},
          {".kernarg_segment_size", 40},
          {".kernarg_segment_align", 8},
          {".wavefront_size", 32},
          {".sgpr_count", 20},
          {".vgpr_count", 30},
          {".max_flat_workgroup_size", 256},
          {".reqd_workgroup_size", {64, 2, 1}},
          {".uses_dynamic_stack", true},
          {".args", {whole_argument()}}};
}

Json whole_note() {
  return {{"amdhsa.version", {1, 2}},
          {"amdhsa.target", "amdgcn-amd-amdhsa--gfx1100"},
          {"amdhsa.kernels", {whole_kernel()}}};
}

Result<ObjectMetadata> read_note(const Json& note) {
  const std::vector<std::uint8_t> bytes = Json::to_msgpack(note);
  return read_metadata(std::as_bytes(std::span(bytes)));
}

using Change = std::function<void(Json& note, Json& kernel, Json& argument)>;

Result<ObjectMetadata> read_changed(const Change& change) {
  Json note = whole_note(), kernel = whole_kernel(), argument = whole_argument();
  change(note, kernel, argument);
  if (kernel.is_object() && kernel.contains(".args") && kernel[".args"].is_array() && kernel[".args"].size() == 1) {
    kernel[".args"] = Json::array({argument});
  }
  if (note.is_object() && note.contains("amdhsa.kernels") && note["amdhsa.kernels"].is_array()) {
    note["amdhsa.kernels"] = Json::array({kernel});
  }
  return read_note(note);
}

std::string refusal_of_note(const Change& change) {
  const auto read = read_changed(change);
  return read ? std::string("it was read") : read.error().text();
}

}  // namespace

TEST_CASE("metadata: every key of a note is read") {
  const auto read = read_note(whole_note());
  INFO((read ? std::string() : read.error().text()));
  REQUIRE(read.has_value());
  CHECK(read->version == 5);
  CHECK(read->target == "amdgcn-amd-amdhsa--gfx1100");
  REQUIRE(read->kernels.size() == 1);
  const KernelMetadata& kernel = read->kernels[0];
  CHECK(kernel.name == "saxpy");
  CHECK(kernel.descriptor == "saxpy.kd");
  CHECK(kernel.lds_bytes == 512);
  CHECK(kernel.scratch_bytes == 16);
  CHECK(kernel.kernarg_bytes == 40);
  CHECK(kernel.kernarg_alignment == 8);
  CHECK(kernel.wave_lanes == 32);
  CHECK(kernel.sgprs == 20);
  CHECK(kernel.vgprs == 30);
  CHECK(kernel.max_workgroup_lanes == 256);
  CHECK(kernel.required_workgroup == std::array<std::uint32_t, 3>{64, 2, 1});
  CHECK(kernel.dynamic_stack);
  REQUIRE(kernel.arguments.size() == 1);
  const KernelArgument& argument = kernel.arguments[0];
  CHECK(argument.offset == 8);
  CHECK(argument.size == 8);
  CHECK(argument.kind == ArgumentKind::global_buffer);
  CHECK(argument.value_kind == "global_buffer");
  CHECK(argument.name == "x");
  CHECK(argument.type == "float*");
  CHECK(argument.pointee_alignment == 64);
  CHECK(argument.read_only);

  const auto bare = read_changed([](Json& note, Json& kernel_json, Json& argument_json) {
    note["amdhsa.version"] = {1, 1};
    kernel_json.erase(".reqd_workgroup_size");
    kernel_json.erase(".uses_dynamic_stack");
    for (const char* key : {".name", ".type_name", ".pointee_align", ".is_const"}) argument_json.erase(key);
  });
  REQUIRE(bare.has_value());
  CHECK(bare->version == 4);
  CHECK(bare->kernels[0].required_workgroup == std::array<std::uint32_t, 3>{0, 0, 0});
  CHECK_FALSE(bare->kernels[0].dynamic_stack);
  CHECK(bare->kernels[0].arguments[0].name.empty());
  CHECK(bare->kernels[0].arguments[0].type.empty());
  CHECK(bare->kernels[0].arguments[0].pointee_alignment == 16);
  CHECK_FALSE(bare->kernels[0].arguments[0].read_only);
  const auto without = read_changed([](Json&, Json& kernel_json, Json&) { kernel_json.erase(".args"); });
  REQUIRE(without.has_value());
  CHECK(without->kernels[0].arguments.empty());
}

TEST_CASE("metadata: what a program may only read is const or in constant memory") {
  const auto read_only = [](const Json& is_const, const Json& space) {
    const auto read = read_changed([&](Json&, Json&, Json& argument) {
      argument[".is_const"] = is_const;
      argument[".address_space"] = space;
    });
    REQUIRE(read.has_value());
    return read->kernels[0].arguments[0].read_only;
  };
  CHECK(read_only(true, "global"));
  CHECK(read_only(false, "constant"));
  CHECK_FALSE(read_only(false, "global"));
}

TEST_CASE("metadata: each kind of argument has its size, at a multiple of it") {
  using K = ArgumentKind;
  struct Kind {
    const char* name;
    K kind;
    std::uint32_t bytes;  // 0: any number
  };
  const Kind kinds[] = {{"global_buffer", K::global_buffer, 8},
                        {"by_value", K::by_value, 0},
                        {"dynamic_shared_pointer", K::local_pointer, 4},
                        {"hidden_none", K::hidden_none, 0},
                        {"hidden_block_count_x", K::hidden_block_count_x, 4},
                        {"hidden_block_count_y", K::hidden_block_count_y, 4},
                        {"hidden_block_count_z", K::hidden_block_count_z, 4},
                        {"hidden_group_size_x", K::hidden_group_size_x, 2},
                        {"hidden_group_size_y", K::hidden_group_size_y, 2},
                        {"hidden_group_size_z", K::hidden_group_size_z, 2},
                        {"hidden_remainder_x", K::hidden_remainder_x, 2},
                        {"hidden_remainder_y", K::hidden_remainder_y, 2},
                        {"hidden_remainder_z", K::hidden_remainder_z, 2},
                        {"hidden_global_offset_x", K::hidden_global_offset_x, 8},
                        {"hidden_global_offset_y", K::hidden_global_offset_y, 8},
                        {"hidden_global_offset_z", K::hidden_global_offset_z, 8},
                        {"hidden_grid_dims", K::hidden_grid_dims, 2},
                        {"hidden_dynamic_lds_size", K::hidden_dynamic_lds_size, 4},
                        {"hidden_hostcall_buffer", K::other, 0},
                        {"image", K::other, 0}};
  const auto refusal = [](const std::string& name, std::uint32_t offset, std::uint32_t size) {
    return refusal_of_note([&](Json&, Json&, Json& argument) {
      argument[".value_kind"] = name;
      argument[".offset"] = offset;
      argument[".size"] = size;
    });
  };
  for (const auto& [name, kind, bytes] : kinds) {
    INFO(name);
    const std::uint32_t size = bytes == 0 ? 3 : bytes;
    const auto read = read_changed([&, word = name](Json&, Json&, Json& argument) {
      argument[".value_kind"] = word;
      argument[".offset"] = 16;
      argument[".size"] = size;
    });
    REQUIRE(read.has_value());
    CHECK(read->kernels[0].arguments[0].kind == kind);
    CHECK(read->kernels[0].arguments[0].value_kind == name);
    const std::string flaw = "corrupt: metadata: kernel 'saxpy': " + std::string(name) + " has ";
    const std::string expected = ", expected " + std::to_string(bytes) + " at a multiple of this size";
    CHECK(refusal(name, 16, size + 1) ==
          (bytes == 0 ? "it was read" : flaw + std::to_string(size + 1) + " bytes at offset 16" + expected));
    CHECK(refusal(name, 17, size) ==
          (bytes == 0 ? "it was read" : flaw + std::to_string(size) + " bytes at offset 17" + expected));
  }
}

TEST_CASE("metadata: arguments are ordered by their offsets, and none overlaps another") {
  const auto with_arguments = [](std::vector<std::pair<int, int>> places) {
    return read_changed([&](Json&, Json& kernel, Json&) {
      kernel[".args"] = Json::array();
      for (const auto& [offset, size] : places) {
        kernel[".args"].push_back({{".offset", offset}, {".size", size}, {".value_kind", "by_value"}});
      }
    });
  };
  const auto ordered = with_arguments({{20, 4}, {0, 8}, {8, 12}});
  REQUIRE(ordered.has_value());
  std::vector<std::uint32_t> offsets;
  for (const KernelArgument& argument : ordered->kernels[0].arguments) offsets.push_back(argument.offset);
  CHECK(offsets == std::vector<std::uint32_t>{0, 8, 20});
  CHECK(with_arguments({{0, 9}, {8, 4}}).error().text() ==
        "corrupt: metadata: kernel 'saxpy': two arguments overlap at offset 8");
  CHECK(with_arguments({{0, 4}, {4, 36}, {8, 4}}).error().text() ==
        "corrupt: metadata: kernel 'saxpy': two arguments overlap at offset 8");
  CHECK(with_arguments({{0, 4}, {36, 4}}).has_value());
  CHECK(with_arguments({{0, 4}, {36, 5}}).error().text() ==
        "corrupt: metadata: kernel 'saxpy': argument at offset 36 ends beyond .kernarg_segment_size, 40");
}

TEST_CASE("metadata: a key that is missing, of another type or out of range is named") {
  const std::string of_kernel = "corrupt: metadata: kernel 'saxpy': ";
  for (const char* key :
       {".symbol", ".group_segment_fixed_size", ".private_segment_fixed_size", ".kernarg_segment_size",
        ".kernarg_segment_align", ".wavefront_size", ".sgpr_count", ".vgpr_count", ".max_flat_workgroup_size"}) {
    const std::string name = key;
    CHECK(refusal_of_note([&](Json&, Json& kernel, Json&) { kernel.erase(name); }) == of_kernel + name + " is missing");
    CHECK(refusal_of_note([&](Json&, Json& kernel, Json&) { kernel[name] = nullptr; }) ==
          of_kernel + name + (name == ".symbol" ? " is not a string" : " is not an unsigned integer"));
  }
  for (const char* key : {".offset", ".size", ".value_kind"}) {
    const std::string name = key;
    CHECK(refusal_of_note([&](Json&, Json&, Json& argument) { argument.erase(name); }) ==
          of_kernel + name + " is missing");
  }
  for (const char* key : {"amdhsa.version", "amdhsa.target", "amdhsa.kernels"}) {
    const std::string name = key;
    CHECK(refusal_of_note([&](Json& note, Json&, Json&) { note.erase(name); }) ==
          "corrupt: metadata: " + name + " is missing");
  }
  const std::pair<Change, std::string> refusals[] = {
      {[](Json&, Json& kernel, Json&) { kernel.erase(".name"); }, "corrupt: metadata: .name is missing"},
      {[](Json&, Json& kernel, Json&) { kernel = 7; }, "corrupt: metadata: the parent of .name is not a map"},
      {[](Json& note, Json&, Json&) { note["amdhsa.kernels"] = 7; },
       "corrupt: metadata: amdhsa.kernels is not an array"},
      {[](Json& note, Json&, Json&) { note["amdhsa.version"] = {1}; },
       "corrupt: metadata: amdhsa.version has 1 entries"},
      {[](Json& note, Json&, Json&) {
         note["amdhsa.version"] = {1, 2, 3};
       },
       "corrupt: metadata: amdhsa.version has 3 entries"},
      {[](Json& note, Json&, Json&) {
         note["amdhsa.version"] = {2, 1};
       },
       "corrupt: metadata: amdhsa.version is 2.1, expected 1.1 or 1.2"},
      {[](Json& note, Json&, Json&) {
         note["amdhsa.version"] = {1, 0};
       },
       "corrupt: metadata: amdhsa.version is 1.0, expected 1.1 or 1.2"},
      {[](Json& note, Json&, Json&) {
         note["amdhsa.version"] = {1, 3};
       },
       "corrupt: metadata: amdhsa.version is 1.3, expected 1.1 or 1.2"},
      {[](Json&, Json& kernel, Json&) { kernel[".kernarg_segment_align"] = 24; },
       of_kernel + ".kernarg_segment_align is not a power of two"},
      {[](Json&, Json& kernel, Json&) { kernel[".wavefront_size"] = 65; },
       of_kernel + ".wavefront_size is 65, expected at most 64"},
      {[](Json&, Json& kernel, Json&) { kernel[".uses_dynamic_stack"] = 1; },
       of_kernel + ".uses_dynamic_stack is neither true nor false"},
      {[](Json&, Json& kernel, Json&) { kernel[".args"] = "x"; }, of_kernel + ".args is not an array"},
      {[](Json&, Json& kernel, Json&) {
         kernel[".reqd_workgroup_size"] = {64, 2};
       },
       of_kernel + ".reqd_workgroup_size has 2 entries"},
      {[](Json&, Json& kernel, Json&) {
         kernel[".reqd_workgroup_size"] = {64, 0, 1};
       },
       of_kernel + ".reqd_workgroup_size has 0 lanes, .max_flat_workgroup_size is 256"},
      {[](Json&, Json& kernel, Json&) {
         kernel[".reqd_workgroup_size"] = {257, 1, 1};
       },
       of_kernel + ".reqd_workgroup_size has 257 lanes, .max_flat_workgroup_size is 256"},
      {[](Json&, Json& kernel, Json&) {
         kernel[".reqd_workgroup_size"] = {1025, 1, 1};
       },
       "unsupported: kernel 'saxpy': workgroup has 1025 x 1 x 1 work-items, expected at most 1024"},
      {[](Json&, Json& kernel, Json&) {
         kernel[".reqd_workgroup_size"] = {1024, 2, 1};
         kernel[".max_flat_workgroup_size"] = 1024;
       },
       "unsupported: kernel 'saxpy': workgroup has 1024 x 2 x 1 work-items, expected at most 1024"},
      {[](Json&, Json& kernel, Json&) {
         kernel[".reqd_workgroup_size"] = {65536, 65536, 4294967295U};
       },
       "unsupported: kernel 'saxpy': workgroup has 65536 x 65536 x 4294967295 work-items, expected at most 1024"}};
  for (const auto& [change, text] : refusals) CHECK(refusal_of_note(change) == text);
  CHECK(refusal_of_note([](Json&, Json& kernel, Json&) {
          kernel[".reqd_workgroup_size"] = {256, 1, 1};
        }) == "it was read");
  CHECK(refusal_of_note([](Json&, Json& kernel, Json&) {
          kernel[".reqd_workgroup_size"] = {1024, 1, 1};
          kernel[".max_flat_workgroup_size"] = 1024;
        }) == "it was read");
}

TEST_CASE("metadata: notes that are too long or no MessagePack are refused") {
  const std::vector<std::byte> long_note((std::size_t{4} << 20) + 1);
  CHECK(read_metadata(long_note).error().text() == "corrupt: metadata has 4194305 bytes, expected at most 4194304");
  CHECK(read_metadata({}).error().text() == "corrupt: metadata is not MessagePack of at most 16 levels");
  Json nested = 1;
  for (int level = 0; level < 15; ++level) nested = Json::array({nested});
  Json note = whole_note();
  note["more"] = nested;  // within the note's own map: 16 levels
  CHECK(read_note(note).has_value());
  note["more"] = Json::array({nested});
  CHECK(read_note(note).error().text() == "corrupt: metadata is not MessagePack of at most 16 levels");
}

}  // namespace kiln::amdgpu_pm4
