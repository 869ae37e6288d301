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

TEST_CASE("cache::key_material: what a source's fields may be") {
  const auto number = [](std::uint64_t value) {
    std::vector<std::byte> bytes;
    append_little_endian(bytes, value);
    return copied_text(bytes);
  };
  const Fields whole{{"dialect", "glsl"},      {"source", "s"},          {"entry", "e"},
                     {"constant.N", "1"},      {"binding", number(1)},   {"binding", number(3)},
                     {"view", number(0)},      {"workgroup", number(8)}, {"workgroup", number(4)},
                     {"workgroup", number(2)}, {"device.vendor", "v"}};
  const auto source = kiln::source_of(material_of(whole));
  REQUIRE(source);
  CHECK(source->dialect == Dialect::glsl);
  CHECK(source->text == "s");
  CHECK(source->entry == "e");
  CHECK(source->constants == std::vector<Define>{{"N", "1"}});
  CHECK(source->bindings == std::vector<Access>{static_cast<Access>(1), static_cast<Access>(3)});
  CHECK(source->views == std::vector<View>{static_cast<View>(0)});
  CHECK(source->workgroup == std::array<std::uint32_t, 3>{8, 4, 2});
  struct Case {
    std::size_t at;
    std::string value;
    bool taken;
  };
  const std::uint64_t last_access = static_cast<std::uint64_t>(Access::read_write);
  const std::uint64_t last_view = static_cast<std::uint64_t>(View::uniforms);
  for (const Case& one : {
           Case{0, "opencl_c", true},
           Case{0, "code_object", true},
           Case{0, "library", false},
           Case{0, "", false},
           Case{4, number(last_access), true},
           Case{4, number(last_access + 1), false},
           Case{4, std::string(7, '\0'), false},
           Case{4, std::string(9, '\0'), false},
           Case{6, number(last_view), true},
           Case{6, number(last_view + 1), false},
           Case{6, std::string(4, '\0'), false},
           Case{7, std::string(4, '\0'), false},
       }) {
    CAPTURE(one.at, one.value);
    Fields fields = whole;
    fields[one.at].second = one.value;
    CHECK(kiln::source_of(material_of(fields)).has_value() == one.taken);
  }
  Fields fields = whole;
  fields.erase(fields.begin() + 9);
  CHECK_FALSE(kiln::source_of(material_of(fields)));  // two axes of a workgroup
  fields = whole;
  fields.insert(fields.begin() + 9, {"workgroup", number(1)});
  CHECK_FALSE(kiln::source_of(material_of(fields)));  // four
  fields = whole;
  fields.erase(fields.begin() + 2);
  REQUIRE(kiln::source_of(material_of(fields)));
  CHECK(kiln::source_of(material_of(fields))->entry.empty());
  CHECK_FALSE(kiln::source_of("no fields"));
  CHECK_FALSE(kiln::source_of(""));
}

TEST_CASE("cache::key_material: a program of an application has a source without a text") {
  const auto source =
      kiln::source_of(material_of({{"schema", "x"}, {"dialect", "application"}, {"binding", "no number"}}));
  REQUIRE(source);
  CHECK(source->dialect == Dialect::library);
  CHECK(source->text.empty());
  CHECK(source->bindings.empty());
  CHECK_FALSE(kiln::source_of(material_of({{"source", "application"}})));
}

TEST_CASE("cache::key_material: bindings whose values are given at each launch are not in the key") {
  SyntheticDevice device;
  KernelSource source = test::source_of("text");
  source.bindings = {Access::read, Access::write, Access::read};
  const auto fields_of = [&](const std::vector<View>& views) {
    source.views = views;
    std::string found;
    for (const auto& [name, value] : decoded(key_of(source, device.info(), "").material)) {
      if (name == "binding" || name == "view")
        found += name.substr(0, 1) + std::to_string(static_cast<int>(value[0])) + " ";
    }
    return found;
  };
  const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
  const std::string read = "b" + number(Access::read) + " ", write = "b" + number(Access::write) + " ";
  const auto view = [&](View of) { return "v" + number(of) + " "; };
  using enum View;
  CHECK(fields_of({}) == read + write + read);
  CHECK(fields_of({storage, storage, storage}) == read + write + read);
  CHECK(fields_of({uniforms, storage, storage}) == write + read);
  CHECK(fields_of({storage, pixels, storage}) == read + read);
  CHECK(fields_of({storage, pixels, image}) == read + read + view(storage) + view(image));
  CHECK(fields_of({texels, storage, uniforms}) == read + write + view(texels) + view(storage));
  CHECK(fields_of({storage, storage}) == read + write + read);  // the third has no view
}

