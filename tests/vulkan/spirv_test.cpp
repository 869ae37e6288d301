// SPIR-V modules of the user, as the `source` of a job.
#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "vulkan/spirv_under_test.hpp"

namespace kiln::vulkan {
namespace {

using support::bytes_of_values;
using support::lanes;
using support::ramp;
using support::values_of_bytes;
using support::Vulkan;
using Uniform = UserKernelSpec::Uniform;

std::string module_of(const std::string& text) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = text;
  return support::module_of(source);
}

constexpr const char* adding_more =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
    "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
    "layout(push_constant) uniform Push { float more; };\n"
    "void main() { uint i = gl_LocalInvocationID.x; y[i] = x[i] + more; }\n";

Status run_module(const std::string& module, std::vector<std::vector<std::byte>>& tensors, std::string entry = "main") {
  UserKernelSpec kernel;
  kernel.entry = std::move(entry);
  kernel.dialect = Dialect::code_object;
  kernel.path = "mine.spv";
  kernel.text = module;
  for (const Access access : {Access::read, Access::write}) {
    UserKernelSpec::Binding binding;
    binding.access = access;
    binding.bytes = lanes * sizeof(float);
    kernel.bindings.push_back(binding);
  }
  kernel.uniforms.push_back({"more", Uniform::Type::number, {}});
  return support::run_kernel(kernel, tensors);
}

}  // namespace

TEST_CASE("vulkan: a number of a SPIR-V instruction is not taken for a variable", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  constexpr std::uint32_t id_local_pointer = id_more, id_unused_type = id_more + 1, id_unused_pointer = id_more + 2,
                          id_scope = id_more + 3, id_local = id_more + 4, id_pair_type = id_more + 5;
  constexpr std::uint32_t is_volatile = 1, exclusive_scan = 2, arithmetic = 63, subgroups = 61;
  // Function control, a member of an array's length, a storage class, memory operands, a group operation, an index.
  for (const std::uint32_t unused : {1U, 2U, 7U}) {
    INFO("id " << unused);
    const Instructions capabilities = {{op_capability, {subgroups}}, {op_capability, {arithmetic}}};
    const Instructions name = {{op_name, {{id_unused_type}, "Unused"}}};
    const Instructions layout = {{op_decorate, {id_unused_type, block}},
                                 {op_member_decorate, {id_unused_type, 0, offset, 0}},
                                 {op_decorate, {unused, descriptor_set, 0}},
                                 {op_decorate, {unused, binding, 1}}};
    const Instructions types = {{op_type_struct, {id_unused_type, id_uint}},
                                {op_type_pointer, {id_unused_pointer, in_storage, id_unused_type}},
                                {op_type_pointer, {id_local_pointer, in_function, id_uint}},
                                {23, {id_pair_type, id_uint, 2}},  // OpTypeVector
                                {op_constant, {id_uint, id_scope, 3}},
                                {op_variable, {id_unused_pointer, unused, in_storage}}};
    const Instructions function = {{op_function, {id_void, id_main, 1, id_plain}},
                                   {op_label, {90}},
                                   {op_variable, {id_local_pointer, id_local, in_function}},
                                   {op_store, {id_local, id_42, is_volatile}},
                                   {op_load, {id_uint, 91, id_local, is_volatile}},
                                   {op_group_add, {id_uint, 92, id_scope, exclusive_scan, 91}},
                                   {op_array_length, {id_uint, 93, id_used, 1}},
                                   {op_composite_construct, {id_pair_type, 94, 92, 93}},
                                   {op_composite_extract, {id_uint, 95, 94, 0}},
                                   {op_composite_extract, {id_uint, 96, 94, 1}},
                                   {op_add, {id_uint, 97, 95, 96}},
                                   {op_add, {id_uint, 98, 97, 91}},
                                   {op_access_chain, {id_uint_pointer, 99, id_used, id_0}},
                                   {op_store, {99, 98}},
                                   {op_return, {}},
                                   {op_function_end, {}}};
    check_assembled(assembled({start, capabilities, entry_of_main, name, used_name, layout, used_layout, used_types,
                               types, function}),
                    45);
  }
}

