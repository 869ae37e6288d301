#include "cache/program_payload.hpp"

#include "cache/key_material.hpp"

#include <kiln/digest.hpp>

#include <algorithm>

namespace kiln {
namespace {

constexpr std::size_t longest_name = 512, longest_part = 255, most_parts = 8;

std::string_view payload_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> copied_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

}  // namespace

bool is_driver_file_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > longest_name) return false;
  for (std::size_t parts = 1;; ++parts) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part.size() > longest_part || part.front() == '.' || parts > most_parts ||
        !std::ranges::all_of(part, is_plain)) {
      return false;
    }
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

std::vector<std::byte> encode_payload(const ProgramBinary& program) {
  KeyEncoder fields;
  fields.field("binary", payload_text(program.bytes));
  if (!program.driver_files.empty()) fields.field("driver_setting", program.driver_setting);
  for (const DriverFile& file : program.driver_files) {
    fields.field("name", file.name);
    fields.field("content", payload_text(file.bytes));
  }
  return copied_bytes(fields.material());
}

Result<ProgramBinary> decode_payload(std::string format, std::span<const std::byte> bytes) {
  const auto fields = decode_key_material(payload_text(bytes));
  if (!fields || fields->empty() || fields->front().name != "binary") {
    return corrupt("payload of " + std::to_string(bytes.size()) + " bytes: expected a program's binary first");
  }
  ProgramBinary program{std::move(format), copied_bytes(fields->front().value)};
  if (fields->size() == 1) return program;
  const std::size_t files = (fields->size() - 2) / 2;
  if ((*fields)[1].name != "driver_setting" || fields->size() % 2 != 0 || files > most_driver_files) {
    return corrupt("payload of " + std::to_string(fields->size()) + " fields: expected at most " +
                   std::to_string(most_driver_files) + " driver's files behind the binary, each with its name");
  }
  program.driver_setting = (*fields)[1].value;
  std::uint64_t total = 0;
  for (std::size_t i = 2; i < fields->size(); i += 2) {
    const KeyField &name = (*fields)[i], &content = (*fields)[i + 1];
    total += content.value.size();
    const bool in_order = program.driver_files.empty() || program.driver_files.back().name < name.value;
    if (name.name != "name" || content.name != "content" || !in_order || !is_driver_file_name(name.value) ||
        total > most_driver_file_bytes) {
      return corrupt("driver's file " + std::to_string(i / 2) + " of " + std::to_string(files) +
                     ": its name or its size is not allowed");
    }
    program.driver_files.push_back({std::string(name.value), copied_bytes(content.value)});
  }
  return program;
}

}  // namespace kiln
