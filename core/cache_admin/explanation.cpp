#include <kiln_json.hpp>

#include "cache/cache_root.hpp"
#include "cache/entry_format.hpp"
#include "cache/history.hpp"
#include "cache_admin/key_difference.hpp"
#include "cache_admin/selection.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace kiln {
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
};

// Programs whose key material can be read and is that of their name. What is wrong with the others is for verify.
std::vector<Stored> read_stored(const CacheRoot& root) {
  std::vector<Stored> stored;
  const Survey found = root.survey(Area::stored);
  for (const StoredEntry& entry : found.entries) {
    if (!entry.program) continue;
    const std::string& folder = found.folders[entry.folder];
    const FileContents file = root.read_program(Area::stored, folder, entry.digest);
    const auto view = view_entry(file.bytes);
    if (file.state != FileState::read || !view || sha256(view->material) != entry.digest) continue;
    stored.push_back({Area::stored, folder, entry, root.describe(Area::stored, folder, entry).label,
                      std::string(view->material), file.modified_ns / 1'000'000'000});
  }
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
  for (const Stored& one : stored) {
    if (one.entry.digest == missed.digest) {
      explanation.stored_now = true;
      continue;
    }
    // What came later cannot have been there: neither what was written later nor what was itself missed later.
    if (one.written_s > missed.key.missed_s + clock_slack_s || missed_later.contains(one.entry.digest)) continue;
    auto compared = compare_keys(missed.key.material, one.material);
    if (!compared) continue;
    const bool other_label = one.label != missed.key.label || missed.key.label.empty();
    const std::tuple rank(compared->distance, other_label, -one.written_s);
    if (nearest != nullptr && rank >= nearest_rank) continue;
    nearest = &one;
    nearest_rank = rank;
    comparison = std::move(*compared);
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
    return not_found("program '" + std::string(which) + "': no miss of this label or key is remembered in " +
                     cache.directory.string() + " (the newest 1,024 are); " +
                     (stored ? "such a program is stored" : "no such program is stored either"));
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
    return invalid_argument("key '" + std::string(which) + "' stands for " + std::to_string(by_key.size()) +
                            " that were missed: " + list);
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
  Json json{{"key", miss.key.hex()},
            {"label", miss.label},
            {"missed", miss.missed_s},
            {"reason", miss.reason},
            {"why", miss.why.empty() ? Json(nullptr) : Json(miss.why)},
            {"stored_now", miss.stored_now}};
  json["nearest"] = nullptr;
  if (miss.nearest) {
    json["nearest"] = {{"key", miss.nearest->key.hex()},
                       {"label", miss.nearest->label},
                       {"folder", miss.nearest->folder},
                       {"device", miss.nearest_device.device},
                       {"driver", miss.nearest_device.driver}};
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
