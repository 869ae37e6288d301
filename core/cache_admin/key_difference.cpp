#include "cache_admin/key_difference.hpp"

#include "cache/key_material.hpp"
#include "cache/little_endian.hpp"

#include <kiln/kernel.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

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

namespace {

using Place = std::pair<std::string_view, std::size_t>;  // name, and the how-manieth of that name

std::vector<std::pair<Place, std::string_view>> places_of(const std::vector<KeyField>& fields) {
  std::map<std::string_view, std::size_t> seen;
  std::vector<std::pair<Place, std::string_view>> places;
  for (const KeyField& field : fields) places.push_back({{field.name, seen[field.name]++}, field.value});
  return places;
}

std::string words_of(const Place& place, std::string_view value) { return words_of_field({place.first, value}); }

std::string name_of(const Place& place) {
  const std::string name(place.first);
  return place.second == 0 ? name : name + "[" + std::to_string(place.second) + "]";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The first line that differs, and how many lie between the lines that are equal at either end.
void compare_lines(std::string_view asked, std::string_view stored, KeyDifference& into) {
  const auto ours = lines_of(asked), theirs = lines_of(stored);
  const std::size_t most = std::min(ours.size(), theirs.size());
  std::size_t front = 0, back = 0;
  while (front < most && ours[front] == theirs[front]) ++front;
  while (back < most - front && ours[ours.size() - 1 - back] == theirs[theirs.size() - 1 - back]) ++back;
  into.line = front + 1;
  into.lines_differing = std::max<std::size_t>(std::max(ours.size(), theirs.size()) - front - back, 1);
  into.asked = front < ours.size() ? std::string(ours[front]) : "";
  into.stored = front < theirs.size() ? std::string(theirs[front]) : "";
}

// Fields that change together stand for one cause.
std::string cause_of(const Place& place) {
  for (const std::string_view group : {"device.", "driver."}) {
    if (place.first.starts_with(group)) return std::string(group);
  }
  return name_of(place);
}

}  // namespace

std::optional<KeyComparison> compare_keys(std::string_view asked, std::string_view stored) {
  const auto asked_fields = decode_key_material(asked);
  const auto stored_fields = decode_key_material(stored);
  if (!asked_fields || !stored_fields) return std::nullopt;
  const auto ours = places_of(*asked_fields), theirs = places_of(*stored_fields);
  const std::map<Place, std::string_view> in_asked(ours.begin(), ours.end());
  const std::map<Place, std::string_view> in_stored(theirs.begin(), theirs.end());

  KeyComparison comparison;
  std::set<std::string> causes;
  const auto add = [&](const Place& place, KeyDifference difference) {
    difference.name = name_of(place);
    comparison.distance.lines += difference.lines_differing;
    causes.insert(cause_of(place));
    comparison.differences.push_back(std::move(difference));
  };
  for (const auto& [place, value] : ours) {
    const auto other = in_stored.find(place);
    if (other != in_stored.end() && other->second == value) continue;
    KeyDifference difference;
    difference.in_stored = other != in_stored.end();
    if (difference.in_stored && place.first == "source" && is_text(value) && is_text(other->second)) {
      compare_lines(value, other->second, difference);
    } else {
      difference.asked = words_of(place, value);
      if (difference.in_stored) difference.stored = words_of(place, other->second);
    }
    add(place, std::move(difference));
  }
  for (const auto& [place, value] : theirs) {
    if (in_asked.contains(place)) continue;
    KeyDifference difference;
    difference.in_asked = false;
    difference.stored = words_of(place, value);
    add(place, std::move(difference));
  }
  comparison.distance.causes = static_cast<std::uint32_t>(causes.size());
  return comparison;
}

}  // namespace kiln
