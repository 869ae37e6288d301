// What a dispatch needs and what an object says of itself, of kernels made here field by field.
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/code_object.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

KernelArgument argument_of(ArgumentKind kind, std::uint32_t offset, std::uint32_t size, std::string name = "") {
  KernelArgument argument;
  argument.kind = kind;
  argument.offset = offset;
  argument.size = size;
  argument.name = std::move(name);
  argument.value_kind = kind == ArgumentKind::other ? "image" : std::string(to_string(kind));
  return argument;
}

CodeObject object_with(std::vector<KernelArgument> arguments) {
  CodeObject object;
  object.target = Target::gfx1100;
  object.version = 5;
  KernelCode kernel;
  kernel.name = "k";
  kernel.kernarg_bytes = 32;
  kernel.arguments = std::move(arguments);
  object.kernels.push_back(std::move(kernel));
  return object;
}

// The segment's bytes as a hidden argument of that kind makes them, little-endian.
std::uint64_t hidden_told(ArgumentKind kind, std::uint32_t size, const KernargValues& values) {
  const CodeObject object = object_with({argument_of(kind, 8, size)});
  std::vector<std::byte> segment(32, std::byte{0xEE});
  CHECK(write_kernarg(object.kernels[0], values, segment).text() == "ok");
  std::uint64_t told = 0;
  for (std::size_t i = 0; i < 8; ++i) told |= static_cast<std::uint64_t>(segment[8 + i]) << 8 * i;
  for (const std::size_t other : {0, 7, 16, 31}) CHECK(segment[other] == std::byte{0});
  return told;
}

}  // namespace

TEST_CASE("dispatch: what a hidden argument tells, by its kind") {
  const std::uint64_t none[] = {0};
  const KernargValues values{std::span(none).first(0), {}, {0x12345678, 5, 6}, {64, 3, 2}};
  struct Row {
    ArgumentKind kind;
    std::uint32_t size;
    std::uint64_t told;
  };
  using K = ArgumentKind;
  const Row rows[] = {{K::hidden_none, 8, 0},
                      {K::hidden_block_count_x, 4, 0x12345678},
                      {K::hidden_block_count_y, 4, 5},
                      {K::hidden_block_count_z, 4, 6},
                      {K::hidden_group_size_x, 2, 64},
                      {K::hidden_group_size_y, 2, 3},
                      {K::hidden_group_size_z, 2, 2},
                      {K::hidden_remainder_x, 2, 0},
                      {K::hidden_remainder_y, 2, 0},
                      {K::hidden_remainder_z, 2, 0},
                      {K::hidden_global_offset_x, 8, 0},
                      {K::hidden_global_offset_y, 8, 0},
                      {K::hidden_global_offset_z, 8, 0},
                      {K::hidden_grid_dims, 2, 3},
                      {K::hidden_dynamic_lds_size, 4, 0}};
  for (const Row& row : rows) {
    INFO(to_string(row.kind));
    CHECK(hidden_told(row.kind, row.size, values) == row.told);
  }
}

TEST_CASE("dispatch: a grid has the dimensions up to the last that is more than 1") {
  using Sizes = std::array<std::uint32_t, 3>;
  struct Row {
    Sizes grid, workgroup;
    std::uint64_t dimensions;
  };
  const Row rows[] = {{{1, 1, 1}, {1, 1, 1}, 1}, {{9, 1, 1}, {64, 1, 1}, 1}, {{1, 2, 1}, {64, 1, 1}, 2},
                      {{9, 1, 1}, {8, 2, 1}, 2}, {{1, 1, 2}, {64, 1, 1}, 3}, {{9, 1, 1}, {8, 1, 2}, 3},
                      {{9, 9, 9}, {2, 2, 2}, 3}};
  for (const Row& row : rows) {
    CHECK(hidden_told(ArgumentKind::hidden_grid_dims, 2, {{}, {}, row.grid, row.workgroup}) == row.dimensions);
  }
}