TEST_CASE("vulkan: the language that a SPIR-V module was written in does not matter", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  for (const std::uint32_t language : {2U, 11U, 4000U}) {
    INFO("language " << language);
    const Instructions source = {{op_source, {language, 1}}};
    check_assembled(assembled({start, entry_of_main, source, used_name, used_layout, used_types, stored(id_42)}), 42);
  }
  refuse_assembled(
      assembled({start, {{op_capability, {40000}}}, entry_of_main, used_name, used_layout, used_types, stored(id_42)}),
      "Invalid capability operand: 40000: the SPIRV-Tools that Kiln was built with do not know this number");
}

TEST_CASE("vulkan: the size of a workgroup may be ids of constants", "[vulkan][spirv][feature]") {
  if (!Vulkan::instance().usable()) return;
  const Instructions entry = {
      entry_of_main[0], entry_of_main[1], {op_execution_mode_id, {id_main, local_size_id, id_1, id_1, id_1}}};
  check_assembled(assembled({start, entry, used_name, used_layout, used_types, stored(id_42)}), 42);
}

TEST_CASE("vulkan: a broadcast of SPIR-V 1.5 may come from an invocation that is no constant",
          "[vulkan][spirv][feature]") {
  if (!Vulkan::instance().usable()) return;
  if (Vulkan::instance().device()->info().kind != DeviceKind::software) return;
  constexpr std::uint32_t id_scope = id_more, subgroups = 61, ballot = 64, of_subgroup = 3;
  const Instructions capabilities = {{op_capability, {subgroups}}, {op_capability, {ballot}}};
  const Instructions entry = {
      entry_of_main[0], {op_entry_point, {{compute, id_main}, "main", {id_used}}}, entry_of_main[2]};
  const Instructions scope = {{op_constant, {id_uint, id_scope, of_subgroup}}};
  const Instructions function = {{op_function, {id_void, id_main, 0, id_plain}},
                                 {op_label, {90}},
                                 {op_access_chain, {id_uint_pointer, 91, id_used, id_0}},
                                 {op_load, {id_uint, 92, 91}},
                                 {op_broadcast, {id_uint, 93, id_scope, id_42, 92}},
                                 {op_store, {91, 93}},
                                 {op_return, {}},
                                 {op_function_end, {}}};
  check_assembled(
      assembled({start, capabilities, entry, used_name, used_layout, used_types, scope, function}, 0x00010500), 42);
}

TEST_CASE("vulkan: a SPIR-V module may name capabilities of other shaders and of floats", "[vulkan][spirv][feature]") {
  if (!Vulkan::instance().usable()) return;
  if (Vulkan::instance().device()->info().kind != DeviceKind::software) return;
  constexpr std::uint32_t geometry = 2, clip_distance = 32, preserve = 4466, to_even = 4467, to_zero = 4468;
  const auto module = [](std::initializer_list<std::uint32_t> capabilities, const Instructions& extensions,
                         const Instructions& modes) {
    Instructions all;
    for (const std::uint32_t each : capabilities) all.push_back({op_capability, {each}});
    return assembled({start, all, extensions, entry_of_main, modes, used_name, used_layout, used_types, stored(id_42)});
  };
  check_assembled(module({geometry, clip_distance}, {}, {}), 42);
  const Instructions controls = {{op_extension, {{}, "SPV_KHR_float_controls"}}};
  const auto mode_of = [](std::uint32_t capability) { return capability - 5; };
  check_assembled(module({preserve, to_even}, controls,
                         {{op_execution_mode, {id_main, mode_of(preserve), 32}},
                          {op_execution_mode, {id_main, mode_of(to_even), 32}}}),
                  42);
  refuse_assembled(module({to_zero}, controls, {{op_execution_mode, {id_main, mode_of(to_zero), 32}}}),
                   "capability RoundingModeRTZ, which " + Vulkan::instance().device()->info().name);
}

