#include "amdgpu_pm4/code_object/metadata.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

namespace kiln::amdgpu_pm4 {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_note_bytes = std::size_t{4} << 20;
constexpr std::size_t most_kernels = 4096;
constexpr std::size_t most_arguments = 1024;
constexpr std::size_t deepest = 16;  // the format needs five levels
constexpr std::uint32_t most_kernarg_bytes = 64 << 10;

// Walks through the note before it is made into values: the reader recurses as deep as its input says.
class Depth : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= deepest; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override { return ++depth_ <= deepest; }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::size_t depth_ = 0;
};

// What a function below throws to leave the note; caught where the note is read.
struct Flaw {
  std::string message;
  StatusCode code = StatusCode::corrupt;  // unsupported: a sound note of what the device cannot do
};

const Json& member(const Json& map, const char* key) {
  if (!map.is_object()) throw Flaw{std::string("the parent of ") + key + " is not a map"};
  const auto found = map.find(key);
  if (found == map.end()) throw Flaw{std::string(key) + " is missing"};
  return *found;
}

std::string text(const Json& map, const char* key) {
  const Json& value = member(map, key);
  if (!value.is_string()) throw Flaw{std::string(key) + " is not a string"};
  return value.get<std::string>();
}

std::uint32_t number_of(const Json& value, const char* key, std::uint64_t most) {
  if (!value.is_number_unsigned()) throw Flaw{std::string(key) + " is not an unsigned integer"};
  const auto number = value.get<std::uint64_t>();
  if (number > most) {
    throw Flaw{std::string(key) + " is " + std::to_string(number) + ", expected at most " + std::to_string(most)};
  }
  return static_cast<std::uint32_t>(number);
}

std::uint32_t number(const Json& map, const char* key, std::uint64_t most) {
  return number_of(member(map, key), key, most);
}

const Json& array(const Json& map, const char* key, std::size_t most) {
  const Json& value = member(map, key);
  if (!value.is_array()) throw Flaw{std::string(key) + " is not an array"};
  if (value.size() > most) throw Flaw{std::string(key) + " has " + std::to_string(value.size()) + " entries"};
  return value;
}

std::uint32_t bytes_of(ArgumentKind kind) {  // 0: any number
  switch (kind) {
    case ArgumentKind::global_buffer:
    case ArgumentKind::hidden_global_offset_x:
    case ArgumentKind::hidden_global_offset_y:
    case ArgumentKind::hidden_global_offset_z:
      return 8;
    case ArgumentKind::local_pointer:
    case ArgumentKind::hidden_block_count_x:
    case ArgumentKind::hidden_block_count_y:
    case ArgumentKind::hidden_block_count_z:
    case ArgumentKind::hidden_dynamic_lds_size:
      return 4;
    case ArgumentKind::hidden_group_size_x:
    case ArgumentKind::hidden_group_size_y:
    case ArgumentKind::hidden_group_size_z:
    case ArgumentKind::hidden_remainder_x:
    case ArgumentKind::hidden_remainder_y:
    case ArgumentKind::hidden_remainder_z:
    case ArgumentKind::hidden_grid_dims:
      return 2;
    default:
      return 0;
  }
}

KernelArgument read_argument(const Json& map, std::uint32_t kernarg_bytes) {
  KernelArgument argument;
  argument.offset = number(map, ".offset", most_kernarg_bytes);
  argument.size = number(map, ".size", most_kernarg_bytes);
  argument.value_kind = text(map, ".value_kind");
  argument.kind = argument_kind_named(argument.value_kind);
  if (map.contains(".name")) argument.name = text(map, ".name");
  if (map.contains(".type_name")) argument.type = text(map, ".type_name");
  if (map.contains(".pointee_align")) argument.pointee_alignment = number(map, ".pointee_align", image_alignment);
  argument.read_only = (map.contains(".is_const") && map[".is_const"] == true) ||
                       (map.contains(".address_space") && map[".address_space"] == "constant");
  if (argument.offset + argument.size > kernarg_bytes) {
    throw Flaw{"argument at offset " + std::to_string(argument.offset) + " ends beyond .kernarg_segment_size, " +
               std::to_string(kernarg_bytes)};
  }
  const std::uint32_t expected = bytes_of(argument.kind);
  if (expected != 0 && (argument.size != expected || argument.offset % expected != 0)) {
    throw Flaw{argument.value_kind + " has " + std::to_string(argument.size) + " bytes at offset " +
               std::to_string(argument.offset) + ", expected " + std::to_string(expected) +
               " at a multiple of this size"};
  }
  return argument;
}

