#include "amdgpu_pm4/code_object/code_object.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include <elf.h>

#include <kiln/elf_notes.hpp>

#include "amdgpu_pm4/code_object/elf_file.hpp"
#include "amdgpu_pm4/code_object/metadata.hpp"

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

namespace {

constexpr std::uint32_t note_type_metadata = 32;

constexpr std::array<std::pair<std::uint32_t, Target>, 10> machines = {{{0x36, Target::gfx1030},
                                                                        {0x41, Target::gfx1100},
                                                                        {0x46, Target::gfx1101},
                                                                        {0x47, Target::gfx1102},
                                                                        {0x44, Target::gfx1103},
                                                                        {0x43, Target::gfx1150},
                                                                        {0x4A, Target::gfx1151},
                                                                        {0x55, Target::gfx1152},
                                                                        {0x48, Target::gfx1200},
                                                                        {0x4E, Target::gfx1201}}};

std::string hex_of_flags(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

Result<Target> target_of(std::uint32_t flags) {
  if ((flags & ~0xFFu) != 0) {
    return unsupported("ELF flags " + hex_of_flags(flags) +
                       ": targets with XNACK, SRAM ECC or generic versions are not supported");
  }
  for (const auto& [machine, target] : machines) {
    if (machine == flags) return target;
  }
  return unsupported("AMD GPU machine " + hex_of_flags(flags) + ", expected one of " + target_names());
}

Result<std::uint32_t> version_of(std::uint8_t abi_version) {
  constexpr std::uint8_t first_abi = 2, last_abi = 3;  // of version 4 and 5
  if (abi_version < first_abi || abi_version > last_abi) {
    return unsupported("code object version " + std::to_string(abi_version + 2) + " (ELF ABI version " +
                       std::to_string(abi_version) + "), expected 4 or 5");
  }
  return abi_version + 2u;
}

Result<ObjectMetadata> metadata_of(const ElfFile& file) {
  std::vector<std::span<const std::byte>> places;
  for (const ElfSection& section : file.sections) {
    if (section.type == SHT_NOTE) places.push_back(section.contents);
  }
  for (const ElfSegment& segment : file.segments) {
    if (segment.type == PT_NOTE) places.push_back(segment.contents);
  }
  for (const auto& notes : places) {
    const auto found = read_notes(notes);
    if (!found) return found.error();
    for (const ElfNote& note : *found) {
      if (note.owner == "AMDGPU" && note.type == note_type_metadata) return read_metadata(note.contents);
    }
  }
  return corrupt("the code object has no metadata note and therefore no kernels");
}

Status check_agreement(const ObjectMetadata& metadata, std::uint32_t version, Target target) {
  if (metadata.version != version) {
    return corrupt("code object version is " + std::to_string(version) + " in the ELF header and " +
                   std::to_string(metadata.version) + " in the metadata");
  }
  const std::string expected = "amdgcn-amd-amdhsa--" + std::string(to_string(target));
  if (metadata.target != expected) {
    return corrupt("target is '" + expected + "' in the ELF header and '" + metadata.target.substr(0, 80) +
                   "' in the metadata");
  }
  return {};
}

using Symbols = std::map<std::string_view, const PlacedSymbol*>;

Result<std::uint64_t> entry_of(const KernelDescriptor& descriptor, std::uint64_t descriptor_at, const LaidOut& laid) {
  const std::uint64_t entry = descriptor_at + static_cast<std::uint64_t>(descriptor.entry);  // modulo 2^64
  for (const CodeRange& range : laid.code) {
    if (entry >= range.begin && entry < range.end && range.end - entry >= 4) {
      if (entry % 256 == 0) return entry;
      return corrupt("entry point offset is " + std::to_string(entry) + ", expected a multiple of 256");
    }
  }
  return corrupt("entry point, " + std::to_string(descriptor.entry) +
                 " bytes from the kernel descriptor, is outside the code");
}

Result<KernelCode> read_kernel(KernelMetadata metadata, const LaidOut& laid, const Symbols& symbols, Target target) {
  const auto found = symbols.find(metadata.descriptor);
  if (found == symbols.end()) return corrupt("kernel descriptor symbol '" + metadata.descriptor + "' is missing");
  const PlacedSymbol& symbol = *found->second;
  if (symbol.size != descriptor_bytes || symbol.offset % descriptor_bytes != 0) {
    return corrupt("kernel descriptor has " + std::to_string(symbol.size) + " bytes at offset " +
                   std::to_string(symbol.offset) + ", expected 64 bytes at a multiple of 64");
  }
  const auto bytes = std::span(laid.image).subspan(symbol.offset).first<descriptor_bytes>();
  const auto descriptor = read_descriptor(bytes, target);
  if (!descriptor) return descriptor.error();
  if (Status status = compare(*descriptor, metadata); !status.ok()) return status;
  const auto entry = entry_of(*descriptor, symbol.offset, laid);
  if (!entry) return entry.error();
  const auto function = symbols.find(metadata.name);
  if (function != symbols.end() && function->second->offset != *entry) {
    return corrupt("entry point offset is " + std::to_string(*entry) + " in the kernel descriptor and " +
                   std::to_string(function->second->offset) + " in the symbol table");
  }
  KernelCode kernel;
  kernel.name = std::move(metadata.name);
  kernel.entry = *entry;
  kernel.rsrc1 = descriptor->rsrc1, kernel.rsrc2 = descriptor->rsrc2, kernel.rsrc3 = descriptor->rsrc3;
  kernel.properties = descriptor->properties;
  kernel.lds_bytes = descriptor->lds_bytes;
  kernel.scratch_bytes = descriptor->scratch_bytes;
  kernel.kernarg_bytes = descriptor->kernarg_bytes;
  kernel.kernarg_alignment = metadata.kernarg_alignment;
  kernel.wave_lanes = metadata.wave_lanes;
  kernel.sgprs = metadata.sgprs, kernel.vgprs = metadata.vgprs;
  kernel.user_sgprs = user_sgprs(*descriptor);
  kernel.user_sgpr_slots = user_sgpr_slots(*descriptor);
  kernel.required_workgroup = metadata.required_workgroup;
  kernel.max_workgroup_lanes = metadata.max_workgroup_lanes;
  kernel.dynamic_stack = metadata.dynamic_stack;
  kernel.arguments = std::move(metadata.arguments);
  return kernel;
}

Status read_kernels(ObjectMetadata metadata, const LaidOut& laid, CodeObject& object) {
  Symbols symbols;
  for (const PlacedSymbol& symbol : laid.symbols) symbols.emplace(symbol.name, &symbol);
  for (KernelMetadata& each : metadata.kernels) {
    const std::string name = "kernel '" + each.name + "'";
    if (find_kernel(object, each.name) != nullptr) return corrupt(name + " is declared twice");
    auto kernel = read_kernel(std::move(each), laid, symbols, object.target);
    if (!kernel) return kernel.error().within(name);
    object.kernels.push_back(std::move(*kernel));
  }
  std::sort(object.kernels.begin(), object.kernels.end(),
            [](const KernelCode& a, const KernelCode& b) { return a.name < b.name; });
  return {};
}

}  // namespace

Result<CodeObject> read_code_object(std::span<const std::byte> bytes) noexcept try {
  const auto file = read_elf(bytes);
  if (!file) return file.error();
  CodeObject object;
  const auto version = version_of(file->abi_version);
  if (!version) return version.error();
  object.version = *version;
  const auto target = target_of(file->flags);
  if (!target) return target.error();
  object.target = *target;
  auto metadata = metadata_of(*file);
  if (!metadata) return metadata.error();
  if (metadata->kernels.empty()) return invalid_argument("no kernel found, expected a function declared __kernel");
  if (Status status = check_agreement(*metadata, object.version, object.target); !status.ok()) return status;
  auto laid = file->type == ElfType::relocatable ? lay_out_relocatable(*file) : lay_out_linked(*file);
  if (!laid) return laid.error();
  if (Status status = read_kernels(std::move(*metadata), *laid, object); !status.ok()) return status;
  object.image = std::move(laid->image);
  object.address_words = std::move(laid->address_words);
  return object;
} catch (...) {
  return caught();
}

namespace {

std::string workgroup_text(const KernelCode& kernel) {
  const auto& size = kernel.required_workgroup;
  if (size[0] == 0) return "up to " + std::to_string(kernel.max_workgroup_lanes) + " lanes";
  return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]) + " lanes";
}

