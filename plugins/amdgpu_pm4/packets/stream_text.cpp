#include "amdgpu_pm4/packets/stream_text.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::string hex(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%X", value);
  return text.data();
}

std::string dwords(std::size_t count) { return std::to_string(count) + (count == 1 ? " dword" : " dwords"); }

std::uint8_t generations_of(Generation generation) {
  return generation == Generation::invalid ? in_both : static_cast<std::uint8_t>(1U << column_of(generation));
}

std::string_view meaning_of(const Field& field, std::uint32_t value) {
  for (const ValueName& named : field.values) {
    if (named.value == value) return named.name;
  }
  return {};
}

void add_fields(WordDescription& word, std::span<const Field> fields, Generation generation) {
  // Where two generations give a run of bits to fields of their own, the later one's name is told.
  std::uint32_t told = 0;
  for (std::size_t i = fields.size(); i-- > 0;) {
    const Field& field = fields[i];
    if ((field.generations & generations_of(generation)) == 0 || (field.mask() & told) != 0) continue;
    told |= field.mask();
    const std::uint32_t value = field.of(word.value);
    if (value != 0) word.fields.insert(word.fields.begin(), {field.name, value, meaning_of(field, value)});
  }
  const std::uint32_t unknown = word.value & ~told;
  if (unknown != 0) word.why = "bits " + hex(unknown) + " are not known";
}

WordDescription describe_word(const PacketView& packet, std::size_t i, Generation generation) {
  const WordLayout& layout = packet.layout->words[i];
  WordDescription word;
  word.at = packet.at + 1 + i;
  word.value = packet.body[i];
  word.name = layout.name;
  if (!layout.fields.empty()) add_fields(word, layout.fields, generation);
  if (layout.kind == WordKind::address_low && i + 1 < packet.body.size()) {
    word.address = std::uint64_t{packet.body[i + 1]} << 32 | word.value;
  }
  return word;
}

WordDescription describe_register(std::size_t at, std::uint32_t value, std::uint32_t address, Generation generation) {
  WordDescription word;
  word.at = at;
  word.value = value;
  const RegisterInfo* info = find_register(address, generation);
  if (info == nullptr) {
    word.name = "register " + hex(address);
    word.why = "no such register is known";
    return word;
  }
  word.name = info->name;
  if (!info->fields.empty()) add_fields(word, info->fields, generation);
  return word;
}

std::string why_of(const PacketView& packet, Generation generation) {
  const std::string opcode = hex(static_cast<std::uint8_t>(packet.opcode()));
  switch (packet.finding) {
    case Finding::known:
      break;
    case Finding::filler:
      return {};
    case Finding::unknown_opcode:
      return "opcode " + opcode + " is not known";
    case Finding::wrong_length: {
      const std::uint32_t least = packet.layout->least_body, most = packet.layout->most_body;
      return dwords(packet.body.size()) + " of body, expected " +
             (least == most ? std::to_string(least) : "at least " + std::to_string(least));
    }
    case Finding::cut_off:
      return dwords(packet_count(packet.header) + std::size_t{1}) + " of body announced, the stream has " +
             std::to_string(packet.body.size());
    case Finding::type_0:
      return "a packet of type 0 is not for compute rings";
    case Finding::type_1:
      return "there are no packets of type 1";
    case Finding::type_2:
      return "a packet of type 2 is for older firmware";
    case Finding::invalid:
      return "not read";
  }
  if ((packet.header & reserved_header_bits) != 0) {
    return "header bits " + hex(packet.header & reserved_header_bits) + " are not known";
  }
  if (packet.layout->words.empty() && packet.layout->opcode != Opcode::nop) return "its body is not put into words";
  if (generation != Generation::invalid && !capabilities_of(generation).knows(packet.opcode())) {
    return "not for a compute ring of " + std::string(to_string(generation));
  }
  return {};
}

std::string name_of(const PacketView& packet) {
  if (packet.layout != nullptr) return std::string(packet.layout->name);
  const std::uint32_t type = packet_type(packet.header);
  if (type == 3) return "packet " + hex(static_cast<std::uint8_t>(packet.opcode()));
  return "type " + std::to_string(type);
}