TEST_CASE("vulkan: only compute shaders of a SPIR-V module count as entry points", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  constexpr std::uint32_t id_vertex = id_more, vertex = 0;
  const Instructions memory_model = {entry_of_main[0]}, compute_main = {entry_of_main[1]}, size = {entry_of_main[2]};
  const Instructions compute_other = {{op_entry_point, {{compute, id_main}, "other"}}};
  const Instructions vertex_main = {{op_entry_point, {{vertex, id_vertex}, "main"}}};
  const Instructions empty = {{op_function, {id_void, id_vertex, 0, id_plain}},
                              {op_label, {id_more + 1}},
                              {op_return, {}},
                              {op_function_end, {}}};
  const auto module = [&](const Instructions& first, const Instructions& second) {
    const Instructions mode = second.empty() ? Instructions() : size;
    return assembled(
        {start, memory_model, first, second, mode, used_name, used_layout, used_types, empty, stored(id_42)});
  };
  check_assembled(module(vertex_main, compute_main), 42);
  check_assembled(module(compute_main, vertex_main), 42);
  check_assembled(module(vertex_main, compute_other), 42);
  check_assembled(module(vertex_main, compute_other), 42, {}, "other");
  refuse_assembled(module(vertex_main, {}), "entry point main is a vertex shader, expected a compute shader");
  refuse_assembled(module(vertex_main, compute_other), "no entry point 'none' (it has other)", {}, "none");
}

TEST_CASE("vulkan: specialization constants of a SPIR-V module that share a name are set by their numbers",
          "[vulkan][spirv][specialization]") {
  if (!Vulkan::instance().usable()) return;
  constexpr std::uint32_t id_first = id_more, id_second = id_more + 1, id_third = id_more + 2, id_sum = id_more + 3;
  const Instructions names = {
      {op_name, {{id_first}, "A"}}, {op_name, {{id_second}, "A"}}, {op_name, {{id_third}, "B"}}};
  const Instructions numbers = {{op_decorate, {id_first, spec_id, 0}},
                                {op_decorate, {id_second, spec_id, 7}},
                                {op_decorate, {id_third, spec_id, 5}}};
  const Instructions constants = {{op_spec_constant, {id_uint, id_first, 100}},
                                  {op_spec_constant, {id_uint, id_second, 20}},
                                  {op_spec_constant, {id_uint, id_third, 3}},
                                  {op_spec_constant_op, {id_uint, id_sum, op_add, id_first, id_second}},
                                  {op_spec_constant_op, {id_uint, id_sum + 1, op_add, id_sum, id_third}}};
  const std::string module = assembled(
      {start, entry_of_main, names, used_name, numbers, used_layout, used_types, constants, stored(id_sum + 1)});
  check_assembled(module, 123);
  check_assembled(module, 423, {{"constant0", "400"}});
  check_assembled(module, 153, {{"constant7", "50"}});
  check_assembled(module, 129, {{"constant5", "9"}});  // of B
  check_assembled(module, 129, {{"B", "9"}});
  refuse_assembled(module, "constant A: 2 specialization constants have this name. Use the names constant0, constant7",
                   {{"A", "1"}});
  refuse_assembled(module, "(it has constant0, constant7, B)", {{"C", "1"}});
  refuse_assembled(module, "constant constant5 sets the same specialization constant as B",
                   {{"B", "9"}, {"constant5", "8"}});
}

TEST_CASE("vulkan: the job's workgroup is that of its entry point", "[vulkan][spirv][specialization]") {
  if (!Vulkan::instance().usable()) return;
  constexpr std::uint32_t id_first = id_more, id_second = id_more + 1, id_other = id_more + 2;
  const Instructions entries = {entry_of_main[0],
                                {op_entry_point, {{compute, id_main}, "first"}},
                                {op_entry_point, {{compute, id_other}, "second"}},
                                {op_execution_mode_id, {id_main, local_size_id, id_first, id_1, id_1}},
                                {op_execution_mode_id, {id_other, local_size_id, id_second, id_1, id_1}}};
  const Instructions numbers = {{op_decorate, {id_first, spec_id, 0}}, {op_decorate, {id_second, spec_id, 1}}};
  const Instructions sizes = {{op_spec_constant, {id_uint, id_first, 4}}, {op_spec_constant, {id_uint, id_second, 8}}};
  const std::string module = assembled({start, entries, used_name, numbers, used_layout, used_types, sizes,
                                        stored(id_first), stored(id_second, id_other, 95)});
  check_assembled(module, 4, {}, "first");
  check_assembled(module, 8, {}, "second");
  check_assembled(module, 16, {}, "first", {16, 1, 1});
  check_assembled(module, 16, {}, "second", {16, 1, 1});
}

