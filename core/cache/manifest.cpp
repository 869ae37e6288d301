#include "cache/manifest.hpp"

#include "cache/key_material.hpp"

#include <kiln/digest.hpp>

#include <kiln_json.hpp>

#include <algorithm>

namespace kiln {
namespace {

using Identity = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t most_words = 40;
constexpr std::size_t folder_digits = 16;
constexpr std::size_t suffix_size = 2 * (1 + folder_digits);  // "-DEVICE-DRIVER"
constexpr int manifest_schema = 1;

std::string lower_words(std::string_view text) {
  std::string words;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper || plain) {
      words.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
    } else if (!words.empty() && words.back() != '_') {
      words.push_back('_');
    }
  }
  while (!words.empty() && words.back() == '_') words.pop_back();
  return words;
}

std::string_view value_of(std::string_view name, const DeviceInfo& device) {
  for (const Identity* identity : {&device.device_identity, &device.driver_identity}) {
    for (const auto& [field, value] : *identity) {
      if (field == name) return value;
    }
  }
  return {};
}

std::string words_of(const DeviceInfo& device) {
  std::string text(value_of("vendor", device));
  const std::string_view renderer = value_of("renderer", device), isa = value_of("isa", device);
  text += ' ';
  text += !renderer.empty() ? renderer : !isa.empty() ? isa : std::string_view(device.name);
  std::string words = lower_words(text);
  if (words.size() > most_words) words = lower_words(words.substr(0, most_words));
  return words.empty() ? "device" : words;
}

std::string digits_of(const std::string& fields) { return sha256(fields).hex().substr(0, folder_digits); }

bool is_word_character(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_'; }

bool is_hex_digit(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string hex_of(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(digits[byte >> 4]);
    hex.push_back(digits[byte & 15]);
  }
  return hex;
}

std::optional<std::string> from_hex(std::string_view hex) {
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  if (hex.size() % 2 != 0 || !std::ranges::all_of(hex, is_hex_digit)) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(nibble(hex[i]) << 4 | nibble(hex[i + 1])));
  }
  return bytes;
}

Json as_json(const Identity& identity) {
  Json fields = Json::array();
  for (const auto& [name, value] : identity) fields.push_back(Json::array({name, value}));
  return fields;
}

}  // namespace

std::string device_folder_name(const DeviceInfo& device) {
  return words_of(device) + "-" + digits_of(device_fields(device)) + "-" + digits_of(driver_fields(device));
}

bool is_device_folder_name(std::string_view name) noexcept {
  if (name.size() <= suffix_size || name.size() > most_words + suffix_size) return false;
  const std::string_view words = name.substr(0, name.size() - suffix_size);
  const std::string_view suffix = name.substr(words.size());
  // A name may come from another machine's bundle: nothing in it may lead out of the cache's folder.
  return std::ranges::all_of(words, is_word_character) && suffix[0] == '-' && suffix[1 + folder_digits] == '-' &&
         std::ranges::all_of(suffix.substr(1, folder_digits), is_hex_digit) &&
         std::ranges::all_of(suffix.substr(2 + folder_digits), is_hex_digit);
}

bool differ_in_driver_only(std::string_view name, std::string_view other) noexcept {
  const auto device_of = [](std::string_view of) { return of.substr(of.size() - suffix_size + 1, folder_digits); };
  const auto driver_of = [](std::string_view of) { return of.substr(of.size() - folder_digits); };
  return device_of(name) == device_of(other) && driver_of(name) != driver_of(other);
}

std::string encode_manifest(const DeviceInfo& device) {
  Json manifest;
  manifest["schema"] = manifest_schema;
  manifest["device"] = device.name;
  manifest["kind"] = std::string(to_string(device.kind));
  manifest["driver"] = device.driver;
  manifest["device_identity"] = as_json(device.device_identity);
  manifest["driver_identity"] = as_json(device.driver_identity);
  // Identities may hold bytes that are no text; this repeats the driver's exactly.
  manifest["driver_fields"] = hex_of(driver_fields(device));
  return json_text(manifest, 2) + "\n";
}

std::optional<std::string> driver_fields_of_manifest(std::string_view json) {
  const Json manifest = parse_json(json);
  if (!manifest.is_object()) return std::nullopt;
  const auto fields = manifest.find("driver_fields");
  if (fields == manifest.end() || !fields->is_string()) return std::nullopt;
  return from_hex(fields->get_ref<const std::string&>());
}

