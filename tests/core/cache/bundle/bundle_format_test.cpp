// The bytes of a bundle and of a shared object: every length and every field on both sides of what is allowed.
#include "cache/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/key_material.hpp"
#include "core/cache/copied_bytes.hpp"

#include <kiln/digest.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <string>

namespace kiln::test {
namespace {

using Field = std::pair<std::string, std::string>;
using Fields = std::vector<Field>;

const std::string folder = "w-0123456789abcdef-0123456789abcdef";
const std::string material = "the key's material";

SecretKey secret() {
  SecretKey made;
  made.bytes.fill(std::byte{7});
  return made;
}

std::string eight_bytes(std::uint64_t value) {
  std::vector<std::byte> bytes;
  append_little_endian(bytes, value);
  return copied_text(bytes);
}

std::string record(std::uint32_t kind, const std::string& body) {
  std::vector<std::byte> bytes;
  append_little_endian(bytes, kind);
  append_little_endian(bytes, static_cast<std::uint64_t>(body.size()));
  return copied_text(bytes) + body;
}

std::string encoded(const Fields& fields) {
  KeyEncoder encoder;
  for (const auto& [name, value] : fields) encoder.field(name, value);
  return encoder.material();
}

std::string digest_text(const std::string& of) {
  const Digest digest = sha256(of);
  return copied_text(std::as_bytes(std::span(digest.bytes)));
}

Fields device_fields() { return {{"folder", folder}, {"manifest", "{}"}}; }

Fields program_fields() {
  return {{"folder", folder},
          {"key", digest_text(material)},
          {"format", "f"},
          {"material", material},
          {"build_ns", eight_bytes(77)},
          {"compression", eight_bytes(1)},
          {"inflated", eight_bytes(4)},
          {"payload", "abcd"},
          {"meta", "{}"}};
}

// What decode_bundle_records() says of a body; "devices programs" where it takes it.
std::string decoded(const std::string& body, std::uint32_t records, const BundleLimits& limits = {}) {
  const auto bundle = decode_bundle_records(std::as_bytes(std::span(body)), records, limits);
  if (!bundle) return bundle.error().text();
  return std::to_string(bundle->devices.size()) + " " + std::to_string(bundle->programs.size());
}

TEST_CASE("cache::bundle_format: a record of a program has these fields") {
  const std::string body = record(2, encoded(program_fields()));
  const auto bundle = decode_bundle_records(std::as_bytes(std::span(body)), 1);
  REQUIRE(bundle);
  CHECK(bundle->devices.empty());
  REQUIRE(bundle->programs.size() == 1);
  const BundledProgram& program = bundle->programs[0];
  CHECK(program.folder == folder);
  CHECK(program.key == sha256(material));
  CHECK(program.entry.format == "f");
  CHECK(program.entry.material == material);
  CHECK(program.entry.build_ns == 77);
  CHECK(program.entry.compression == Compression::none);
  CHECK(program.entry.inflated_bytes == 4);
  CHECK(copied_text(program.entry.stored) == "abcd");
  CHECK(program.meta == "{}");
}

TEST_CASE("cache::bundle_format: records are as many and as long as was said") {
  const std::string device = record(1, encoded(device_fields())), program = record(2, encoded(program_fields()));
  CHECK(decoded("", 0) == "0 0");
  CHECK(decoded(device, 1) == "1 0");
  CHECK(decoded(program, 1) == "0 1");
  CHECK(decoded(device + program + program, 3) == "1 2");
  CHECK(decoded("", 1) == "corrupt: has 0 records, expected 1");
  CHECK(decoded(device, 2) == "corrupt: has 1 records, expected 2");
  CHECK(decoded(device + program, 1) ==
        "corrupt: has " + std::to_string(program.size()) + " bytes after the last record, expected 0");
  CHECK(decoded("x", 0) == "corrupt: has 1 bytes after the last record, expected 0");
  CHECK(decoded(device + program.substr(0, 11), 2) == "corrupt: record 2 of 2: header has 11 bytes, expected 12");
  CHECK(decoded(device.substr(0, device.size() - 1), 1) ==
        "corrupt: record 1 of 1: has " + std::to_string(device.size() - 13) + " bytes, expected " +
            std::to_string(device.size() - 12));
  CHECK(decoded(record(3, encoded(device_fields())), 1) == "corrupt: record 1 of 1: is not valid in schema 2 (kind 3)");
  CHECK(decoded(record(1, ""), 1) == "corrupt: record 1 of 1: is not valid in schema 2 (kind 1)");
  CHECK(decoded(record(0, ""), 1) == "corrupt: record 1 of 1: is not valid in schema 2 (kind 0)");
  BundleLimits two;
  two.records = 2;
  CHECK(decoded(device + device, 2, two) == "2 0");
  CHECK(decoded(device + device + device, 3, two) == "corrupt: has 3 records, expected at most 2");
}

TEST_CASE("cache::bundle_format: each field is there, under its name, in its place, and no other") {
  const auto [kind, all] = GENERATE(table<std::uint32_t, Fields>({{1, device_fields()}, {2, program_fields()}}));
  const std::string good = kind == 1 ? "1 0" : "0 1";
  const std::string refused = "corrupt: record 1 of 1: is not valid in schema 2 (kind " + std::to_string(kind) + ")";
  CHECK(decoded(record(kind, encoded(all)), 1) == good);
  CHECK(decoded(record(kind, "no fields"), 1) == refused);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].first);
    Fields fields = all;
    fields[i].first += "x";
    CHECK(decoded(record(kind, encoded(fields)), 1) == refused);
    fields = all;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(decoded(record(kind, encoded(fields)), 1) == refused);
    fields = all;
    fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(i), {"more", ""});
    CHECK(decoded(record(kind, encoded(fields)), 1) == refused);
  }
  Fields longer = all;
  longer.emplace_back("more", "");
  CHECK(decoded(record(kind, encoded(longer)), 1) == refused);
}

