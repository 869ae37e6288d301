#include "amdgpu_pm4/code_object/code_object.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::amdgpu_pm4 {
namespace {

std::string named(const KernelArgument& argument) {
  const std::string where = "at offset " + std::to_string(argument.offset);
  return "argument " + (argument.name.empty() ? where : "'" + argument.name + "' " + where);
}

Status refuse(const KernelArgument& argument) {
  return unsupported(named(argument) + " has kind " + argument.value_kind + ", which is not supported");
}

std::size_t count_of(const KernelCode& kernel, ArgumentKind kind) {
  return static_cast<std::size_t>(std::count_if(kernel.arguments.begin(), kernel.arguments.end(),
                                                [kind](const KernelArgument& each) { return each.kind == kind; }));
}

Status check_count(const KernelCode& kernel, ArgumentKind kind, std::size_t given, std::string_view what) {
  const std::size_t expected = count_of(kernel, kind);
  if (given == expected) return {};
  return invalid_argument("kernel '" + kernel.name + "' takes " + std::to_string(expected) + " " + std::string(what) +
                          ", found " + std::to_string(given));
}

std::uint32_t dimensions_of(const KernargValues& values) {
  for (std::uint32_t axis = 2; axis > 0; --axis) {
    if (values.grid[axis] != 1 || values.workgroup[axis] != 1) return axis + 1;
  }
  return 1;
}

// Where the next argument's local memory begins.
std::uint64_t place_local(const KernelArgument& argument, std::uint64_t end) {
  const std::uint64_t alignment = std::max<std::uint64_t>(argument.pointee_alignment, 16);
  return (end + alignment - 1) / alignment * alignment;
}

// What a hidden argument tells; 0 for those that are 0 in every dispatch of whole workgroups from the origin.
std::uint64_t hidden_value(const KernelCode& kernel, ArgumentKind kind, const KernargValues& values) {
  const auto axis = [kind](ArgumentKind first) {
    return static_cast<std::size_t>(kind) - static_cast<std::size_t>(first);
  };
  if (kind >= ArgumentKind::hidden_block_count_x && kind <= ArgumentKind::hidden_block_count_z) {
    return values.grid[axis(ArgumentKind::hidden_block_count_x)];
  }
  if (kind >= ArgumentKind::hidden_group_size_x && kind <= ArgumentKind::hidden_group_size_z) {
    return values.workgroup[axis(ArgumentKind::hidden_group_size_x)];
  }
  if (kind == ArgumentKind::hidden_dynamic_lds_size) return dynamic_local_bytes(kernel, values.local_bytes);
  return kind == ArgumentKind::hidden_grid_dims ? dimensions_of(values) : 0;
}

}  // namespace

Status check_dispatch(const CodeObject& object, const KernelCode& kernel) {
  if (!is_dispatched(object.target)) {
    return unsupported("dispatch on " + std::string(to_string(object.target)) + " is unsupported: expected gfx1030, " +
                       "gfx1100, gfx1101, gfx1102 or gfx1103");
  }
  const std::string name = "kernel '" + kernel.name + "'";
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    if (slot.value == UserSgpr::dispatch_pointer || slot.value == UserSgpr::queue_pointer ||
        slot.value == UserSgpr::dispatch_id) {
      return unsupported(name + " needs " + std::string(to_string(slot.value)) + ", which is not supported");
    }
  }
  if (kernel.dynamic_stack) {
    return unsupported(name + " needs a stack of unknown depth: recursion or a call of an unknown function");
  }
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind == ArgumentKind::other) return refuse(argument).within(name);
  }
  return {};
}

Status write_kernarg(const KernelCode& kernel, const KernargValues& values, std::span<std::byte> segment) {
  for (const Status& status :
       {check_count(kernel, ArgumentKind::global_buffer, values.buffers.size(), "buffers"),
        check_count(kernel, ArgumentKind::by_value, values.by_value.size(), "arguments by value"),
        check_count(kernel, ArgumentKind::local_pointer, values.local_bytes.size(), "local memory sizes")}) {
    if (!status.ok()) return status;
  }
  std::fill(segment.begin(), segment.end(), std::byte{0});
  std::size_t buffer = 0, by_value = 0, local = 0;
  std::uint64_t local_end = kernel.lds_bytes;
  for (const KernelArgument& argument : kernel.arguments) {
    std::byte* const to = segment.data() + argument.offset;
    switch (argument.kind) {
      case ArgumentKind::global_buffer:
        std::memcpy(to, &values.buffers[buffer++], sizeof(std::uint64_t));
        break;
      case ArgumentKind::by_value: {
        const std::span<const std::byte> bytes = values.by_value[by_value++];
        if (bytes.size() != argument.size) {
          return invalid_argument(named(argument) + " of kernel '" + kernel.name + "' takes " +
                                  std::to_string(argument.size) + " bytes, found " + std::to_string(bytes.size()));
        }
        std::copy(bytes.begin(), bytes.end(), to);
        break;
      }
      case ArgumentKind::local_pointer: {
        const auto place = static_cast<std::uint32_t>(place_local(argument, local_end));
        std::memcpy(to, &place, sizeof place);
        local_end = place + values.local_bytes[local++];
        break;
      }
      case ArgumentKind::hidden_none:
        break;
      case ArgumentKind::other:
      case ArgumentKind::invalid:
        return refuse(argument).within("kernel '" + kernel.name + "'");
      default: {
        const std::uint64_t value = hidden_value(kernel, argument.kind, values);
        std::memcpy(to, &value, argument.size);  // little-endian; 2, 4 or 8 bytes, as the metadata was checked for
        break;
      }
    }
  }
  return {};
}

std::uint64_t dynamic_local_bytes(const KernelCode& kernel, std::span<const std::uint64_t> local_bytes) {
  std::uint64_t end = kernel.lds_bytes;
  std::size_t local = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind != ArgumentKind::local_pointer || local == local_bytes.size()) continue;
    end = place_local(argument, end) + local_bytes[local++];
  }
  return end - kernel.lds_bytes;
}

std::vector<std::string> buffer_names(const KernelCode& kernel) {
  std::vector<std::string> names;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind == ArgumentKind::global_buffer) names.push_back(argument.name);
  }
  return names;
}

}  // namespace kiln::amdgpu_pm4
