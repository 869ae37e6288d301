// SPIR-V modules of tests, assembled from their instructions, and what they write.
//
// Thread-safety: from a test's own thread. Ownership: values.
#pragma once

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "vulkan/vulkan_under_test.hpp"

namespace kiln::vulkan {

// Operands of an instruction: words and texts.
struct Operands {
  Operands(std::initializer_list<std::uint32_t> given) : words(given) {}
  Operands(std::initializer_list<std::uint32_t> given, const std::string& text,
           std::initializer_list<std::uint32_t> behind = {})
      : words(given) {
    std::vector<std::uint32_t> letters(text.size() / 4 + 1);
    std::memcpy(letters.data(), text.data(), text.size());
    words.insert(words.end(), letters.begin(), letters.end());
    words.insert(words.end(), behind.begin(), behind.end());
  }
  std::vector<std::uint32_t> words;
};
using Instructions = std::vector<std::pair<std::uint32_t, Operands>>;

inline std::string assembled(const std::vector<Instructions>& parts, std::uint32_t version = 0x00010300) {
  std::vector<std::uint32_t> words{0x07230203, version, 0, 100, 0};
  for (const Instructions& part : parts) {
    for (const auto& [op, operands] : part) {
      words.push_back(static_cast<std::uint32_t>(operands.words.size() + 1) << 16 | op);
      words.insert(words.end(), operands.words.begin(), operands.words.end());
    }
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words.front()};
}

enum : std::uint32_t {
  op_source = 3,
  op_name = 5,
  op_extension = 10,
  op_memory_model = 14,
  op_entry_point = 15,
  op_execution_mode = 16,
  op_capability = 17,
  op_type_void = 19,
  op_type_int = 21,
  op_type_array = 28,
  op_type_runtime_array = 29,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_type_function = 33,
  op_constant = 43,
  op_spec_constant = 50,
  op_spec_constant_op = 52,
  op_function = 54,
  op_function_end = 56,
  op_variable = 59,
  op_load = 61,
  op_store = 62,
  op_access_chain = 65,
  op_array_length = 68,
  op_decorate = 71,
  op_member_decorate = 72,
  op_composite_construct = 80,
  op_composite_extract = 81,
  op_add = 128,
  op_label = 248,
  op_return = 253,
  op_execution_mode_id = 331,
  op_broadcast = 337,
  op_group_add = 349,
};
inline constexpr std::uint32_t compute = 5, local_size = 17, local_size_id = 38, in_function = 7, in_storage = 12;
inline constexpr std::uint32_t spec_id = 1, block = 2, array_stride = 6, binding = 33, descriptor_set = 34, offset = 35;

// Ids of every module here: the entry point's function, types, numbers, and the block `Used` with an array of uint.
enum : std::uint32_t {
  id_main = 60,
  id_void,
  id_plain,
  id_uint,
  id_array,
  id_used_type,
  id_used_pointer,
  id_uint_pointer,
  id_0,
  id_1,
  id_42,
  id_used,
  id_more = 80,
};
inline const Instructions start = {{op_capability, {1}}};
inline const Instructions entry_of_main = {{op_memory_model, {0, 1}},
                                           {op_entry_point, {{compute, id_main}, "main"}},
                                           {op_execution_mode, {id_main, local_size, 1, 1, 1}}};
inline const Instructions used_name = {{op_name, {{id_used_type}, "Used"}}};
inline const Instructions used_layout = {
    {op_decorate, {id_array, array_stride, 4}},         {op_decorate, {id_used_type, block}},
    {op_member_decorate, {id_used_type, 0, offset, 0}}, {op_member_decorate, {id_used_type, 1, offset, 4}},
    {op_decorate, {id_used, descriptor_set, 0}},        {op_decorate, {id_used, binding, 0}}};
inline const Instructions used_types = {{op_type_void, {id_void}},
                                        {op_type_function, {id_plain, id_void}},
                                        {op_type_int, {id_uint, 32, 0}},
                                        {op_type_runtime_array, {id_array, id_uint}},
                                        {op_type_struct, {id_used_type, id_uint, id_array}},
                                        {op_type_pointer, {id_used_pointer, in_storage, id_used_type}},
                                        {op_type_pointer, {id_uint_pointer, in_storage, id_uint}},
                                        {op_constant, {id_uint, id_0, 0}},
                                        {op_constant, {id_uint, id_1, 1}},
                                        {op_constant, {id_uint, id_42, 42}},
                                        {op_variable, {id_used_pointer, id_used, in_storage}}};

// The first word of `Used` gets the value.
inline Instructions stored(std::uint32_t value, std::uint32_t function = id_main, std::uint32_t next = 90) {
  return {{op_function, {id_void, function, 0, id_plain}},
          {op_label, {next}},
          {op_access_chain, {id_uint_pointer, next + 1, id_used, id_0}},
          {op_store, {next + 1, value}},
          {op_return, {}},
          {op_function_end, {}}};
}

// The words of `Used` after a run.
inline std::vector<std::uint32_t> run_assembled(const std::string& module, Status& status,
                                                std::vector<Define> constants = {}, std::string entry = "main",
                                                const std::array<std::uint32_t, 3>& workgroup = {0, 0, 0}) {
  UserKernelSpec kernel;
  kernel.dialect = Dialect::code_object;
  kernel.path = "mine.spv";
  kernel.text = module;
  kernel.entry = std::move(entry);
  kernel.constants = std::move(constants);
  kernel.workgroup = workgroup;
  kernel.bindings.resize(1);
  kernel.bindings[0].access = Access::read_write;
  kernel.bindings[0].bytes = 16;
  std::vector<std::vector<std::byte>> tensors{std::vector<std::byte>(16)};
  status = support::run_kernel(kernel, tensors);
  return support::values_of_bytes<std::uint32_t>(tensors[0]);
}

inline void check_assembled(const std::string& module, std::uint32_t first, std::vector<Define> constants = {},
                            std::string entry = "main", const std::array<std::uint32_t, 3>& workgroup = {0, 0, 0}) {
  Status status;
  const auto words = run_assembled(module, status, std::move(constants), std::move(entry), workgroup);
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(words[0] == first);
}

inline void refuse_assembled(const std::string& module, const std::string& words, std::vector<Define> constants = {},
                             std::string entry = "main") {
  Status status;
  run_assembled(module, status, std::move(constants), std::move(entry));
  INFO(status.text());
  CHECK((status.code == StatusCode::invalid_argument || status.code == StatusCode::unsupported));
  CHECK_THAT(status.message, Catch::Contains(words));
}

}  // namespace kiln::vulkan