TEST_CASE("cache::bundle_format: what each field may hold") {
  BundleLimits limits;
  limits.text = 20;
  limits.entry.format = 3;
  limits.entry.material = static_cast<std::uint32_t>(material.size());
  limits.entry.payload = 5;
  const auto with = [&](std::uint32_t kind, const std::string& name, const std::string& value) {
    Fields fields = kind == 1 ? device_fields() : program_fields();
    for (Field& field : fields) {
      if (field.first == name) field.second = value;
    }
    return decoded(record(kind, encoded(fields)), 1, limits).starts_with("corrupt") ? "refused" : "taken";
  };
  struct Case {
    std::uint32_t kind;
    std::string name, value, verdict;
  };
  for (const Case& one : {
           Case{1, "folder", "../x", "refused"},
           Case{1, "manifest", std::string(20, 'x'), "taken"},
           Case{1, "manifest", std::string(21, 'x'), "refused"},
           Case{2, "folder", "../x", "refused"},
           Case{2, "key", digest_text("another"), "refused"},
           Case{2, "key", digest_text(material).substr(1), "refused"},
           Case{2, "format", "abc", "taken"},
           Case{2, "format", "abcd", "refused"},
           Case{2, "build_ns", std::string(7, '\0'), "refused"},
           Case{2, "build_ns", std::string(9, '\0'), "refused"},
           Case{2, "build_ns", eight_bytes(~0ull), "taken"},
           Case{2, "compression", eight_bytes(0), "refused"},
           Case{2, "compression", eight_bytes(2), "taken"},
           Case{2, "compression", eight_bytes(3), "refused"},
           Case{2, "inflated", eight_bytes(5), "taken"},
           Case{2, "inflated", eight_bytes(6), "refused"},
           Case{2, "payload", "abcde", "taken"},
           Case{2, "payload", "abcdef", "refused"},
           Case{2, "meta", std::string(20, 'x'), "taken"},
           Case{2, "meta", std::string(21, 'x'), "refused"},
       }) {
    CAPTURE(one.kind, one.name, one.value);
    CHECK(with(one.kind, one.name, one.value) == one.verdict);
  }
  // Material beyond its limit, under its own digest.
  Fields fields = program_fields();
  fields[3].second += "x";
  fields[1].second = digest_text(fields[3].second);
  CHECK(decoded(record(2, encoded(fields)), 1, limits).starts_with("corrupt"));
  ++limits.entry.material;
  CHECK(decoded(record(2, encoded(fields)), 1, limits) == "0 1");
}