void read_arguments(const Json& map, KernelMetadata& kernel) {
  if (!map.contains(".args")) return;
  for (const Json& each : array(map, ".args", most_arguments)) {
    kernel.arguments.push_back(read_argument(each, kernel.kernarg_bytes));
  }
  std::stable_sort(kernel.arguments.begin(), kernel.arguments.end(),
                   [](const KernelArgument& a, const KernelArgument& b) { return a.offset < b.offset; });
  std::uint32_t end = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.offset < end) throw Flaw{"two arguments overlap at offset " + std::to_string(argument.offset)};
    end = argument.offset + argument.size;
  }
}

void read_workgroup(const Json& map, KernelMetadata& kernel) {
  constexpr std::uint32_t most_lanes = 1024;
  kernel.max_workgroup_lanes = number(map, ".max_flat_workgroup_size", most_lanes);
  if (kernel.max_workgroup_lanes == 0) throw Flaw{".max_flat_workgroup_size is 0"};
  if (!map.contains(".reqd_workgroup_size")) return;
  const Json& sizes = array(map, ".reqd_workgroup_size", 3);
  if (sizes.size() != 3) throw Flaw{".reqd_workgroup_size has " + std::to_string(sizes.size()) + " entries"};
  std::uint64_t lanes = 1;  // stops growing beyond what the device takes
  std::string words;
  for (std::size_t i = 0; i < 3; ++i) {
    kernel.required_workgroup[i] = number_of(sizes[i], ".reqd_workgroup_size", UINT32_MAX);
    if (lanes <= most_lanes) lanes *= kernel.required_workgroup[i];
    words += (i == 0 ? "" : " x ") + std::to_string(kernel.required_workgroup[i]);
  }
  if (lanes > most_lanes) {
    throw Flaw{"workgroup has " + words + " work-items, expected at most " + std::to_string(most_lanes),
               StatusCode::unsupported};
  }
  if (lanes == 0 || lanes > kernel.max_workgroup_lanes) {
    throw Flaw{".reqd_workgroup_size has " + std::to_string(lanes) + " lanes, .max_flat_workgroup_size is " +
               std::to_string(kernel.max_workgroup_lanes)};
  }
}

KernelMetadata read_kernel(const Json& map) {
  constexpr std::uint64_t any = UINT32_MAX;
  KernelMetadata kernel;
  kernel.name = text(map, ".name");
  try {
    kernel.descriptor = text(map, ".symbol");
    kernel.lds_bytes = number(map, ".group_segment_fixed_size", any);
    kernel.scratch_bytes = number(map, ".private_segment_fixed_size", any);
    kernel.kernarg_bytes = number(map, ".kernarg_segment_size", most_kernarg_bytes);
    kernel.kernarg_alignment = number(map, ".kernarg_segment_align", image_alignment);
    if (!std::has_single_bit(kernel.kernarg_alignment)) throw Flaw{".kernarg_segment_align is not a power of two"};
    kernel.wave_lanes = number(map, ".wavefront_size", 64);
    kernel.sgprs = number(map, ".sgpr_count", 512);
    kernel.vgprs = number(map, ".vgpr_count", 512);
    if (map.contains(".uses_dynamic_stack")) {
      const Json& uses = map[".uses_dynamic_stack"];
      if (!uses.is_boolean()) throw Flaw{".uses_dynamic_stack is neither true nor false"};
      kernel.dynamic_stack = uses.get<bool>();
    }
    read_workgroup(map, kernel);
    read_arguments(map, kernel);
  } catch (const Flaw& flaw) {
    throw Flaw{"kernel '" + kernel.name + "': " + flaw.message, flaw.code};
  }
  return kernel;
}

