#include "cache_admin/explanation.hpp"

#include "cache/cache_root.hpp"
#include "cache/entry_format.hpp"
#include "cache/history.hpp"
#include "cache/key_material.hpp"
#include "cache_admin/selection.hpp"

#include <kiln/kernel.hpp>
#include <kiln/visible_text.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <kiln_json.hpp>

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

}  // namespace

std::string words_of_field(const KeyField& field) {
  const bool integer =
      field.name == "schema" || field.name == "workgroup" || field.name == "binding" || field.name == "view";
  if (integer && field.value.size() == sizeof(std::uint64_t)) {
    const auto value = read_little_endian<std::uint64_t>(std::as_bytes(std::span(field.value)), 0);
    if (field.name == "view" && value <= static_cast<std::uint64_t>(View::pixels)) {
      return std::string(to_string(static_cast<View>(value)));
    }
    return field.name == "binding" ? word_of_access(value) : std::to_string(value);
  }
  return is_text(field.value) ? std::string(field.value) : hex_of_bytes(field.value);
}

bool is_text(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t size = character_length(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (size == 0) return false;
    if ((first < 0x20 || first == 0x7f) && first != '\n' && first != '\t' && first != '\r') return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string hex_of_bytes(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(digits[byte >> 4]);
    hex.push_back(digits[byte & 15]);
  }
  return hex;
}

namespace {

using Place = std::pair<std::string_view, std::size_t>;  // name, and the how-manieth of that name

// The fields of a key, to be compared with those of many others. Borrows the key material.
class FieldsInPlace {
 public:
  struct Value {
    std::string_view bytes;
    bool is_source_text = false;
  };

  // nullopt: this is no key material.
  static std::optional<FieldsInPlace> of(std::string_view material) {
    const auto fields = decode_key_material(material);
    if (!fields) return std::nullopt;
    return FieldsInPlace(*fields);
  }

  const std::vector<std::pair<Place, Value>>& in_order() const noexcept { return in_order_; }
  const Value* find(const Place& place) const {
    const auto at = by_place_.find(place);
    return at == by_place_.end() ? nullptr : &at->second;
  }

 private:
  explicit FieldsInPlace(const std::vector<KeyField>& fields) {
    std::map<std::string_view, std::size_t> seen;
    for (const KeyField& field : fields) {
      in_order_.push_back(
          {{field.name, seen[field.name]++}, {field.value, field.name == "source" && is_text(field.value)}});
    }
    by_place_.insert(in_order_.begin(), in_order_.end());
  }

  std::vector<std::pair<Place, Value>> in_order_;
  std::map<Place, Value> by_place_;
};

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

KeyComparison compare(const FieldsInPlace& ours, const FieldsInPlace& theirs) {
  KeyComparison comparison;
  std::set<std::string> causes;
  const auto add = [&](const Place& place, KeyDifference difference) {
    difference.name = name_of(place);
    comparison.distance.lines += difference.lines_differing;
    causes.insert(cause_of(place));
    comparison.differences.push_back(std::move(difference));
  };
  for (const auto& [place, value] : ours.in_order()) {
    const FieldsInPlace::Value* other = theirs.find(place);
    if (other != nullptr && other->bytes == value.bytes) continue;
    KeyDifference difference;
    difference.in_stored = other != nullptr;
    if (difference.in_stored && value.is_source_text && other->is_source_text) {
      compare_lines(value.bytes, other->bytes, difference);
    } else {
      difference.asked = words_of(place, value.bytes);
      if (difference.in_stored) difference.stored = words_of(place, other->bytes);
    }
    add(place, std::move(difference));
  }
  for (const auto& [place, value] : theirs.in_order()) {
    if (ours.find(place) != nullptr) continue;
    KeyDifference difference;
    difference.in_asked = false;
    difference.stored = words_of(place, value.bytes);
    add(place, std::move(difference));
  }
  comparison.distance.causes = static_cast<std::uint32_t>(causes.size());
  return comparison;
}

}  // namespace

std::optional<KeyComparison> compare_keys(std::string_view asked, std::string_view stored) {
  const auto ours = FieldsInPlace::of(asked), theirs = FieldsInPlace::of(stored);
  if (!ours || !theirs) return std::nullopt;
  return compare(*ours, *theirs);
}

namespace {

constexpr std::size_t digits_in_words = 12;
// A file's time and the process's clock differ: a kernel stamps files finer than time() reads, FAT rounds up to 2 s, a
// network's server has a clock of its own.
constexpr std::int64_t clock_slack_s = 2;

struct Stored {
  Area area = Area::invalid;
  std::string folder;
  StoredEntry entry;
  std::string label;
  std::string material;
  std::int64_t written_s = 0;
  std::optional<FieldsInPlace> fields = {};
};

// Programs whose key material can be read and is that of their name. What is wrong with the others is for verify.
std::vector<Stored> read_stored(const CacheRoot& root) {
  std::vector<Stored> stored;
  const Survey found = root.survey(Area::stored);
  for (const StoredEntry& entry : found.entries) {
    const std::string& folder = found.folders[entry.folder];
    const FileContents file = root.read_program(Area::stored, folder, entry.digest);
    const auto view = view_entry(file.bytes);
    if (file.state != FileState::read || !view || sha256(view->material) != entry.digest) continue;
    stored.push_back({Area::stored, folder, entry, root.describe(Area::stored, folder, entry).label,
                      std::string(view->material), file.modified_ns / 1'000'000'000});
  }
  for (Stored& one : stored) one.fields = FieldsInPlace::of(one.material);  // from here on it stays where it is
  return stored;
}

struct Missed {
  MissedKey key;
  Digest digest;
};

MissExplanation explain(const CacheRoot& root, const Missed& missed, const std::vector<Stored>& stored,
                        const std::set<Digest>& missed_later) {
  MissExplanation explanation;
  explanation.key = missed.digest;
  explanation.label = missed.key.label;
  explanation.missed_s = missed.key.missed_s;
  explanation.reason = missed.key.reason == Rejection::none ? "absent" : std::string(to_string(missed.key.reason));
  explanation.why = missed.key.why;
  const Stored* nearest = nullptr;
  std::tuple<KeyDistance, bool, std::int64_t> nearest_rank;
  KeyComparison comparison;
  const auto asked = FieldsInPlace::of(missed.key.material);
  for (const Stored& one : stored) {
    if (one.entry.digest == missed.digest) {
      explanation.stored_now = true;
      continue;
    }
    // What came later cannot have been there: neither what was written later nor what was itself missed later.
    if (one.written_s > missed.key.missed_s + clock_slack_s || missed_later.contains(one.entry.digest)) continue;
    if (!asked || !one.fields) continue;
    auto compared = compare(*asked, *one.fields);
    const bool other_label = one.label != missed.key.label || missed.key.label.empty();
    const std::tuple rank(compared.distance, other_label, -one.written_s);
    if (nearest != nullptr && rank >= nearest_rank) continue;
    nearest = &one;
    nearest_rank = rank;
    comparison = std::move(compared);
  }
  if (nearest == nullptr) return explanation;
  explanation.nearest = root.describe(nearest->area, nearest->folder, nearest->entry);
  explanation.nearest_device = root.device(nearest->area, nearest->folder);
  explanation.differences = std::move(comparison.differences);
  return explanation;
}

bool chosen(const Missed& missed, std::string_view which) {
  return is_label_of(which, missed.key.label) || (may_be_key(which) && missed.digest.hex().starts_with(which));
}

}  // namespace

Result<std::vector<MissExplanation>> explain_misses(const CacheConfig& cache, std::string_view which) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  std::vector<Missed> all;  // oldest first
  if (root->exists()) {
    for (MissedKey& key : read_missed_keys(root->of(Area::stored))) {
      const Digest digest = key.digest();
      all.push_back({std::move(key), digest});
    }
  }
  if (std::ranges::none_of(all, [&](const Missed& one) { return chosen(one, which); })) {
    const bool stored = root->exists() && !select_programs(*root, which).empty();
    return not_found("program '" + std::string(which) + "': no miss of this label or key is recorded in " +
                     cache.directory.string() + " (only the newest 1,024 misses are recorded); the program is " +
                     (stored ? "stored" : "not stored"));
  }
  std::map<std::string, const Missed*> by_key;
  bool by_label = false;
  for (const Missed& one : all) {
    by_label = by_label || is_label_of(which, one.key.label);
    if (chosen(one, which)) by_key.emplace(one.digest.hex(), &one);
  }
  if (!by_label && by_key.size() > 1) {
    std::string list;
    for (const auto& [hex, one] : by_key) {
      list += (list.empty() ? "" : ", ") + hex.substr(0, digits_in_words) + " (" + one->key.label + ")";
    }
    return invalid_argument("key '" + std::string(which) + "' matches " + std::to_string(by_key.size()) +
                            " missed programs: " + list + ". Give more digits of the key");
  }
  const std::vector<Stored> stored = read_stored(*root);
  std::vector<MissExplanation> explanations;
  std::set<Digest> missed_later;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (chosen(*one, which)) explanations.push_back(explain(*root, *one, stored, missed_later));
    // It was absent then; what was there and rejected may have been there before.
    const Rejection reason = one->key.reason;
    if (reason == Rejection::none || reason == Rejection::driver_changed) missed_later.insert(one->digest);
  }
  return explanations;
}

namespace {

Json explanation_json(const MissExplanation& miss) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json json{{"key", miss.key.hex()}, {"label", text_or_null(miss.label)}, {"missed", miss.missed_s},
            {"reason", miss.reason}, {"why", text_or_null(miss.why)},     {"stored_now", miss.stored_now}};
  json["nearest"] = nullptr;
  if (miss.nearest) {
    json["nearest"] = {{"key", miss.nearest->key.hex()},
                       {"label", text_or_null(miss.nearest->label)},
                       {"folder", miss.nearest->folder},
                       {"device", text_or_null(miss.nearest_device.device)},
                       {"driver", text_or_null(miss.nearest_device.driver)}};
  }
  json["differences"] = Json::array();
  for (const KeyDifference& one : miss.differences) {
    Json field{{"field", one.name},
               {"asked", one.in_asked ? Json(one.asked) : Json(nullptr)},
               {"stored", one.in_stored ? Json(one.stored) : Json(nullptr)}};
    if (one.line != 0) {
      field["line"] = one.line;
      field["lines_differing"] = one.lines_differing;
    }
    json["differences"].push_back(std::move(field));
  }
  return json;
}

}  // namespace

std::string explanations_json(std::span<const MissExplanation> misses) {
  Json all{{"schema", 1}, {"misses", Json::array()}};
  for (const MissExplanation& miss : misses) all["misses"].push_back(explanation_json(miss));
  return json_text(all);
}

}  // namespace kiln
