#include "cache/explain/key_difference.hpp"

#include "cache/admin/key_fields.hpp"
#include "cache/format/key_material.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace kiln {
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
