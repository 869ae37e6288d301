// What a kernel needs is given, or refused by its name; and the kernarg segment holds what the metadata says.
#include <algorithm>
#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/code_object/object_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;

template <class Value>
Value value_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string refusal_of(const char* name, std::size_t kernel = 0) {
  const CodeObject object = ObjectFile::named(name).read();
  return check_dispatch(object, object.kernels.at(kernel)).text();
}

}  // namespace

TEST_CASE("dispatch: kernels that need nothing unusual are offered") {
  CHECK(refusal_of("readable-gfx1100") == "ok");
  CHECK(refusal_of("readable-gfx1030") == "ok");
  CHECK(refusal_of("readable-relocated", 1) == "ok");  // hidden arguments that tell the grid
}

TEST_CASE("dispatch: what is not offered is refused by its name") {
  CHECK(refusal_of("readable-gfx1201") ==
        "unsupported: dispatch on gfx1201 is unsupported: expected gfx1030, gfx1100, gfx1101, gfx1102 or gfx1103");
  CHECK(refusal_of("readable-not-offered") ==
        "unsupported: kernel 'unusual' needs dispatch_pointer, which is not supported");

  CodeObject object = ObjectFile::named("readable-not-offered").read();
  KernelCode& kernel = object.kernels.at(0);
  kernel.user_sgpr_slots.clear();
  CHECK(kernel.arguments.at(1).kind == ArgumentKind::local_pointer);
  kernel.arguments.erase(kernel.arguments.begin() + 1);
  CHECK_THAT(check_dispatch(object, kernel).text(), Contains("has kind queue, which is not supported"));
  kernel.arguments.erase(kernel.arguments.begin() + 1);
  CHECK(std::ranges::count(kernel.arguments, ArgumentKind::hidden_dynamic_lds_size, &KernelArgument::kind) == 1);
  CHECK_THAT(check_dispatch(object, kernel).text(), Contains("has kind hidden_queue_ptr, which is not supported"));
  std::erase_if(kernel.arguments, [](const KernelArgument& each) { return each.kind == ArgumentKind::other; });
  CHECK(check_dispatch(object, kernel).text() == "ok");
}

TEST_CASE("dispatch: a stack of unknown depth is refused") {
  ObjectFile file = ObjectFile::named("readable-gfx1100");
  file = file.with(file.behind(".uses_dynamic_stack"), std::uint8_t{0xC3})
             .with(file.descriptor() + 56, std::uint16_t{0x0C08});
  const CodeObject object = file.read();
  CHECK(object.kernels.at(0).dynamic_stack);
  CHECK_THAT(check_dispatch(object, object.kernels.at(0)).text(), Contains("needs a stack of unknown depth"));
}

TEST_CASE("dispatch: the kernarg segment holds buffers, values and zeros") {
  const CodeObject object = ObjectFile::named("readable-gfx1100").read();
  const KernelCode& kernel = object.kernels.at(0);
  const std::uint64_t buffers[] = {0x800012345000, 0xFFFF800000001000};
  const float a = 2.5f;
  const std::span<const std::byte> by_value[] = {std::as_bytes(std::span(&a, 1))};
  std::vector<std::byte> segment(kernel.kernarg_bytes, std::byte{0xEE});
  KernargValues values{buffers, by_value, {7, 1, 1}, {64, 1, 1}};
  CHECK(write_kernarg(kernel, values, segment).text() == "ok");
  CHECK(value_at<std::uint64_t>(segment, 0) == buffers[0]);
  CHECK(value_at<std::uint64_t>(segment, 8) == buffers[1]);
  CHECK(value_at<float>(segment, 16) == 2.5f);
  CHECK(buffer_names(kernel) == std::vector<std::string>{"x", "y"});

  values.buffers = std::span(buffers, 1);
  CHECK(write_kernarg(kernel, values, segment).text() == "invalid_argument: kernel 'saxpy' takes 2 buffers, found 1");
  values.buffers = buffers;
  values.by_value = {};
  CHECK_THAT(write_kernarg(kernel, values, segment).text(), Contains("takes 1 arguments by value, found 0"));
  const std::span<const std::byte> short_value[] = {by_value[0].first(2)};
  values.by_value = short_value;
  CHECK_THAT(write_kernarg(kernel, values, segment).text(),
             Contains("argument 'a' at offset 16 of kernel 'saxpy' takes 4 bytes"));
}