TEST_CASE("cache::bundle_format: what is wrong with a header is told, the lengths before the key") {
  const SecretKey key = secret();
  const BundlePublicKey trusted = *public_key_of(key);
  BundleWriter writer;
  writer.add(BundledDevice{folder, "{}"});
  const auto bytes = *std::move(writer).finish(key);
  const std::uint64_t size = bytes.size();
  BundleLimits limits;
  limits.file = size;
  const auto fault = [&](const std::vector<std::byte>& beginning, std::uint64_t file_bytes) {
    const auto records = decode_bundle_header(beginning, file_bytes, trusted, limits);
    return records ? std::to_string(*records) : records.error().text();
  };
  const auto with = [&](std::size_t at, std::uint8_t value) {
    auto changed = bytes;
    changed[at] = std::byte{value};
    return fault(changed, size);
  };
  const auto first = [&](std::size_t count) {
    return std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  };
  CHECK(fault(bytes, size) == "1");
  CHECK(fault(first(56), size) == "1");
  CHECK(fault(first(7), size) == "corrupt: is not a bundle: does not begin with KILNBNDL");
  CHECK(with(7, 'X') == "corrupt: is not a bundle: does not begin with KILNBNDL");
  CHECK(fault(first(55), size) ==
        "corrupt: is truncated: has " + std::to_string(size) + " bytes, expected at least 120");
  CHECK(fault(bytes, 119) == "corrupt: is truncated: has 119 bytes, expected at least 120");
  CHECK(fault(bytes, 120) == "corrupt: is truncated or altered: has 120 bytes, expected " + std::to_string(size));
  CHECK(fault(bytes, size + 1) ==
        "corrupt: has " + std::to_string(size + 1) + " bytes, expected at most " + std::to_string(size));
  CHECK(with(8, 3) ==
        "corrupt: has schema 3, expected 2. Export the bundle again with the version of Kiln that imports it");
  CHECK(with(12, 9) == "9");
  CHECK(with(55, 1) == "corrupt: is truncated or altered: has " + std::to_string(size) + " bytes, expected 120");
  CHECK(with(16, static_cast<std::uint8_t>(trusted[0]) ^ 1u).starts_with("corrupt: is signed by key "));
  limits.file = size + 1;
  CHECK(fault(bytes, size + 1) == "corrupt: is truncated or altered: has " + std::to_string(size + 1) +
                                      " bytes, expected " + std::to_string(size));
}

TEST_CASE("cache::bundle_format: no bundle beyond a limit is written") {
  const auto finished = [](std::uint64_t file, std::uint32_t records) {
    BundleWriter writer;
    writer.add(BundledDevice{folder, "{}"});
    writer.add(BundledDevice{folder, "{}"});
    BundleLimits limits;
    limits.file = file;
    limits.records = records;
    const auto bytes = std::move(writer).finish(secret(), limits);
    return bytes ? std::to_string(bytes->size()) : bytes.error().text();
  };
  // A record has 12 bytes before its fields, and a field 12 bytes before its name and value.
  const std::uint64_t size = 56 + 2 * (12 + 12 + 6 + 35 + 12 + 8 + 2) + 64;
  CHECK(finished(size, 2) == std::to_string(size));
  const std::string found = "invalid_argument: bundle has " + std::to_string(size) + " bytes and 2 records, expected ";
  CHECK(finished(size - 1, 2) ==
        found + "at most " + std::to_string(size - 1) + " bytes and 2 records. Name fewer programs");
  CHECK(finished(size, 1) == found + "at most " + std::to_string(size) + " bytes and 1 records. Name fewer programs");
}