TEST_CASE("vulkan: a length of an array may be converted from an unsigned number", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  constexpr std::uint32_t id_wide = id_more, id_count = id_more + 1, id_length = id_more + 2,
                          id_shared_type = id_more + 3, id_pointer = id_more + 4, id_shared = id_more + 5,
                          op_convert_u = 113, int64 = 11, workgroup = 4;
  const Instructions entry = {
      entry_of_main[0], {op_entry_point, {{compute, id_main}, "main", {id_used, id_shared}}}, entry_of_main[2]};
  const Instructions number = {{op_decorate, {id_count, spec_id, 0}}};
  const Instructions types = {{op_type_int, {id_wide, 64, 0}},
                              {op_spec_constant, {id_wide, id_count, 2, 0}},
                              {op_spec_constant_op, {id_uint, id_length, op_convert_u, id_count}},
                              {op_type_array, {id_shared_type, id_uint, id_length}},
                              {op_type_pointer, {id_pointer, workgroup, id_shared_type}},
                              {op_variable, {id_pointer, id_shared, workgroup}}};
  Instructions function = stored(id_length);
  function.insert(function.begin() + 2, {op_load, {id_shared_type, 95, id_shared}});
  const std::string module =
      assembled({start, {{op_capability, {int64}}}, entry, used_name, number, used_layout, used_types, types, function},
                0x00010400);
  check_assembled(module, 2);
  check_assembled(module, 3, {{"constant0", "3"}});
  check_assembled(module, 3, {{"constant0", "0x100000003"}});
  refuse_assembled(module, "4000000 bytes of shared memory, the device has", {{"constant0", "1000000"}});
}

TEST_CASE("vulkan: a length of an array that has no value is named", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  constexpr std::uint32_t id_count = id_more, id_length = id_more + 1, op_divide = 134;
  const Instructions name = {{op_name, {{id_count}, "COUNT"}}};
  const Instructions number = {{op_decorate, {id_count, spec_id, 0}}};
  const Instructions length = {{op_spec_constant, {id_uint, id_count, 0}},
                               {op_spec_constant_op, {id_uint, id_length, op_divide, id_42, id_count}},
                               {op_type_array, {id_more + 2, id_uint, id_length}}};
  refuse_assembled(
      assembled({start, entry_of_main, name, used_name, number, used_layout, used_types, length, stored(id_42)}),
      "the length of an array, which depends on COUNT, cannot be evaluated");
  refuse_assembled(assembled({start, entry_of_main, used_name, number, used_layout, used_types, length, stored(id_42)}),
                   ": the length of an array cannot be evaluated");
}

TEST_CASE("vulkan: a SPIR-V module of the user runs, with names and numbers of its own", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  const Status status = run_module(module_of(adding_more), tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  const auto result = values_of_bytes<float>(tensors[1]);
  for (std::uint32_t i = 0; i < lanes; ++i) CHECK(result[i] == static_cast<float>(i) + 0.5F);
}

TEST_CASE("vulkan: a SPIR-V module has the entry point of the job", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  const Status status = run_module(module_of(adding_more), tensors, "other");
  INFO(status.text());
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Catch::Contains("no entry point 'other' (it has main)"));
}

