#include "amdgpu_pm4/code_object/kernel_descriptor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace kiln::amdgpu_pm4 {
namespace {

enum class Generation : std::uint8_t { gfx10_3, gfx11, gfx12 };

Generation generation_of(Target target) {
  if (target == Target::gfx1030) return Generation::gfx10_3;
  return target >= Target::gfx1200 ? Generation::gfx12 : Generation::gfx11;
}

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

template <class Field>
Field field_at(std::span<const std::byte> bytes, std::size_t offset) {
  Field field;
  std::memcpy(&field, bytes.data() + offset, sizeof field);
  return field;
}

constexpr std::uint32_t bits(unsigned last, unsigned first) {
  return (last == 31 ? ~0u : (1u << (last + 1)) - 1u) & ~((1u << first) - 1u);
}

// Bits that a compiler leaves 0 for the loader, the debugger or the future. The number of SGPRs (9 to 6) is not among
// them: these targets ignore it.
constexpr std::uint32_t zero_bits_of_rsrc1 = bits(11, 10) | bits(20, 20) | bits(22, 22) | bits(25, 24) | bits(28, 27);
constexpr std::uint32_t zero_bits_of_rsrc2 = bits(6, 6) | bits(14, 13) | bits(23, 15) | bits(31, 31);

std::uint32_t zero_bits_of_rsrc3(Generation generation) {
  switch (generation) {
    case Generation::gfx10_3:
      return bits(31, 4);
    case Generation::gfx11:
      return bits(30, 10);  // 31: image instructions; 9 to 4: instructions to fetch ahead
    default:
      return bits(3, 0) | bits(12, 12) | bits(30, 14);
  }
}

Status check_zero(std::string_view field, std::uint32_t value, std::uint32_t zero) {
  if ((value & zero) == 0) return {};
  return corrupt(std::string(field) + " is " + hexadecimal(value) + ": its bits " + hexadecimal(value & zero) +
                 " must be 0");
}

constexpr std::uint16_t wave32_bit = 1 << 10, dynamic_stack_bit = 1 << 11;
constexpr std::uint32_t zero_bits_of_properties = bits(9, 7) | bits(15, 12);
constexpr std::uint32_t most_user_sgprs = 16;
constexpr std::uint32_t most_lds_bytes = 64 << 10;

struct SlotRule {
  UserSgpr value;
  std::uint32_t count;
};
// In order of their bits in the properties.
constexpr std::array<SlotRule, 7> slot_rules = {{{UserSgpr::private_segment_buffer, 4},
                                                 {UserSgpr::dispatch_pointer, 2},
                                                 {UserSgpr::queue_pointer, 2},
                                                 {UserSgpr::kernarg_pointer, 2},
                                                 {UserSgpr::dispatch_id, 2},
                                                 {UserSgpr::flat_scratch_init, 2},
                                                 {UserSgpr::private_segment_size, 1}}};

Status check_fields(const KernelDescriptor& descriptor, Target target) {
  const Generation generation = generation_of(target);
  for (const Status& status : {check_zero("compute_pgm_rsrc1", descriptor.rsrc1, zero_bits_of_rsrc1),
                               check_zero("compute_pgm_rsrc2", descriptor.rsrc2, zero_bits_of_rsrc2),
                               check_zero("compute_pgm_rsrc3", descriptor.rsrc3, zero_bits_of_rsrc3(generation)),
                               check_zero("kernel_code_properties", descriptor.properties, zero_bits_of_properties)}) {
    if (!status.ok()) return status;
  }
  if ((descriptor.rsrc2 >> 11 & 3) == 3) return corrupt("compute_pgm_rsrc2: lane numbers of 4 dimensions");
  if (descriptor.lds_bytes > most_lds_bytes) {
    return corrupt(std::to_string(descriptor.lds_bytes) + " bytes of LDS, a workgroup has " +
                   std::to_string(most_lds_bytes));
  }
  if (descriptor.scratch_bytes > 0 && (descriptor.rsrc2 & 1) == 0) {
    return corrupt(std::to_string(descriptor.scratch_bytes) +
                   " bytes of scratch, which compute_pgm_rsrc2 switches off");
  }
  std::uint32_t needed = 0;
  for (const UserSgprSlot& slot : user_sgpr_slots(descriptor)) needed += slot.count;
  const std::uint32_t count = user_sgprs(descriptor);
  if (count > most_user_sgprs || needed > count) {
    return corrupt("compute_pgm_rsrc2 loads " + std::to_string(count) + " user SGPRs, its properties need " +
                   std::to_string(needed) + " and there are " + std::to_string(most_user_sgprs));
  }
  return {};
}

}  // namespace