TEST_CASE("dispatch: local memory begins at a multiple of 16, or of what it points to") {
  struct Row {
    std::uint32_t own, alignment;
    std::uint64_t asked, bytes;  // beside the kernel's own
  };
  const Row rows[] = {{0, 1, 0, 0},    {0, 1, 5, 5},      {1, 1, 5, 20},   {15, 8, 1, 2},
                      {16, 16, 4, 4},  {17, 16, 4, 19},   {16, 32, 4, 20}, {32, 32, 4, 4},
                      {33, 32, 4, 35}, {100, 128, 8, 36}, {128, 128, 8, 8}};
  for (const Row& row : rows) {
    KernelCode kernel;
    kernel.lds_bytes = row.own;
    kernel.arguments = {argument_of(ArgumentKind::local_pointer, 0, 4)};
    kernel.arguments[0].pointee_alignment = row.alignment;
    INFO(row.own << " bytes of its own, alignment " << row.alignment);
    CHECK(dynamic_local_bytes(kernel, std::span(&row.asked, 1)) == row.bytes);
    CHECK(dynamic_local_bytes(kernel, {}) == 0);
  }
  // Between others; the second has no size yet.
  KernelCode kernel;
  kernel.lds_bytes = 4;
  kernel.arguments = {argument_of(ArgumentKind::global_buffer, 0, 8), argument_of(ArgumentKind::local_pointer, 8, 4),
                      argument_of(ArgumentKind::by_value, 12, 4), argument_of(ArgumentKind::local_pointer, 16, 4)};
  const std::uint64_t asked[] = {20, 7};
  CHECK(dynamic_local_bytes(kernel, std::span(asked, 1)) == 16 + 20 - 4);
  CHECK(dynamic_local_bytes(kernel, asked) == 48 + 7 - 4);
}

TEST_CASE("dispatch: what is not offered is refused by its name and its place") {
  const auto refused = [](std::vector<KernelArgument> arguments) {
    const CodeObject object = object_with(std::move(arguments));
    return check_dispatch(object, object.kernels[0]).text();
  };
  CHECK(refused({}) == "ok");
  CHECK(refused({argument_of(ArgumentKind::global_buffer, 0, 8), argument_of(ArgumentKind::other, 8, 8, "from")}) ==
        "unsupported: kernel 'k': argument 'from' at offset 8 has kind image, which is not supported");
  CHECK(refused({argument_of(ArgumentKind::other, 16, 8)}) ==
        "unsupported: kernel 'k': argument at offset 16 has kind image, which is not supported");
  std::vector<std::byte> segment(32);
  for (const ArgumentKind kind : {ArgumentKind::other, ArgumentKind::invalid}) {
    const CodeObject object = object_with({argument_of(kind, 8, 8, "a")});
    CHECK(write_kernarg(object.kernels[0], {}, segment).text() ==
          "unsupported: kernel 'k': argument 'a' at offset 8 has kind " +
              std::string(kind == ArgumentKind::other ? "image" : "invalid") + ", which is not supported");
  }
  const std::pair<UserSgpr, const char*> values[] = {
      {UserSgpr::private_segment_buffer, "ok"},
      {UserSgpr::dispatch_pointer, "unsupported: kernel 'k' needs dispatch_pointer, which is not supported"},
      {UserSgpr::queue_pointer, "unsupported: kernel 'k' needs queue_pointer, which is not supported"},
      {UserSgpr::kernarg_pointer, "ok"},
      {UserSgpr::dispatch_id, "unsupported: kernel 'k' needs dispatch_id, which is not supported"},
      {UserSgpr::flat_scratch_init, "ok"},
      {UserSgpr::private_segment_size, "ok"}};
  for (const auto& [value, text] : values) {
    CodeObject object = object_with({});
    object.kernels[0].user_sgpr_slots = {{UserSgpr::kernarg_pointer, 0, 2}, {value, 2, 2}};
    CHECK(check_dispatch(object, object.kernels[0]).text() == text);
  }
  CodeObject deep = object_with({});
  deep.kernels[0].dynamic_stack = true;
  CHECK(check_dispatch(deep, deep.kernels[0]).text() ==
        "unsupported: kernel 'k' needs a stack of unknown depth: recursion or a call of an unknown function");
}

TEST_CASE("dispatch: only targets of two generations are dispatched to") {
  const std::pair<Target, bool> targets[] = {
      {Target::invalid, false}, {Target::gfx1030, true},  {Target::gfx1100, true},  {Target::gfx1101, true},
      {Target::gfx1102, true},  {Target::gfx1103, true},  {Target::gfx1150, false}, {Target::gfx1151, false},
      {Target::gfx1152, false}, {Target::gfx1200, false}, {Target::gfx1201, false}};
  for (const auto& [target, offered] : targets) {
    INFO(to_string(target));
    CHECK(is_dispatched(target) == offered);
    CodeObject object = object_with({});
    object.target = target;
    CHECK(check_dispatch(object, object.kernels[0]).ok() == offered);
  }
  CHECK(target_names() == "gfx1030, gfx1100, gfx1101, gfx1102, gfx1103, gfx1150, gfx1151, gfx1152, gfx1200, gfx1201");
  CHECK(to_string(static_cast<Target>(11)) == "invalid");
  CHECK(to_string(UserSgpr::private_segment_size) == "private_segment_size");
  CHECK(to_string(static_cast<UserSgpr>(8)) == "invalid");
  CHECK(to_string(ArgumentKind::other) == "other");
  CHECK(to_string(static_cast<ArgumentKind>(20)) == "invalid");
}

