// A packet in words: its name, its dwords with registers, fields and addresses by name, and of what is not known, why.
//
// Thread-safety: values. Ownership: names are literals; a description outlives the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amdgpu_pm4/packets/decode/packet_reader.hpp"

namespace kiln::amdgpu_pm4 {

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

}  // namespace kiln::amdgpu_pm4
