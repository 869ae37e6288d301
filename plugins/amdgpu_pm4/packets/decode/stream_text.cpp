#include "amdgpu_pm4/packets/decode/stream_text.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace kiln::amdgpu_pm4 {
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
    return invalid_argument("a command stream of " + std::to_string(bytes.size()) +
                            " bytes, expected a whole number of dwords, at least one");
  }
  std::vector<std::uint32_t> stream(bytes.size() / 4);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    stream[i / 4] |= std::to_integer<std::uint32_t>(bytes[i]) << 8 * (i % 4);
  }
  return stream_text(stream, generation);
}

}  // namespace kiln::amdgpu_pm4
