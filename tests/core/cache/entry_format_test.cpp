// The bytes of an entry: layout, round trip, and every way in which they may be false.
#include "cache/entry_format.hpp"
#include "base/digest.hpp"
#include "cache/key_material.hpp"
#include "core/cache/copied_bytes.hpp"

#include <catch2/catch.hpp>

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace kiln {
namespace {

SecretKey secret_of(unsigned char fill) {
  SecretKey secret;
  secret.bytes.fill(std::byte{fill});
  return secret;
}

const EntryKey our_key(secret_of(7));

std::vector<std::byte> encoded(std::span<const std::byte> payload, Compression compression,
                               const EntryKey& key = our_key) {
  EntryView entry;
  entry.format = "synthetic:1";
  entry.material = "the key's material";
  entry.stored = payload;
  entry.compression = compression;
  entry.build_ns = 1234567;
  return *encode_entry(entry, key);
}

// As one who knows the format but not the key: everything but the signature is made right again.
void repair_checksum(std::vector<std::byte>& bytes) {
  const auto summed = std::span(bytes).first(bytes.size() - entry_trailer_bytes);
  const Checksum sum = xxh3_128(summed);
  std::memcpy(bytes.data() + summed.size(), sum.data(), sum.size());
}

void sign(std::vector<std::byte>& bytes, const EntryKey& key) {
  repair_checksum(bytes);
  const Digest signature = key.hmac.of(std::span(bytes).first(bytes.size() - sizeof(Digest)));
  std::memcpy(bytes.data() + bytes.size() - sizeof(Digest), signature.bytes.data(), sizeof(Digest));
}

TEST_CASE("cache::entry_format: an entry comes back as it was, compressed or not") {
  for (const std::size_t size : {0u, 1u, 100u, 100000u}) {
    const std::vector<std::byte> payload(size, std::byte{'x'});
    for (const Compression compression : {Compression::none, Compression::zstd}) {
      CAPTURE(size, static_cast<int>(compression));
      const auto bytes = encoded(payload, compression);
      const DecodedEntry decoded = decode_entry(bytes, our_key);
      REQUIRE(decoded.rejection == Rejection::none);
      CHECK(decoded.entry.format == "synthetic:1");
      CHECK(decoded.entry.material == "the key's material");
      CHECK(decoded.entry.build_ns == 1234567);
      CHECK(*inflate_payload(decoded.entry) == payload);
      if (compression == Compression::zstd && size == 100000) CHECK(bytes.size() < 1000);
      if (compression == Compression::none) CHECK(decoded.entry.stored.size() == size);
    }
  }
}

TEST_CASE("cache::entry_format: the layout is the documented one") {
  const auto bytes = encoded(test::copied_bytes("payload"), Compression::none);
  CHECK(std::memcmp(bytes.data(), "KILNPROG", 8) == 0);
  CHECK(read_little_endian<std::uint32_t>(bytes, 8) == entry_schema);
  CHECK(read_little_endian<std::uint32_t>(bytes, 12) == 1);
  CHECK(std::equal(our_key.id.begin(), our_key.id.end(), bytes.begin() + 16));
  CHECK(read_little_endian<std::uint32_t>(bytes, 32) == 11);
  CHECK(read_little_endian<std::uint32_t>(bytes, 36) == 18);
  CHECK(read_little_endian<std::uint64_t>(bytes, 40) == 7);
  CHECK(read_little_endian<std::uint64_t>(bytes, 48) == 7);
  CHECK(read_little_endian<std::uint64_t>(bytes, 56) == 1234567);
  CHECK(std::memcmp(bytes.data() + 64, "synthetic:1the key's materialpayload", 36) == 0);
  CHECK(bytes.size() == 64 + 36 + 48);
}

TEST_CASE("cache::entry_format: each one-bit flip is refused") {
  const auto good = encoded(test::copied_bytes("a small payload"), Compression::none);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const Rejection found = decode_entry(bytes, our_key).rejection;
    const Rejection expected = bit / 8 < good.size() - sizeof(Digest) ? Rejection::corrupt : Rejection::tampered;
    if (found != expected) FAIL("bit " << bit << ": " << to_string(found) << ", expected " << to_string(expected));
  }
  SUCCEED();
}

TEST_CASE("cache::entry_format: each truncation and each extension is corrupt") {
  const auto good = encoded(test::copied_bytes("a small payload"), Compression::none);
  for (std::size_t size = 0; size < good.size(); ++size) {
    if (decode_entry(std::span(good).first(size), our_key).rejection != Rejection::corrupt)
      FAIL(size << " bytes passed");
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  CHECK(decode_entry(longer, our_key).rejection == Rejection::corrupt);
}

TEST_CASE("cache::entry_format: an alteration with its checksum repaired is tampered") {
  const auto good = encoded(test::copied_bytes("a small payload"), Compression::none);
  for (std::size_t at = entry_header_bytes; at < good.size() - entry_trailer_bytes; ++at) {
    auto bytes = good;
    bytes[at] ^= std::byte{1};
    repair_checksum(bytes);
    if (decode_entry(bytes, our_key).rejection != Rejection::tampered) FAIL("byte " << at << " passed");
  }
  SUCCEED();
}

TEST_CASE("cache::entry_format: an entry of another key is foreign, also under our id") {
  const EntryKey other(secret_of(8));
  auto bytes = encoded(test::copied_bytes("payload"), Compression::none, other);
  CHECK(decode_entry(bytes, our_key).rejection == Rejection::foreign);
  std::memcpy(bytes.data() + 16, our_key.id.data(), our_key.id.size());
  repair_checksum(bytes);
  CHECK(decode_entry(bytes, our_key).rejection == Rejection::tampered);
}

TEST_CASE("cache::entry_format: nothing beyond the limits is encoded, believed or inflated") {
  EntryLimits tight;
  tight.payload = 1000;
  const std::vector<std::byte> large(2000, std::byte{'x'});
  EntryView entry;
  entry.stored = large;
  entry.compression = Compression::zstd;
  CHECK(encode_entry(entry, our_key, tight).error().code == StatusCode::invalid_argument);
  // Small as stored, too large inflated: refused from its header.
  const DecodedEntry bomb = decode_entry(encoded(large, Compression::zstd), our_key, tight);
  CHECK(bomb.rejection == Rejection::corrupt);
  CHECK(bomb.why == "a length in the header exceeds the limit");
}

TEST_CASE("cache::entry_format: a signed payload that does not inflate to what was declared is corrupt") {
  const auto good = encoded(std::vector<std::byte>(3000, std::byte{'x'}), Compression::zstd);
  const auto with = [&](std::size_t at, std::uint64_t value) {
    auto bytes = good;
    for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
    sign(bytes, our_key);
    const DecodedEntry decoded = decode_entry(bytes, our_key);
    REQUIRE(decoded.rejection == Rejection::none);
    const auto payload = inflate_payload(decoded.entry);
    return payload ? ok_status() : payload.error();
  };
  CHECK(with(48, 3000).ok());
  CHECK(with(48, 2999).code == StatusCode::corrupt);
  CHECK(with(48, 3001).message == "payload bytes 3000, expected 3001");
  auto cut = good;
  cut[12] = std::byte{1};  // says that it is not compressed
  sign(cut, our_key);
  CHECK(inflate_payload(decode_entry(cut, our_key).entry).error().code == StatusCode::corrupt);
  auto torn = good;
  torn[good.size() - entry_trailer_bytes - 1] ^= std::byte{0xff};
  torn[good.size() - entry_trailer_bytes - 2] ^= std::byte{0xff};
  torn[good.size() - entry_trailer_bytes - 4] ^= std::byte{0xff};
  sign(torn, our_key);
  CHECK(inflate_payload(decode_entry(torn, our_key).entry).error().code == StatusCode::corrupt);
}

TEST_CASE("cache::entry_format: another schema is refused with both numbers") {
  auto bytes = encoded(test::copied_bytes("payload"), Compression::none);
  bytes[8] = std::byte{1};
  sign(bytes, our_key);
  CHECK(decode_entry(bytes, our_key).why == "schema 1, expected 2");
}

TEST_CASE("cache::entry_format: each part has its own limit, on both sides of it") {
  const EntryLimits limits{.payload = 100, .material = 20, .format = 10};
  const std::vector<std::byte> payload(101, std::byte{'x'});
  const std::string text(21, 'm');
  const auto encode = [&](std::size_t stored, std::size_t material, std::size_t format) {
    EntryView entry;
    entry.stored = std::span(payload).first(stored);
    entry.material = std::string_view(text).substr(0, material);
    entry.format = std::string_view(text).substr(0, format);
    entry.compression = Compression::none;
    const auto bytes = encode_entry(entry, our_key, limits);
    if (!bytes) return bytes.error().text();
    CHECK(decode_entry(*bytes, our_key, limits).rejection == Rejection::none);
    CHECK(view_entry(*bytes, limits).has_value());
    // A reader with tighter limits refuses each part by its header.
    for (const EntryLimits& tight :
         {EntryLimits{stored - 1, 20, 10}, EntryLimits{100, static_cast<std::uint32_t>(material - 1), 10},
          EntryLimits{100, 20, static_cast<std::uint32_t>(format - 1)}}) {
      CHECK(decode_entry(*bytes, our_key, tight).why == "a length in the header exceeds the limit");
      CHECK_FALSE(view_entry(*bytes, tight));
    }
    return std::string("ok");
  };
  CHECK(encode(100, 20, 10) == "ok");
  CHECK(encode(101, 20, 10) ==
        "invalid_argument: program has 101 bytes, 20 bytes of key material and a format name of 10 bytes, expected at "
        "most 100, 20 and 10");
  CHECK(encode(100, 21, 10).starts_with("invalid_argument: program has 100 bytes, 21 bytes of key material"));
  CHECK(encode(100, 20, 11)
            .starts_with("invalid_argument: program has 100 bytes, 20 bytes of key material and a "
                         "format name of 11"));
  CHECK(limits.file() == 64 + 10 + 20 + 100 + 48);
}

TEST_CASE("cache::entry_format: an entry is looked at without its key where its lengths fit") {
  const auto good = encoded(test::copied_bytes("payload"), Compression::none, EntryKey(secret_of(8)));
  const auto view = view_entry(good);
  REQUIRE(view);
  CHECK(view->format == "synthetic:1");
  CHECK(view->material == "the key's material");
  CHECK(view->build_ns == 1234567);
  CHECK(view->inflated_bytes == 7);
  CHECK(std::ranges::equal(key_id_of_entry(good), EntryKey(secret_of(8)).id));
  CHECK_FALSE(view_entry(std::span(good).first(good.size() - 1)));
  CHECK_FALSE(view_entry(std::span(good).first(entry_header_bytes + entry_trailer_bytes - 1)));
  for (const std::size_t at : {0u, 8u, 12u, 32u, 36u, 40u}) {  // magic, schema, compression and lengths
    CAPTURE(at);
    auto bad = good;
    bad[at] ^= std::byte{0x40};
    CHECK_FALSE(view_entry(bad));
  }
}

TEST_CASE("cache::entry_format: what is wrong with a header is told with both sides") {
  const auto good = encoded(test::copied_bytes("payload"), Compression::none);
  const auto with = [&](std::size_t at, int value) {
    auto bad = good;
    bad[at] = static_cast<std::byte>(value);
    return decode_entry(bad, our_key).why;
  };
  CHECK(with(0, 'k') == "the magic number is not that of a program");
  CHECK(with(8, 3) == "schema 3, expected 2");
  CHECK(with(12, 0) == "compression 0, expected 2");
  CHECK(with(12, 3) == "compression 3, expected 2");
  CHECK(with(40, 8) == "bytes " + std::to_string(good.size()) + ", expected " + std::to_string(good.size() + 1));
  CHECK(with(64, 'S') == "the checksum does not match the content");
  CHECK(decode_entry(std::span(good).first(111), our_key).why == "bytes 111, expected 112 or more");
  CHECK(decode_entry(encoded({}, Compression::none, EntryKey(secret_of(8))), our_key).why ==
        "the program is signed with a key other than the key of this user");
}

TEST_CASE("cache::entry_format: each rejection has a name") {
  const std::pair<Rejection, std::string> names[] = {{Rejection::none, "none"},
                                                     {Rejection::corrupt, "corrupt"},
                                                     {Rejection::tampered, "tampered"},
                                                     {Rejection::foreign, "foreign"},
                                                     {Rejection::driver_changed, "driver_changed"},
                                                     {Rejection::refused, "refused"},
                                                     {Rejection::quarantined, "quarantined"},
                                                     {static_cast<Rejection>(99), "invalid"}};
  for (const auto& [rejection, name] : names) CHECK(to_string(rejection) == name);
  CHECK(rejection_kinds == std::size(names) - 1);
}

TEST_CASE("cache::program_payload: the fields of a payload, in their order") {
  const auto fault = [](const std::vector<std::pair<std::string, std::string>>& fields) {
    KeyEncoder encoder;
    for (const auto& [name, value] : fields) encoder.field(name, value);
    const std::string text = encoder.material();
    const auto program = decode_payload("f", std::as_bytes(std::span(text)));
    return program ? std::to_string(program->driver_files.size()) + " files" : program.error().text();
  };
  const std::pair<std::string, std::string> binary{"binary", "b"}, setting{"driver_setting", "s"};
  CHECK(fault({binary}) == "0 files");
  CHECK(fault({binary, setting, {"name", "a"}, {"content", "x"}}) == "1 files");
  CHECK(fault({binary, setting, {"name", "a"}, {"content", "x"}, {"name", "b"}, {"content", ""}}) == "2 files");
  CHECK(fault({binary, setting}) == "0 files");
  CHECK(fault({}) == "corrupt: payload of 0 bytes: expected field 'binary' first");
  CHECK(fault({setting}) == "corrupt: payload of 27 bytes: expected field 'binary' first");
  const std::string expected =
      " fields, expected binary, driver_setting, and at most 256 driver files of two fields each";
  CHECK(fault({binary, {"name", "a"}, {"content", "x"}, setting}) == "corrupt: payload has 4" + expected);
  CHECK(fault({binary, setting, {"name", "a"}}) == "corrupt: payload has 3" + expected);
  CHECK(fault({binary, setting, {"content", "a"}, {"name", "x"}}) ==
        "corrupt: driver file 1 of 1: invalid name, order or size");
  CHECK(fault({binary, setting, {"name", "a"}, {"content", "x"}, {"name", "b"}, {"contents", ""}}) ==
        "corrupt: driver file 2 of 2: invalid name, order or size");
  CHECK(fault({binary, setting, {"name", "b"}, {"content", "x"}, {"name", "a"}, {"content", ""}}) ==
        "corrupt: driver file 2 of 2: invalid name, order or size");
  CHECK(fault({binary, setting, {"name", "a"}, {"content", "x"}, {"name", "a"}, {"content", ""}}) ==
        "corrupt: driver file 2 of 2: invalid name, order or size");
}

}  // namespace
}  // namespace kiln
