#include "amdgpu_pm4/code_object/kernel_code.hpp"

#include <algorithm>

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::array<std::string_view, 11> target_table = {"invalid", "gfx1030", "gfx1100", "gfx1101",
                                                           "gfx1102", "gfx1103", "gfx1150", "gfx1151",
                                                           "gfx1152", "gfx1200", "gfx1201"};
static_assert(target_table.size() == static_cast<std::size_t>(Target::gfx1201) + 1);

constexpr std::array<std::string_view, 8> user_sgpr_table = {
    "invalid",     "private_segment_buffer", "dispatch_pointer",    "queue_pointer", "kernarg_pointer",
    "dispatch_id", "flat_scratch_init",      "private_segment_size"};
static_assert(user_sgpr_table.size() == static_cast<std::size_t>(UserSgpr::private_segment_size) + 1);

constexpr std::array<std::string_view, 20> argument_table = {"invalid",
                                                             "global_buffer",
                                                             "by_value",
                                                             "dynamic_shared_pointer",
                                                             "hidden_none",
                                                             "hidden_block_count_x",
                                                             "hidden_block_count_y",
                                                             "hidden_block_count_z",
                                                             "hidden_group_size_x",
                                                             "hidden_group_size_y",
                                                             "hidden_group_size_z",
                                                             "hidden_remainder_x",
                                                             "hidden_remainder_y",
                                                             "hidden_remainder_z",
                                                             "hidden_global_offset_x",
                                                             "hidden_global_offset_y",
                                                             "hidden_global_offset_z",
                                                             "hidden_grid_dims",
                                                             "hidden_dynamic_lds_size",
                                                             "other"};
static_assert(argument_table.size() == static_cast<std::size_t>(ArgumentKind::other) + 1);

template <class Enum, std::size_t count>
std::string_view name_in(const std::array<std::string_view, count>& table, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < count ? table[index] : table[0];
}

}  // namespace

std::string_view to_string(Target target) noexcept { return name_in(target_table, target); }
std::string_view to_string(UserSgpr value) noexcept { return name_in(user_sgpr_table, value); }
std::string_view to_string(ArgumentKind kind) noexcept { return name_in(argument_table, kind); }

Target target_named(std::string_view name) noexcept {
  const auto found = std::find(target_table.begin() + 1, target_table.end(), name);
  return found == target_table.end() ? Target::invalid : static_cast<Target>(found - target_table.begin());
}

ArgumentKind argument_kind_named(std::string_view name) noexcept {
  const auto found = std::find(argument_table.begin() + 1, argument_table.end() - 1, name);
  return static_cast<ArgumentKind>(found - argument_table.begin());  // not found: the last, other
}

std::string target_names() {
  std::string names;
  for (std::size_t i = 1; i < target_table.size(); ++i) {
    if (i > 1) names += ", ";
    names += target_table[i];
  }
  return names;
}

bool is_dispatched(Target target) noexcept { return target >= Target::gfx1030 && target <= Target::gfx1103; }

const KernelCode* find_kernel(const CodeObject& object, std::string_view name) noexcept {
  for (const KernelCode& kernel : object.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

}  // namespace kiln::amdgpu_pm4