TEST_CASE("dispatch: pointers to local memory lie one behind the other, behind the kernel's own") {
  KernelCode kernel;
  kernel.name = "k";
  kernel.lds_bytes = 20;
  kernel.kernarg_bytes = 12;
  for (std::uint32_t i = 0; i < 2; ++i) {
    KernelArgument argument;
    argument.offset = 4 * i;
    argument.size = 4;
    argument.kind = ArgumentKind::local_pointer;
    argument.pointee_alignment = i == 0 ? 4 : 64;
    kernel.arguments.push_back(argument);
  }
  const std::uint64_t local_bytes[] = {40, 100};
  CHECK(dynamic_local_bytes(kernel, local_bytes) == 128 + 100 - 20);
  KernelArgument& size = kernel.arguments.emplace_back();
  size.offset = 8;
  size.size = 4;
  size.kind = ArgumentKind::hidden_dynamic_lds_size;
  std::vector<std::byte> segment(12);
  KernargValues values;
  values.local_bytes = local_bytes;
  CHECK(write_kernarg(kernel, values, segment).text() == "ok");
  CHECK(value_at<std::uint32_t>(segment, 0) == 32);
  CHECK(value_at<std::uint32_t>(segment, 4) == 128);
  CHECK(value_at<std::uint32_t>(segment, 8) == 208);
  values.local_bytes = std::span(local_bytes, 1);
  CHECK_THAT(write_kernarg(kernel, values, segment).text(), Contains("takes 2 local memory sizes, found 1"));
}

TEST_CASE("dispatch: hidden arguments tell the grid") {
  const CodeObject object = ObjectFile::named("readable-relocated").read();
  const KernelCode& kernel = *find_kernel(object, "second");
  const std::uint64_t buffers[] = {0x1000};
  std::vector<std::byte> segment(kernel.kernarg_bytes, std::byte{0xEE});
  CHECK(write_kernarg(kernel, {buffers, {}, {7, 1, 3}, {64, 2, 1}}, segment).text() == "ok");
  const std::size_t hidden = 8;
  CHECK(value_at<std::uint32_t>(segment, hidden) == 7);
  CHECK(value_at<std::uint32_t>(segment, hidden + 4) == 1);
  CHECK(value_at<std::uint32_t>(segment, hidden + 8) == 3);
  CHECK(value_at<std::uint16_t>(segment, hidden + 12) == 64);
  CHECK(value_at<std::uint16_t>(segment, hidden + 14) == 2);
  CHECK(value_at<std::uint16_t>(segment, hidden + 16) == 1);
  CHECK(value_at<std::uint16_t>(segment, hidden + 18) == 0);  // remainders
  CHECK(value_at<std::uint64_t>(segment, hidden + 40) == 0);  // global offset
  CHECK(value_at<std::uint16_t>(segment, hidden + 64) == 3);  // dimensions
  CHECK(write_kernarg(kernel, {buffers, {}, {7, 1, 1}, {64, 1, 1}}, segment).text() == "ok");
  CHECK(value_at<std::uint16_t>(segment, hidden + 64) == 1);
  CHECK(value_at<std::uint64_t>(segment, kernel.kernarg_bytes - 8) == 0);  // what nothing tells is zeros
}

TEST_CASE("dispatch: an object in words") {
  const std::string words = describe(ObjectFile::named("readable-gfx1100").read());
  CHECK_THAT(words, Contains("code object version 5 for gfx1100"));
  CHECK_THAT(words, Contains("saxpy\n  wave: 32 lanes\n  workgroup: 64 x 1 x 1 lanes\n"));
  CHECK_THAT(words, Contains("user SGPRs: 15, kernarg_pointer in s0 to s1\n"));
  CHECK_THAT(words,
             Contains("arguments: global_buffer x of 8 at 0, global_buffer y of 8 at 8, by_value a of 4 at 16\n"));
  CHECK_THAT(words, Contains("dispatch: offered\n"));
  CHECK_THAT(describe(ObjectFile::named("readable-gfx1201").read()),
             Contains("dispatch: refused: dispatch on gfx1201 is unsup"));
  CodeObject any_workgroup = ObjectFile::named("readable-gfx1100").read();
  any_workgroup.kernels.at(0).required_workgroup = {};
  CHECK_THAT(describe(any_workgroup), Contains("dispatch: offered where the source declares a workgroup\n"));
  any_workgroup.kernels.at(0).user_sgpr_slots = {{UserSgpr::kernarg_pointer, 0, 2},
                                                 {UserSgpr::private_segment_size, 2, 1}};
  CHECK_THAT(describe(any_workgroup), Contains(", kernarg_pointer in s0 to s1, private_segment_size in s2\n"));
}

}  // namespace kiln::amdgpu_pm4