TEST_CASE("dispatch: numbers of values that a kernel does not take are named, whichever they are") {
  const CodeObject object =
      object_with({argument_of(ArgumentKind::global_buffer, 0, 8), argument_of(ArgumentKind::by_value, 8, 4, "a"),
                   argument_of(ArgumentKind::local_pointer, 12, 4)});
  const KernelCode& kernel = object.kernels[0];
  const std::uint64_t numbers[] = {0x1000, 0x2000};
  const std::byte bytes[8]{};
  const std::span<const std::byte> four[] = {std::span(bytes).first(4), std::span(bytes).first(4)};
  std::vector<std::byte> segment(32);
  const auto said = [&](std::size_t buffers, std::size_t by_value, std::size_t local) {
    KernargValues values;
    values.buffers = std::span(numbers).first(buffers);
    values.by_value = std::span(four).first(by_value);
    values.local_bytes = std::span(numbers).first(local);
    return write_kernarg(kernel, values, segment).text();
  };
  CHECK(said(1, 1, 1) == "ok");
  CHECK(said(0, 1, 1) == "invalid_argument: kernel 'k' takes 1 buffers, found 0");
  CHECK(said(2, 1, 1) == "invalid_argument: kernel 'k' takes 1 buffers, found 2");
  CHECK(said(1, 2, 1) == "invalid_argument: kernel 'k' takes 1 arguments by value, found 2");
  CHECK(said(1, 1, 0) == "invalid_argument: kernel 'k' takes 1 local memory sizes, found 0");
  CHECK(said(1, 1, 2) == "invalid_argument: kernel 'k' takes 1 local memory sizes, found 2");
  for (const std::size_t size : {3u, 5u}) {
    const std::span<const std::byte> other[] = {std::span(bytes).first(size)};
    KernargValues values;
    values.buffers = std::span(numbers).first(1);
    values.by_value = other;
    values.local_bytes = std::span(numbers).first(1);
    CHECK(write_kernarg(kernel, values, segment).text() ==
          "invalid_argument: argument 'a' at offset 8 of kernel 'k' takes 4 bytes, found " + std::to_string(size));
  }
}

TEST_CASE("dispatch: an object in words, every line") {
  CodeObject object = object_with(
      {argument_of(ArgumentKind::global_buffer, 0, 8, "x"), argument_of(ArgumentKind::hidden_grid_dims, 8, 2)});
  object.image.resize(512);
  KernelCode& kernel = object.kernels[0];
  kernel.wave_lanes = 64;
  kernel.max_workgroup_lanes = 256;
  kernel.sgprs = 11, kernel.vgprs = 12;
  kernel.lds_bytes = 13, kernel.scratch_bytes = 14, kernel.user_sgprs = 3;
  kernel.user_sgpr_slots = {{UserSgpr::private_segment_size, 0, 1}, {UserSgpr::kernarg_pointer, 1, 2}};
  const std::string first =
      "k\n"
      "  wave: 64 lanes\n"
      "  workgroup: up to 256 lanes\n"
      "  SGPRs: 11\n"
      "  VGPRs: 12\n"
      "  LDS: 13 bytes\n"
      "  scratch: 14 bytes a lane\n"
      "  kernarg: 32 bytes\n"
      "  user SGPRs: 3, private_segment_size in s0, kernarg_pointer in s1 to s2\n"
      "  arguments: global_buffer x of 8 at 0, hidden_grid_dims of 2 at 8\n"
      "  dispatch: offered where the source declares a workgroup\n";
  CHECK(describe(object) == "code object version 5 for gfx1100, 512 bytes in memory, 1 kernel\n" + first);

  KernelCode other;
  other.name = "other";
  other.wave_lanes = 32;
  other.required_workgroup = {8, 4, 2};
  other.dynamic_stack = true;
  object.kernels.push_back(other);
  CHECK(describe(object) ==
        "code object version 5 for gfx1100, 512 bytes in memory, 2 kernels\n" + first +
            "other\n"
            "  wave: 32 lanes\n"
            "  workgroup: 8 x 4 x 2 lanes\n"
            "  SGPRs: 0\n"
            "  VGPRs: 0\n"
            "  LDS: 0 bytes\n"
            "  scratch: 0 bytes a lane\n"
            "  kernarg: 0 bytes\n"
            "  user SGPRs: 0\n"
            "  arguments: none\n"
            "  dispatch: refused: kernel 'other' needs a stack of unknown depth: recursion or a call of an unknown "
            "function\n");
}

}  // namespace kiln::amdgpu_pm4
