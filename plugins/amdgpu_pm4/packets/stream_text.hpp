// Packets as text: each packet described, a whole stream printed, and the printer that the command uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/offline_tools.hpp>
#include <kiln/status.hpp>

#include "amdgpu_pm4/packets/packet_reader.hpp"

namespace kiln::amdgpu_pm4 {

// A packet in words: its name, its dwords with registers, fields and addresses by name, and of what is not known, why.
//
// Thread-safety: values. Ownership: names are literals; a description outlives the stream.

struct FieldValue {
  std::string_view name;
  std::uint32_t value = 0;
  std::string_view meaning;  // empty: the value has no name
};

struct WordDescription {
  std::size_t at = 0;  // in the stream, in dwords
  std::uint32_t value = 0;
  std::string name;                      // of the register or of the word
  std::vector<FieldValue> fields;        // those that are not 0
  std::optional<std::uint64_t> address;  // that starts with this word
  std::string why;                       // empty: nothing about it is unknown
};

struct PacketDescription {
  std::size_t at = 0;
  std::uint32_t header = 0;
  Finding finding = Finding::invalid;
  std::string name;
  std::string why;  // empty: a packet of a compute ring, whole
  std::vector<WordDescription> words;
};

// Generation::invalid: what any generation knows is known.
PacketDescription describe(const PacketView& packet, Generation generation);

// A stream as lines of text, one a dword: its place, its value, and what it is. "??" marks what is not known, with the
// reason.
//
// Thread-safety: functions without state. Ownership: answers are values.

// With a line's end after each line. A run of more than two fillers is one line.
std::string stream_text(std::span<const std::uint32_t> stream, Generation generation);

// Bytes of a file, little endian. invalid_argument: no whole number of dwords, or none at all.
Result<std::string> stream_text(std::span<const std::byte> bytes, Generation generation);

// Pm4Printer: `kiln pm4 dump` for this plugin's targets.
//
// Thread-safety: as StreamPrinter. Ownership: owns nothing.
class Pm4Printer final : public StreamPrinter {
 public:
  Result<std::string> print(std::span<const std::byte> stream, std::string_view target) noexcept override;
};

}  // namespace kiln::amdgpu_pm4