std::string user_sgpr_text(const KernelCode& kernel) {
  std::string text = std::to_string(kernel.user_sgprs);
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    text += ", " + std::string(to_string(slot.value)) + " in s" + std::to_string(slot.first);
    if (slot.count > 1) text += " to s" + std::to_string(slot.first + slot.count - 1);
  }
  return text;
}

std::string argument_text(const KernelCode& kernel) {
  std::string text;
  for (const KernelArgument& argument : kernel.arguments) {
    if (!text.empty()) text += ", ";
    text += argument.value_kind;
    if (!argument.name.empty()) text += " " + argument.name;
    text += " of " + std::to_string(argument.size) + " at " + std::to_string(argument.offset);
  }
  return text.empty() ? "none" : text;
}

std::string dispatch_text(const CodeObject& object, const KernelCode& kernel) {
  if (const Status status = check_dispatch(object, kernel); !status.ok()) return "refused: " + status.message;
  return kernel.required_workgroup[0] != 0 ? "offered" : "offered where the source declares a workgroup";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts_of(const CodeObject& object, const KernelCode& kernel) {
  return {{"wave", std::to_string(kernel.wave_lanes) + " lanes"},
          {"workgroup", workgroup_text(kernel)},
          {"SGPRs", std::to_string(kernel.sgprs)},
          {"VGPRs", std::to_string(kernel.vgprs)},
          {"LDS", std::to_string(kernel.lds_bytes) + " bytes"},
          {"scratch", std::to_string(kernel.scratch_bytes) + " bytes a lane"},
          {"kernarg", std::to_string(kernel.kernarg_bytes) + " bytes"},
          {"user SGPRs", user_sgpr_text(kernel)},
          {"arguments", argument_text(kernel)},
          {"dispatch", dispatch_text(object, kernel)}};
}

std::string describe(const CodeObject& object) {
  std::string text = "code object version " + std::to_string(object.version) + " for " +
                     std::string(to_string(object.target)) + ", " + std::to_string(object.image.size()) +
                     " bytes in memory, " + std::to_string(object.kernels.size()) +
                     (object.kernels.size() == 1 ? " kernel\n" : " kernels\n");
  for (const KernelCode& kernel : object.kernels) {
    text += kernel.name + "\n";
    for (const auto& [what, value] : facts_of(object, kernel)) text += "  " + what + ": " + value + "\n";
  }
  return text;
}

}  // namespace kiln::amdgpu_pm4