ObjectMetadata read_object(const Json& root) {
  ObjectMetadata object;
  const Json& version = array(root, "amdhsa.version", 2);
  if (version.size() != 2) throw Flaw{"amdhsa.version has " + std::to_string(version.size()) + " entries"};
  const std::uint32_t major = number_of(version[0], "amdhsa.version", UINT32_MAX);
  const std::uint32_t minor = number_of(version[1], "amdhsa.version", UINT32_MAX);
  if (major != 1 || (minor != 1 && minor != 2)) {
    throw Flaw{"amdhsa.version is " + std::to_string(major) + "." + std::to_string(minor) + ", expected 1.1 or 1.2"};
  }
  object.version = minor == 1 ? 4 : 5;
  object.target = text(root, "amdhsa.target");
  for (const Json& each : array(root, "amdhsa.kernels", most_kernels)) object.kernels.push_back(read_kernel(each));
  return object;
}

}  // namespace

Result<ObjectMetadata> read_metadata(std::span<const std::byte> note) {
  if (note.size() > most_note_bytes) {
    return corrupt("metadata has " + std::to_string(note.size()) + " bytes, expected at most " +
                   std::to_string(most_note_bytes));
  }
  try {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(note.data());
    const auto* const end = begin + note.size();
    Depth depth;
    if (!Json::sax_parse(begin, end, &depth, Json::input_format_t::msgpack)) {
      return corrupt("metadata is not MessagePack of at most " + std::to_string(deepest) + " levels");
    }
    return read_object(Json::from_msgpack(begin, end));
  } catch (const Flaw& flaw) {
    if (flaw.code == StatusCode::unsupported) return unsupported(flaw.message);
    return corrupt("metadata: " + flaw.message);
  } catch (const Json::exception& error) {
    return corrupt(std::string("metadata: ") + error.what());
  }
}

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
  return corrupt(std::string(field) + " is " + hexadecimal(value) + ": bits " + hexadecimal(value & zero) +
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
  if ((descriptor.rsrc2 >> 11 & 3) == 3) {
    return corrupt("compute_pgm_rsrc2: ENABLE_VGPR_WORKITEM_ID is 3, expected at most 2");
  }
  if (descriptor.lds_bytes > most_lds_bytes) {
    return corrupt(std::to_string(descriptor.lds_bytes) + " bytes of LDS, expected at most " +
                   std::to_string(most_lds_bytes));
  }
  if (descriptor.scratch_bytes > 0 && (descriptor.rsrc2 & 1) == 0) {
    return corrupt(std::to_string(descriptor.scratch_bytes) +
                   " bytes of scratch, but compute_pgm_rsrc2 disables scratch");
  }
  std::uint32_t needed = 0;
  for (const UserSgprSlot& slot : user_sgpr_slots(descriptor)) needed += slot.count;
  const std::uint32_t count = user_sgprs(descriptor);
  if (count > most_user_sgprs || needed > count) {
    return corrupt("compute_pgm_rsrc2 loads " + std::to_string(count) + " user SGPRs, expected at least " +
                   std::to_string(needed) + " and at most " + std::to_string(most_user_sgprs));
  }
  return {};
}

}  // namespace

Result<KernelDescriptor> read_descriptor(std::span<const std::byte, descriptor_bytes> bytes, Target target) {
  const auto all_zero = [&bytes](std::size_t begin, std::size_t end) {
    const auto part = bytes.subspan(begin, end - begin);
    return std::all_of(part.begin(), part.end(), [](std::byte byte) { return byte == std::byte{0}; });
  };
  if (!all_zero(12, 16) || !all_zero(24, 44) || !all_zero(60, 64)) return corrupt("reserved bytes are not 0");
  if (!all_zero(58, 60)) {
    return corrupt("kernarg_preload is " + hexadecimal(field_at<std::uint16_t>(bytes, 58)) + ", expected 0");
  }
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