TEST_CASE("vulkan: a SPIR-V module may have several entry points, of which the job names one", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  const std::string one = module_of(adding_more);
  std::string two = one.substr(0, 20);
  for (std::size_t at = 20; at < one.size();) {
    std::uint32_t word = 0;
    std::memcpy(&word, one.data() + at, sizeof word);
    std::string instruction = one.substr(at, std::size_t{word >> 16} * 4);
    at += instruction.size();
    two += instruction;
    if ((word & 0xffffU) != 15) continue;  // OpEntryPoint
    instruction.replace(instruction.find("main"), 4, "also");
    two += instruction;
  }
  const auto run = [&](const std::string& entry) {
    std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                                bytes_of_values(std::vector<double>{0.5})};
    Status status = run_module(two, tensors, entry);
    if (status.ok()) CHECK(values_of_bytes<float>(tensors[1])[3] == 3.5F);
    return status;
  };
  CHECK(run("main").ok());
  CHECK(run("also").ok());
  CHECK_THAT(run("none").message, Catch::Contains("no entry point 'none' (it has main, also)"));
}

TEST_CASE("vulkan: a SPIR-V module may have the layouts that GLSL may have", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  std::string text = adding_more;
  text.replace(text.find("layout(local"), 0, "#extension GL_EXT_scalar_block_layout : require\n");
  text.replace(text.find("std430, binding = 0) readonly buffer X { float x[]; }"), 53,
               "scalar, binding = 0) readonly buffer X { float first; vec3 v[]; }");
  text.replace(text.find("x[i]"), 4, "v[i / 3u][i % 3u]");
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  const Status status = run_module(module_of(text), tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(values_of_bytes<float>(tensors[1])[5] == 6.5F);
}

TEST_CASE("vulkan: blocks of a SPIR-V module without names have one each", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  const std::string named = module_of(
      "#version 450\nlayout(local_size_x = 1) in;\nlayout(std430, binding = 0) writeonly buffer Y { float y; };\n"
      "layout(set = 0, binding = 2) uniform P { float a; } p;\nlayout(set = 1, binding = 2) uniform Q { float a; } q;\n"
      "void main() { y = 10 * p.a + q.a; }\n");
  UserKernelSpec kernel;
  kernel.dialect = Dialect::code_object;
  kernel.path = "mine.spv";
  constexpr std::size_t head = 20;
  kernel.text = named.substr(0, head);
  for (std::size_t at = head; at < named.size();) {
    std::uint32_t word = 0;
    std::memcpy(&word, named.data() + at, sizeof word);
    const std::size_t length = std::size_t{word >> 16} * 4;
    const std::uint32_t op = word & 0xffffU;
    if (op != 5 && op != 6) kernel.text += named.substr(at, length);  // OpName, OpMemberName
    at += length;
  }
  kernel.bindings.resize(1);
  kernel.bindings[0].access = Access::write;
  kernel.bindings[0].bytes = 4;
  kernel.uniforms.push_back({"binding2.member0", Uniform::Type::number, {}});
  kernel.uniforms.push_back({"set1.binding2.member0", Uniform::Type::number, {}});
  std::vector<std::vector<std::byte>> tensors{std::vector<std::byte>(4), bytes_of_values(std::vector<double>{1, 2})};
  const Status status = support::run_kernel(kernel, tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(values_of_bytes<float>(tensors[0])[0] == 12);
}

TEST_CASE("vulkan: a SPIR-V module that is not valid does not reach the driver", "[vulkan][spirv]") {
  if (!Vulkan::instance().usable()) return;
  const std::string good = module_of(adding_more);
  std::vector<std::vector<std::byte>> tensors{bytes_of_values(ramp()), bytes_of_values(std::vector<float>(lanes)),
                                              bytes_of_values(std::vector<double>{0.5})};
  std::vector<std::string> bad{good.substr(0, good.size() / 8 * 4), good.substr(0, 18), good.substr(0, 20),
                               good + std::string(4, '\0')};
  bad.push_back(good);
  bad.back()[0] = 0;  // its magic number
  bad.push_back(good);
  bad.back()[12] = 1;  // its number of ids
  bad.push_back(good);
  bad.back()[6] = 9;  // SPIR-V 1.3 becomes 9.3
  for (const std::string& module : bad) {
    const Status status = run_module(module, tensors);
    INFO(status.text());
    CHECK(status.code == StatusCode::invalid_argument);
    CHECK_THAT(status.message, Catch::Contains("mine.spv") && Catch::Contains("SPIR-V"));
  }
}

}  // namespace kiln::vulkan
