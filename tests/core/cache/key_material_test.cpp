// KeyEncoder and its reader: no two field lists share an encoding, and nothing but an encoding is read.
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"
#include "support/test_length.hpp"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <random>

namespace kiln::test {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string material_of(const Fields& fields) {
  KeyEncoder encoder;
  for (const auto& [name, value] : fields) encoder.field(name, value);
  return encoder.material();
}

Fields decoded(std::string_view material) {
  Fields fields;
  const auto read = decode_key_material(material);
  if (!read) return {{"unreadable", ""}};
  for (const KeyField& field : *read) fields.emplace_back(field.name, field.value);
  return fields;
}

TEST_CASE("cache::key_material: what was encoded is read back, so distinct fields have distinct material") {
  CHECK(rc::check([](const Fields& fields) { RC_ASSERT(decoded(material_of(fields)) == fields); }));
  CHECK(rc::check([](const Fields& a, const Fields& b) { RC_ASSERT((material_of(a) == material_of(b)) == (a == b)); }));
}

// Few letters, and those that lengths are made of: fields whose bytes could be taken for other fields' come often.
Fields short_fields(std::mt19937_64& random) {
  constexpr std::string_view letters("\0\1\2a", 4);
  const auto word = [&] {
    std::string text(random() % 3, '\0');
    for (char& letter : text) letter = letters[random() % letters.size()];
    return text;
  };
  Fields fields(random() % 3);
  for (auto& [name, value] : fields) {
    name = word();
    value = word();
  }
  return fields;
}

TEST_CASE("cache::key_material: of many short pairs those have one encoding and one digest that are equal") {
  std::mt19937_64 random(20261122);
  int equal = 0, wrong = 0;
  const int pairs = is_long() ? 1'000'000 : 5'000;
  for (int pair = 0; pair < pairs; ++pair) {
    const Fields a = short_fields(random), b = short_fields(random);
    const std::string one = material_of(a), other = material_of(b);
    equal += a == b;
    wrong += (one == other) != (a == b) || (sha256(one) == sha256(other)) != (a == b);
  }
  CHECK(wrong == 0);
  CHECK(equal > pairs / 100);  // both sides of the claim were tried
}

TEST_CASE("cache::key_material: a change of one field changes the digest; a concatenation is not ambiguous") {
  CHECK(rc::check([](Fields fields, std::string extra) {
    RC_PRE(!fields.empty() && !extra.empty());
    const auto at = *rc::gen::inRange<std::size_t>(0, fields.size());
    const Digest before = sha256(material_of(fields));
    fields[at].second += extra;
    RC_ASSERT(sha256(material_of(fields)) != before);
  }));
  CHECK(material_of({{"ab", "c"}}) != material_of({{"a", "bc"}}));
  CHECK(material_of({{"a", "b"}, {"c", "d"}}) != material_of({{"a", "bcd"}}));
}

TEST_CASE("cache::key_material: each truncation is read as fewer whole fields or not at all") {
  const std::string whole = material_of({{"dialect", "glsl"}, {"source", "void main() {}"}, {"driver.sha", "x"}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto fields = decode_key_material(std::string_view(whole).substr(0, size));
    if (fields && fields->size() >= 3) FAIL(size << " bytes were read as the whole");
  }
  CHECK(decode_key_material(whole)->size() == 3);
  CHECK_FALSE(decode_key_material(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8)));
}

TEST_CASE("cache::key_material: the number of fields is bounded") {
  CHECK(decode_key_material(std::string(12 * 65536, '\0'))->size() == 65536);
  CHECK_FALSE(decode_key_material(std::string(12 * 65537, '\0')));
}

TEST_CASE("cache::key_material: the same key under another driver is the key that the other driver makes") {
  SyntheticDevice now, then;
  then.facts().driver_identity = {{"version", "0.9"}, {"sha", std::string("\x80\x00", 2)}, {"more", "fields"}};
  const ProgramKey key = key_for("text", now);
  const auto other = with_driver(key.material, driver_fields(then.info()));
  REQUIRE(other);
  CHECK(sha256(*other) == key_for("text", then).digest);
  CHECK(*with_driver(key.material, driver_fields(now.info())) == key.material);
  CHECK_FALSE(with_driver("no material", driver_fields(then.info())));
}

TEST_CASE("cache::manifest: a folder's name has words of these characters and two numbers of 16 digits") {
  const std::string device = "0123456789abcdef", driver = "fedcba9876543210";
  const auto is_name = [](const std::string& words, const std::string& one, const std::string& other) {
    return is_device_folder_name(words + "-" + one + "-" + other);
  };
  CHECK(is_name("w", device, driver));
  const std::string_view hex = "0123456789abcdef", of_words = "0123456789abcdefghijklmnopqrstuvwxyz_";
  for (int code = 0; code < 256; ++code) {
    const std::string c(1, static_cast<char>(code));
    CAPTURE(code);
    CHECK(is_name(c, device, driver) == (of_words.find(c) != std::string_view::npos));
    for (const std::size_t at : {0, 15}) {
      std::string one = device, other = driver;
      one.replace(at, 1, c), other.replace(at, 1, c);
      CHECK(is_name("w", one, driver) == (hex.find(c) != std::string_view::npos));
      CHECK(is_name("w", device, other) == (hex.find(c) != std::string_view::npos));
    }
  }
  CHECK(is_name(std::string(40, 'w'), device, driver));
  CHECK_FALSE(is_name(std::string(41, 'w'), device, driver));
  CHECK_FALSE(is_name("", device, driver));
  CHECK_FALSE(is_device_folder_name("w_" + device + "-" + driver));
  CHECK_FALSE(is_device_folder_name("w-" + device + "_" + driver));
}

TEST_CASE("cache::manifest: the folder's name is short, plain, and tells device and driver apart") {
  SyntheticDevice device, newer, other;
  newer.facts().driver_identity.front().second = "1.1";
  other.facts().device_identity.front().second = "Someone else";
  const std::string name = device_folder_name(device.info());
  CHECK(name.starts_with("kiln_synthetic_lane-"));
  CHECK(is_device_folder_name(name));
  CHECK(differ_in_driver_only(name, device_folder_name(newer.info())));
  CHECK_FALSE(differ_in_driver_only(name, name));
  CHECK_FALSE(differ_in_driver_only(name, device_folder_name(other.info())));
  CHECK_FALSE(is_device_folder_name("mesa_shader_cache"));
  CHECK_FALSE(is_device_folder_name(name.substr(name.size() - 34)));
  for (const char* const outside : {"../", "a/", "/", ".", "A", " "}) {
    CHECK_FALSE(is_device_folder_name(outside + name));
  }
  CHECK_FALSE(is_device_folder_name(std::string(40, 'a') + name));

  device.facts().device_identity = {{"vendor", "../../\x01\xff Ünï"}, {"renderer", std::string(300, 'R')}};
  const std::string strange = device_folder_name(device.info());
  CHECK(strange.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos);
  CHECK(strange.size() <= 40 + 34);
  device.facts().device_identity.clear();
  device.facts().name.clear();
  CHECK(device_folder_name(device.info()).starts_with("device-"));
}

TEST_CASE("cache::key_material: a source read back makes the same key") {
  SyntheticDevice device;
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::string("void main() {}\n\0tail", 20);
  source.entry = "start";
  source.constants = {{"A", "2.5"}, {"B.C", ""}};
  source.bindings = {Access::read, Access::read_write, Access::write};
  source.workgroup = {64, 2, 1};
  const ProgramKey key = key_of(source, device.info(), "label");
  const auto read = kiln::source_of(key.material);
  REQUIRE(read.has_value());
  CHECK(read->constants == source.constants);
  CHECK(key_of(*read, device.info(), "label").material == key.material);
  CHECK(key_of(*read, device.info(), "label").digest == key.digest);
  for (std::size_t length = 0; length < key.material.size(); ++length) {
    const auto part = kiln::source_of(std::string_view(key.material).substr(0, length));
    if (part) CHECK(part->workgroup == source.workgroup);  // whole up to the device's fields
  }
  source.dialect = Dialect::library;
  CHECK_FALSE(kiln::source_of(key_of(source, device.info(), "label").material));
}

TEST_CASE("cache::manifest: it says the driver's identity exactly, and nothing else is one") {
  SyntheticDevice device;
  CHECK(driver_fields_of_manifest(encode_manifest(device.info())) == driver_fields(device.info()));
  for (const char* text :
       {"", "{", "[]", "{}", R"({"driver_fields": 3})", R"({"driver_fields": "0g"})", R"({"driver_fields": "0"})"}) {
    CAPTURE(text);
    CHECK_FALSE(driver_fields_of_manifest(text));
  }
}

}  // namespace
}  // namespace kiln::test