Result<KernelDescriptor> read_descriptor(std::span<const std::byte, descriptor_bytes> bytes, Target target) {
  const auto all_zero = [&bytes](std::size_t begin, std::size_t end) {
    const auto part = bytes.subspan(begin, end - begin);
    return std::all_of(part.begin(), part.end(), [](std::byte byte) { return byte == std::byte{0}; });
  };
  if (!all_zero(12, 16) || !all_zero(24, 44) || !all_zero(60, 64)) return corrupt("its reserved bytes are not 0");
  if (!all_zero(58, 60)) return corrupt("kernarg_preload is " + hexadecimal(field_at<std::uint16_t>(bytes, 58)));
  KernelDescriptor descriptor;
  descriptor.lds_bytes = field_at<std::uint32_t>(bytes, 0);
  descriptor.scratch_bytes = field_at<std::uint32_t>(bytes, 4);
  descriptor.kernarg_bytes = field_at<std::uint32_t>(bytes, 8);
  descriptor.entry = field_at<std::int64_t>(bytes, 16);
  descriptor.rsrc3 = field_at<std::uint32_t>(bytes, 44);
  descriptor.rsrc1 = field_at<std::uint32_t>(bytes, 48);
  descriptor.rsrc2 = field_at<std::uint32_t>(bytes, 52);
  descriptor.properties = field_at<std::uint16_t>(bytes, 56);
  if (Status status = check_fields(descriptor, target); !status.ok()) return status;
  return descriptor;
}

Status compare(const KernelDescriptor& descriptor, const KernelMetadata& metadata) {
  const auto differ = [](std::string_view what, std::uint64_t here, std::uint64_t there) {
    return corrupt(std::string(what) + " is " + std::to_string(here) + " in the kernel descriptor and " +
                   std::to_string(there) + " in the metadata");
  };
  if (descriptor.lds_bytes != metadata.lds_bytes) return differ("LDS", descriptor.lds_bytes, metadata.lds_bytes);
  if (descriptor.scratch_bytes != metadata.scratch_bytes) {
    return differ("scratch", descriptor.scratch_bytes, metadata.scratch_bytes);
  }
  if (descriptor.kernarg_bytes != metadata.kernarg_bytes) {
    return differ("the kernarg segment's size", descriptor.kernarg_bytes, metadata.kernarg_bytes);
  }
  const std::uint32_t lanes = has_wave32(descriptor) ? 32 : 64;
  if (lanes != metadata.wave_lanes) return differ("the wave's size", lanes, metadata.wave_lanes);
  if (has_dynamic_stack(descriptor) != metadata.dynamic_stack) {
    return differ("the dynamic stack", has_dynamic_stack(descriptor), metadata.dynamic_stack);
  }
  const std::uint32_t granule = lanes == 32 ? 8 : 4;
  const std::uint32_t allocated = ((descriptor.rsrc1 & 0x3F) + 1) * granule;
  if (metadata.vgprs > allocated) return differ("the number of VGPRs", allocated, metadata.vgprs);
  return {};
}

bool has_wave32(const KernelDescriptor& descriptor) noexcept { return (descriptor.properties & wave32_bit) != 0; }

bool has_dynamic_stack(const KernelDescriptor& descriptor) noexcept {
  return (descriptor.properties & dynamic_stack_bit) != 0;
}

std::uint32_t user_sgprs(const KernelDescriptor& descriptor) noexcept { return descriptor.rsrc2 >> 1 & 31; }

std::vector<UserSgprSlot> user_sgpr_slots(const KernelDescriptor& descriptor) {
  std::vector<UserSgprSlot> slots;
  std::uint32_t first = 0;
  for (std::size_t bit = 0; bit < slot_rules.size(); ++bit) {
    if ((descriptor.properties >> bit & 1) == 0) continue;
    slots.push_back({slot_rules[bit].value, first, slot_rules[bit].count});
    first += slot_rules[bit].count;
  }
  return slots;
}

}  // namespace kiln::amdgpu_pm4