TEST_CASE("shared object: what is refused after its signature is told") {
  const std::vector<TrustedKey> keys{{"ci", *public_key_of(secret()), std::nullopt, false, {}}};
  const auto opened = [&](const std::function<void(BundleWriter&)>& add) {
    BundleWriter writer;
    add(writer);
    const auto bytes = *std::move(writer).finish(secret());
    const OpenedObject object = open_object(bytes, keys, 1'790'000'000, std::nullopt);
    return std::string(to_string(object.fault)) + ": " + object.why;
  };
  const std::string payload = encoded({{"binary", "b"}}), no_payload = "abcd";
  EntryView entry;
  entry.format = "f";
  entry.material = material;
  entry.stored = std::as_bytes(std::span(payload));
  entry.compression = Compression::none;
  entry.inflated_bytes = payload.size();
  const BundledProgram good{folder, sha256(material), entry, "{}"};
  CHECK(opened([&](BundleWriter& writer) { writer.add(good); }) == "none: ");
  CHECK(opened([](BundleWriter&) {}) == "other_program: holds 0 programs, expected 1");
  CHECK(opened([](BundleWriter& writer) {
          writer.add(BundledDevice{folder, "{}"});
        }) == "other_program: holds 0 programs, expected 1");
  CHECK(opened([&](BundleWriter& writer) { writer.add(good), writer.add(good); }) ==
        "other_program: has 2 records, expected at most 1");
  BundledProgram bad = good;
  bad.entry.stored = std::as_bytes(std::span(no_payload));
  CHECK(opened([&](BundleWriter& writer) { writer.add(bad); }) ==
        "bad_payload: is damaged: payload bytes 4, expected " + std::to_string(payload.size()));
  bad.entry.inflated_bytes = 4;
  CHECK(opened([&](BundleWriter& writer) { writer.add(bad); }) ==
        "bad_payload: is damaged: payload of 4 bytes: expected field 'binary' first");
  CHECK(make_object(bad, secret()).error().text() == "corrupt: payload of 4 bytes: expected field 'binary' first");
  bad.entry.inflated_bytes = 5;
  CHECK(make_object(bad, secret()).error().text() == "corrupt: payload bytes 4, expected 5");
  CHECK(make_object(good, secret()));
  const std::vector<std::byte> shortest(119);
  const OpenedObject truncated = open_object(shortest, keys, 1'790'000'000, std::nullopt);
  CHECK(truncated.fault == ObjectFault::length);
  CHECK(truncated.why == "has 119 bytes, expected at least 120");
}

TEST_CASE("shared object: each fault has a name and a count") {
  const std::tuple<ObjectFault, std::string, std::uint64_t SharedCounts::*> faults[] = {
      {ObjectFault::length, "bad_length", &SharedCounts::bad_length},
      {ObjectFault::unknown_key, "unknown_key", &SharedCounts::unknown_key},
      {ObjectFault::revoked, "revoked", &SharedCounts::revoked},
      {ObjectFault::expired, "expired", &SharedCounts::expired},
      {ObjectFault::signature, "bad_signature", &SharedCounts::bad_signature},
      {ObjectFault::other_program, "other_program", &SharedCounts::other_program},
      {ObjectFault::payload, "bad_payload", &SharedCounts::bad_payload},
      {ObjectFault::driver_file, "bad_driver_file", &SharedCounts::bad_driver_file}};
  SharedCounts counts;
  for (const auto& [fault, name, count] : faults) {
    CHECK(to_string(fault) == name);
    CHECK(&count_of(counts, fault) == &(counts.*count));
  }
  CHECK(to_string(ObjectFault::none) == "none");
  CHECK(to_string(static_cast<ObjectFault>(99)) == "invalid");
}

TEST_CASE("shared object: a name of Mesa's cache has hexadecimal digits alone") {
  const std::string name = "ab/0123456789abcdef0123456789abcdef012345";
  for (int code = 0; code < 256; ++code) {
    const char c = static_cast<char>(code);
    const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    CAPTURE(code);
    for (const std::size_t at : {0u, 1u, 3u, 40u}) {
      std::string changed = name;
      changed[at] = c;
      CHECK(is_mesa_file_name(changed) == is_digit);
    }
    std::string changed = name;
    changed[2] = c;
    CHECK(is_mesa_file_name(changed) == (c == '/'));
  }
}

}  // namespace
}  // namespace kiln::test
