#include "codec/module_uses.hpp"

#include <bit>
#include <optional>
#include <string_view>

#include "codec/reflection.hpp"

namespace kiln::vulkan {
namespace {

using Words = SpirvModule::Instruction;

std::uint32_t word_of(Words instruction, std::size_t i) { return SpirvModule::operand(instruction, i); }

unsigned place_of_width(std::uint32_t bits) noexcept { return bits == 16 ? 0 : bits == 32 ? 1 : 2; }

bool is_atomic(spv::Op code) noexcept {
  return (code >= spv::OpAtomicLoad && code <= spv::OpAtomicXor) || code == spv::OpAtomicFAddEXT ||
         code == spv::OpAtomicFMinEXT || code == spv::OpAtomicFMaxEXT;
}

// Of the place in memory that a pointer names; nullopt: another one.
std::optional<unsigned> place_of_storage(std::uint32_t storage) noexcept {
  switch (storage) {
    case spv::StorageClassStorageBuffer:
    case spv::StorageClassUniform:
      return 0;
    case spv::StorageClassWorkgroup:
      return 1;
    case spv::StorageClassImage:
      return 2;
    default:
      return std::nullopt;
  }
}

std::uint64_t uses_of_atomic(const SpirvModule& module, Words instruction) {
  const spv::Op code = SpirvModule::op(instruction);
  const Words pointer = module.definition(word_of(instruction, code == spv::OpAtomicStore ? 1 : 3));
  const Words type = module.definition(word_of(pointer, 1));
  const Words value = module.definition(word_of(type, 3));
  const auto place = place_of_storage(word_of(type, 2));
  const std::uint32_t bits = word_of(value, 2);
  if (SpirvModule::op(type) != spv::OpTypePointer || !place) return 0;
  if (SpirvModule::op(value) == spv::OpTypeFloat) {
    const bool picks = code == spv::OpAtomicFMinEXT || code == spv::OpAtomicFMaxEXT;
    return float_atomic(*place, place_of_width(bits), picks ? 2 : code == spv::OpAtomicFAddEXT ? 1 : 0);
  }
  if (SpirvModule::op(value) != spv::OpTypeInt || bits != 64) return 0;
  return *place == 0   ? bit_of(ModuleUse::buffer_int64_atomics)
         : *place == 1 ? bit_of(ModuleUse::shared_int64_atomics)
                       : 0;
}

std::uint64_t uses_of_group(const SpirvModule& module, Words instruction) {
  const spv::Op code = SpirvModule::op(instruction);
  const bool compares = code == spv::OpGroupNonUniformAllEqual;
  Words type =
      module.definition(compares ? word_of(module.definition(word_of(instruction, 4)), 1) : word_of(instruction, 1));
  if (SpirvModule::op(type) == spv::OpTypeVector) type = module.definition(word_of(type, 2));
  const bool integer = SpirvModule::op(type) == spv::OpTypeInt && word_of(type, 2) != 32;
  const bool half = SpirvModule::op(type) == spv::OpTypeFloat && word_of(type, 2) == 16;
  std::uint64_t uses = integer || half ? bit_of(ModuleUse::group_types) : 0;
  if (code == spv::OpGroupNonUniformBroadcast || code == spv::OpGroupNonUniformQuadBroadcast) {
    const spv::Op from = SpirvModule::op(module.definition(word_of(instruction, 5)));
    const bool constant = from == spv::OpConstant || from == spv::OpConstantNull || from == spv::OpSpecConstant ||
                          from == spv::OpSpecConstantOp;
    if (!constant) uses |= bit_of(ModuleUse::dynamic_broadcast);
  }
  return uses;
}

std::uint64_t uses_of(const SpirvModule& module, Words instruction) {
  const spv::Op code = SpirvModule::op(instruction);
  if (is_atomic(code)) return uses_of_atomic(module, instruction);
  if (code >= spv::OpGroupNonUniformElect && code <= spv::OpGroupNonUniformQuadSwap) {
    return uses_of_group(module, instruction);
  }
  if (code != spv::OpReadClockKHR) return 0;
  const bool of_subgroup = module.constant(word_of(instruction, 3)) == std::uint32_t{spv::ScopeSubgroup};
  return bit_of(of_subgroup ? ModuleUse::subgroup_clock : ModuleUse::device_clock);
}

// Of two modes that exclude each other.
std::uint64_t differences(std::uint64_t uses, unsigned mode, ModuleUse differs, ModuleUse differs_more) noexcept {
  const auto widths = [uses](unsigned of) { return uses / float_control(of, 0) & 7U; };
  const std::uint64_t one = widths(mode), other = widths(mode + 1);
  constexpr std::uint64_t all_but_32 = 5;
  if (one == 0 || other == 0) return 0;
  return bit_of(differs) | ((one & all_but_32) != 0 && (other & all_but_32) != 0 ? bit_of(differs_more) : 0);
}

}  // namespace

std::uint64_t uses_of(const SpirvModule& module) {
  std::uint64_t uses = 0;
  for (const Words mode : module.execution_modes()) {
    const std::uint32_t what = word_of(mode, 2);
    if (what == spv::ExecutionModeLocalSizeId) uses |= bit_of(ModuleUse::local_size_id);
    if (what < spv::ExecutionModeDenormPreserve || what > spv::ExecutionModeRoundingModeRTZ) continue;
    uses |= float_control(what - spv::ExecutionModeDenormPreserve, place_of_width(word_of(mode, 3)));
  }
  uses |= differences(uses, 0, ModuleUse::denorm_differs, ModuleUse::denorm_differs_more);
  uses |= differences(uses, 3, ModuleUse::rounding_differs, ModuleUse::rounding_differs_more);
  for (const SpirvVariable& variable : module.variables()) {
    const bool initialized = module.definition(variable.id).size() > 4;
    if (variable.storage == spv::StorageClassWorkgroup && variable.used && initialized) {
      uses |= bit_of(ModuleUse::shared_initializer);
    }
  }
  module.for_each_reached([&](Words instruction) { uses |= uses_of(module, instruction); });
  return uses;
}

ModuleNeeds needs_of(const SpirvModule& module) {
  ModuleNeeds needs;
  needs.version = module.version();
  needs.workgroup = module.workgroup();
  needs.shared_bytes = module.bytes_of_shared();
  needs.uses = uses_of(module);
  needs.capabilities.assign(module.capabilities().begin(), module.capabilities().end());
  return needs;
}

std::string names_of(std::uint64_t uses) {
  constexpr std::string_view names[] = {"maintenance4",
                                        "shaderZeroInitializeWorkgroupMemory",
                                        "shaderSubgroupExtendedTypes",
                                        "subgroupBroadcastDynamicId",
                                        "shaderBufferInt64Atomics",
                                        "shaderSharedInt64Atomics",
                                        "shaderSubgroupClock",
                                        "shaderDeviceClock",
                                        "denormBehaviorIndependence",
                                        "denormBehaviorIndependence of all widths",
                                        "roundingModeIndependence",
                                        "roundingModeIndependence of all widths"};
  constexpr std::string_view places[] = {"Buffer", "Shared", "Image"}, widths[] = {"16", "32", "64"},
                             kinds[] = {"Atomics", "AtomicAdd", "AtomicMinMax"},
                             modes[] = {"DenormPreserve", "DenormFlushToZero", "SignedZeroInfNanPreserve",
                                        "RoundingModeRTE", "RoundingModeRTZ"};
  constexpr auto atomics = static_cast<unsigned>(ModuleUse::float_atomics),
                 controls = static_cast<unsigned>(ModuleUse::float_controls);
  const auto name_of = [&](unsigned i) {
    if (i < atomics) return std::string(names[i]);
    const unsigned of = i - (i < controls ? atomics : controls);
    if (i >= controls) return "shader" + std::string(modes[of / 3]) + "Float" + std::string(widths[of % 3]);
    return "shader" + std::string(places[of / 9]) + "Float" + std::string(widths[of / 3 % 3]) +
           std::string(kinds[of % 3]);
  };
  std::string all;
  for (; uses != 0; uses &= uses - 1) {
    all += (all.empty() ? "" : ", ") + name_of(static_cast<unsigned>(std::countr_zero(uses)));
  }
  return all;
}

}  // namespace kiln::vulkan