TEST_CASE("cache::manifest: the words of a folder's name") {
  SyntheticDevice device;
  const auto words = [&](std::vector<std::pair<std::string, std::string>> identity, const std::string& name) {
    device.facts().device_identity = std::move(identity);
    device.facts().name = name;
    const std::string folder = device_folder_name(device.info());
    return folder.substr(0, folder.size() - 34);
  };
  CHECK(words({{"vendor", "AMD"}, {"renderer", "Radeon RX"}, {"isa", "gfx1100"}}, "n") == "amd_radeon_rx");
  CHECK(words({{"vendor", "AMD"}, {"isa", "gfx1100"}}, "n") == "amd_gfx1100");
  CHECK(words({{"vendor", "AMD"}}, "Some Name") == "amd_some_name");
  CHECK(words({{"renderer", "(az09AZ) --"}}, "n") == "az09az");
  CHECK(words({{"renderer", "[`{/:@"}}, "n") == "device");
  CHECK(words({{"vendor", std::string(39, 'a')}, {"renderer", "bc"}}, "n") == std::string(39, 'a'));
  CHECK(words({{"vendor", std::string(38, 'a')}, {"renderer", "bc"}}, "n") == std::string(38, 'a') + "_b");
  CHECK(words({{"vendor", std::string(37, 'a')}, {"renderer", "bc"}}, "n") == std::string(37, 'a') + "_bc");
}

TEST_CASE("cache::manifest: what it says in words, and nothing where it is none") {
  SyntheticDevice device;
  const ManifestWords words = words_of_manifest(encode_manifest(device.info()));
  CHECK(words.device == "Synthetic (test, 1 lane)");
  CHECK(words.kind == "software");
  CHECK(words.driver == "Synthetic 1.0");
  for (const char* text : {"", "[]", "3", "{}", R"({"device": 3, "kind": [], "driver": null})"}) {
    CAPTURE(text);
    const ManifestWords none = words_of_manifest(text);
    CHECK(none.device.empty());
    CHECK(none.kind.empty());
    CHECK(none.driver.empty());
  }
}

TEST_CASE("cache::meta: every figure comes back, and what is none is left as it was") {
  EntryMeta meta;
  meta.key = "k", meta.label = "l", meta.operation = "o", meta.shape = "s", meta.variant = "v";
  meta.build_ms = 1.5, meta.first_dispatch_ms = 2.5, meta.load_ms = 3.5, meta.warm_dispatch_ms = 4.5;
  meta.first_use_ms = 5.5, meta.gflops = 6.5;
  meta.times_used = 7, meta.runs = 8, meta.last_used = -9;
  const auto read = decode_meta(encode_meta(meta));
  REQUIRE(read);
  CHECK(encode_meta(*read) == encode_meta(meta));
  CHECK(read->first_use_ms == 5.5);
  CHECK(read->times_used == 7);
  CHECK(read->last_used == -9);
  const auto odd = decode_meta(
      R"({"key": 1, "label": "l", "build_ms": "x", "load_ms": 3, "times_used": -1, "runs": 2.5, "last_used": 1.5})");
  REQUIRE(odd);
  CHECK(odd->key.empty());
  CHECK(odd->label == "l");
  CHECK(odd->build_ms == 0);
  CHECK(odd->load_ms == 3);
  CHECK(odd->times_used == EntryMeta{}.times_used);
  CHECK(odd->runs == EntryMeta{}.runs);
  CHECK(odd->last_used == EntryMeta{}.last_used);
  CHECK_FALSE(decode_meta("[]"));
  CHECK_FALSE(decode_meta(""));
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