void add_body(PacketDescription& description, const PacketView& packet, Generation generation) {
  const std::size_t laid_out = packet.layout == nullptr ? 0 : std::min(packet.layout->words.size(), packet.body.size());
  for (std::size_t i = 0; i < laid_out; ++i) description.words.push_back(describe_word(packet, i, generation));
  const bool registers = packet.layout != nullptr && packet.layout->register_space != 0 && laid_out > 0;
  const std::uint32_t first =
      registers ? packet.layout->register_space + 4 * set_register::offset.of(packet.body[0]) : 0;
  for (std::size_t i = laid_out; i < packet.body.size(); ++i) {
    const std::size_t at = packet.at + 1 + i;
    if (registers) {
      const std::uint32_t address = first + 4 * static_cast<std::uint32_t>(i - 1);
      description.words.push_back(describe_register(at, packet.body[i], address, generation));
    } else {
      description.words.push_back({at, packet.body[i], "data", {}, {}, {}});
    }
  }
}

}  // namespace

PacketDescription describe(const PacketView& packet, Generation generation) {
  PacketDescription description;
  description.at = packet.at;
  description.header = packet.header;
  description.finding = packet.finding;
  description.name = name_of(packet);
  description.why = why_of(packet, generation);
  add_body(description, packet, generation);
  return description;
}

namespace {

constexpr std::size_t fillers_shown = 2;

void start_line(std::string& text, std::size_t at, std::uint32_t value) {
  std::array<char, 40> start{};
  std::snprintf(start.data(), start.size(), "%06zx  %08" PRIx32 "  ", at, value);
  text += start.data();
}

void end_line(std::string& text, const std::string& why) {
  if (!why.empty()) text += "  ?? " + why;
  text += '\n';
}

void add_field(std::string& text, const FieldValue& field) {
  text += ' ';
  text += field.name;
  text += '=';
  text += std::to_string(field.value);
  if (!field.meaning.empty()) text += "(" + std::string(field.meaning) + ")";
}

void add_word(std::string& text, const WordDescription& word) {
  start_line(text, word.at, word.value);
  text += "  " + word.name;
  for (const FieldValue& field : word.fields) add_field(text, field);
  if (word.address) {
    std::array<char, 32> address{};
    std::snprintf(address.data(), address.size(), " -> 0x%012" PRIx64, *word.address);
    text += address.data();
  }
  end_line(text, word.why);
}

void add_packet(std::string& text, const PacketDescription& packet) {
  start_line(text, packet.at, packet.header);
  text += packet.name;
  if (packet.finding == Finding::known) {
    if ((packet.header & compute_shader_type) == 0) text += " graphics";
    if ((packet.header & predicate_bit) != 0) text += " predicated";
    if ((packet.header & reset_filter_cam_bit) != 0) text += " reset_filter_cam";
  }
  end_line(text, packet.why);
  for (const WordDescription& word : packet.words) add_word(text, word);
}

}  // namespace

std::string stream_text(std::span<const std::uint32_t> stream, Generation generation) {
  std::string text;
  std::size_t fillers = 0;
  const auto end_fillers = [&] {
    if (fillers > fillers_shown) {
      text += "        " + std::to_string(fillers - fillers_shown) + " more NOP of one dword\n";
    }
    fillers = 0;
  };
  PacketReader reader(stream);
  for (PacketView packet; reader.next(packet);) {
    if (packet.finding == Finding::filler) {
      if (++fillers > fillers_shown) continue;
    } else {
      end_fillers();
    }
    add_packet(text, describe(packet, generation));
  }
  end_fillers();
  return text;
}

Result<std::string> stream_text(std::span<const std::byte> bytes, Generation generation) {
  if (bytes.empty() || bytes.size() % 4 != 0) {
    return invalid_argument("command stream has " + std::to_string(bytes.size()) +
                            " bytes, expected a multiple of 4, at least 4");
  }
  std::vector<std::uint32_t> stream(bytes.size() / 4);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    stream[i / 4] |= std::to_integer<std::uint32_t>(bytes[i]) << 8 * (i % 4);
  }
  return stream_text(stream, generation);
}

namespace {

Generation generation_named(std::string_view target) {
  if (target.empty() || target.starts_with("gfx11")) return Generation::gfx11;
  if (target.starts_with("gfx103")) return Generation::gfx10_3;
  return Generation::invalid;
}

}  // namespace

Result<std::string> Pm4Printer::print(std::span<const std::byte> stream, std::string_view target) noexcept {
  const Generation generation = generation_named(target);
  if (generation == Generation::invalid) {
    return invalid_argument("target " + std::string(target) + ": expected gfx10.3 (gfx1030, …) or gfx11 (gfx1100, …)");
  }
  return stream_text(stream, generation);
}

}  // namespace kiln::amdgpu_pm4