ManifestWords words_of_manifest(std::string_view json) {
  const Json manifest = parse_json(json);
  const auto word = [&](const char* name) {
    if (!manifest.is_object()) return std::string();
    const auto at = manifest.find(name);
    return at != manifest.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  return {word("device"), word("kind"), word("driver")};
}

namespace {

constexpr int meta_schema = 1;

void read_field(const Json& object, const char* name, std::string& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_string()) to = at->get<std::string>();
}

void read_field(const Json& object, const char* name, std::uint64_t& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_number_unsigned()) to = at->get<std::uint64_t>();
}

void read_field(const Json& object, const char* name, double& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_number()) to = at->get<double>();
}

}  // namespace

std::string encode_meta(const EntryMeta& meta) {
  Json object;
  object["schema"] = meta_schema;
  object["key"] = meta.key;
  object["label"] = meta.label;
  object["op"] = meta.operation;
  object["shape"] = meta.shape;
  object["variant"] = meta.variant;
  object["build_ms"] = meta.build_ms;
  object["first_dispatch_ms"] = meta.first_dispatch_ms;
  object["load_ms"] = meta.load_ms;
  object["warm_dispatch_ms"] = meta.warm_dispatch_ms;
  object["gflops"] = meta.gflops;
  object["times_used"] = meta.times_used;
  object["last_used"] = meta.last_used;
  object["runs"] = meta.runs;
  object["first_use_ms"] = meta.first_use_ms;
  return json_text(object, 2) + "\n";
}

std::optional<EntryMeta> decode_meta(std::string_view json) {
  const Json object = parse_json(json);
  if (!object.is_object()) return std::nullopt;
  EntryMeta meta;
  read_field(object, "key", meta.key);
  read_field(object, "label", meta.label);
  read_field(object, "op", meta.operation);
  read_field(object, "shape", meta.shape);
  read_field(object, "variant", meta.variant);
  read_field(object, "build_ms", meta.build_ms);
  read_field(object, "first_dispatch_ms", meta.first_dispatch_ms);
  read_field(object, "load_ms", meta.load_ms);
  read_field(object, "warm_dispatch_ms", meta.warm_dispatch_ms);
  read_field(object, "first_use_ms", meta.first_use_ms);
  read_field(object, "gflops", meta.gflops);
  read_field(object, "times_used", meta.times_used);
  read_field(object, "runs", meta.runs);
  if (const auto at = object.find("last_used"); at != object.end() && at->is_number_integer()) {
    meta.last_used = at->get<std::int64_t>();
  }
  return meta;
}

namespace {

constexpr double half_at_ms = 2000;  // into a run: what is needed then counts half of what is needed at once

double made_ms(const EntryMeta& meta) { return meta.build_ms + meta.first_dispatch_ms; }

double taken_in_ms(const EntryMeta& meta) { return meta.load_ms + meta.warm_dispatch_ms; }

// What taking a program in costs of what making it cost, over those of which both are known.
double share_of_making(std::span<const EntryMeta> programs) {
  double taken_in = 0, made = 0;
  for (const EntryMeta& meta : programs) {
    if (meta.load_ms <= 0) continue;
    taken_in += taken_in_ms(meta);
    made += made_ms(meta);
  }
  return made > 0 ? taken_in / made : 1;
}

}  // namespace

std::vector<double> expected_stalls(std::span<const EntryMeta> programs) {
  const double share = share_of_making(programs);
  std::uint64_t most_runs = 1;
  for (const EntryMeta& meta : programs) most_runs = std::max(most_runs, meta.runs);
  std::vector<double> stalls;
  stalls.reserve(programs.size());
  for (const EntryMeta& meta : programs) {
    const double stall_ms = meta.load_ms > 0 ? taken_in_ms(meta) : share * made_ms(meta);
    const double used = static_cast<double>(std::max<std::uint64_t>(meta.runs, 1)) / static_cast<double>(most_runs);
    stalls.push_back(stall_ms * used * half_at_ms / (half_at_ms + meta.first_use_ms));
  }
  return stalls;
}

}  // namespace kiln
