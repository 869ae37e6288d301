#include "cache/admin/key_fields.hpp"

#include "cache/format/little_endian.hpp"

#include <kiln/kernel.hpp>

#include <array>
#include <span>

namespace kiln {
namespace {

std::string word_of_access(std::uint64_t access) {
  switch (static_cast<Access>(access)) {
    case Access::read:
      return "read";
    case Access::write:
      return "write";
    case Access::read_write:
      return "read_write";
    case Access::invalid:
      break;
  }
  return std::to_string(access);
}

// How many bytes the character takes that begins with this one; 0: none begins so.
std::size_t size_of_character(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

}  // namespace

std::string words_of_field(const KeyField& field) {
  const bool integer =
      field.name == "schema" || field.name == "workgroup" || field.name == "binding" || field.name == "view";
  if (integer && field.value.size() == sizeof(std::uint64_t)) {
    const auto value = read_little_endian<std::uint64_t>(std::as_bytes(std::span(field.value)), 0);
    if (field.name == "view" && value <= static_cast<std::uint64_t>(View::uniforms)) {
      return std::string(to_string(static_cast<View>(value)));
    }
    return field.name == "binding" ? word_of_access(value) : std::to_string(value);
  }
  return is_text(field.value) ? std::string(field.value) : hex_of_bytes(field.value);
}

bool is_text(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const std::size_t size = size_of_character(first);
    if (size == 0 || size > bytes.size() - at) return false;
    if (size == 1 && (first < 0x20 || first == 0x7f) && first != '\n' && first != '\t' && first != '\r') return false;
    for (std::size_t next = 1; next < size; ++next) {
      if ((static_cast<unsigned char>(bytes[at + next]) & 0xc0) != 0x80) return false;
    }
    at += size;
  }
  return true;
}

std::string hex_of_bytes(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(digits[byte >> 4]);
    hex.push_back(digits[byte & 15]);
  }
  return hex;
}

}  // namespace kiln
