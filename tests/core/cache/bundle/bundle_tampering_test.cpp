// Bundles that somebody altered, cut, signed with another key, or signed with evil in mind: refused, and nothing
// placed.
#include "core/cache/bundle/machines.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;

struct Exported {
  Machine first, second;
  std::vector<std::byte> bytes;

  Exported() {
    first.build({"one", "two"});
    if (!export_cache(first.config, first.bundle(), {})) throw std::runtime_error("not exported");
    bytes = contents(first.bundle());
  }
  // Of a bundle with these bytes; nothing may have been placed.
  Status refusal(const std::vector<std::byte>& altered, const std::string& trust) {
    const auto file = second.temporary.path() / "altered";
    overwrite(file, altered);
    const auto taken = second.import(file, trust);
    if (taken) return {};
    if (std::filesystem::exists(second.config.directory)) return internal_error("something was placed");
    return taken.error();
  }
};

TEST_CASE("cache::bundle: one bit altered anywhere in the file, and it is refused whole") {
  Exported exported;
  const std::string trust = exported.first.key();
  REQUIRE(exported.bytes.size() > 800);
  const std::size_t step = is_long() ? 1 : 3;
  int refused = 0, tried = 0;
  for (std::size_t at = 0; at < exported.bytes.size(); at += at < 64 || at + 70 > exported.bytes.size() ? 1 : step) {
    std::vector<std::byte> altered = exported.bytes;
    altered[at] ^= static_cast<std::byte>(1u << (at % 8));
    ++tried;
    refused += exported.refusal(altered, trust).code == StatusCode::corrupt ? 1 : 0;
  }
  CHECK(refused == tried);
  CHECK(exported.refusal(exported.bytes, trust).ok());
}

TEST_CASE("cache::bundle: cut off anywhere, or with something after its end, it is refused whole") {
  Exported exported;
  const std::string trust = exported.first.key();
  const std::size_t step = is_long() ? 1 : 17;
  for (std::size_t size = 0; size < exported.bytes.size(); size += size < 130 ? 1 : step) {
    std::vector<std::byte> cut(exported.bytes.begin(), exported.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    CAPTURE(size);
    REQUIRE(exported.refusal(cut, trust).code == StatusCode::corrupt);
  }
  std::vector<std::byte> longer = exported.bytes;
  longer.push_back({});
  const Status status = exported.refusal(longer, trust);
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message,
             Contains(std::to_string(longer.size())) && Contains(std::to_string(exported.bytes.size())));
}

TEST_CASE("cache::bundle: another's key, a key put in its place, and no signature at all") {
  Exported exported;
  const std::string trust = exported.first.key();
  Machine stranger;
  const Status wrong = exported.refusal(exported.bytes, stranger.key());
  CHECK_THAT(wrong.message, Contains("signed by key " + trust) && Contains("trusted key " + stranger.key()));
  // Signed by the stranger, and made to name the trusted key.
  stranger.build({"one"});
  REQUIRE(export_cache(stranger.config, stranger.bundle(), {}));
  auto renamed = contents(stranger.bundle());
  std::copy(exported.bytes.begin() + 16, exported.bytes.begin() + 48, renamed.begin() + 16);
  CHECK_THAT(exported.refusal(renamed, trust).message, Contains("not signed by key " + trust));
  auto unsigned_one = exported.bytes;
  std::fill(unsigned_one.end() - 64, unsigned_one.end(), std::byte{0});
  CHECK(exported.refusal(unsigned_one, trust).code == StatusCode::corrupt);
  CHECK_THAT(exported.refusal(std::vector<std::byte>(500, std::byte{'x'}), trust).message, Contains("KILNBNDL"));
  auto newer = exported.bytes;
  newer[8] = std::byte{3};
  CHECK_THAT(exported.refusal(newer, trust).message, Contains("schema 3, expected 2"));
  auto older = exported.bytes;
  older[8] = std::byte{1};
  CHECK_THAT(exported.refusal(older, trust).message, Contains("schema 1, expected 2. Export the bundle again"));
}

// The corpus of the fuzzer was written by another program, from the description of the format alone.
TEST_CASE("cache::bundle: what another program wrote by the description is read, and its bad ones are refused") {
  const std::filesystem::path corpus = KILN_SOURCE_DIR "/tests/corpus/cache_bundle";
  SecretKey secret;
  secret.bytes.fill(std::byte{7});
  const BundlePublicKey key = *public_key_of(secret);
  const auto whole = contents(corpus / "whole");
  const auto bundle = decode_bundle(whole, key);
  INFO((bundle ? "" : bundle.error().message));
  REQUIRE(bundle);
  CHECK(bundle->devices.size() == 1);
  REQUIRE(bundle->programs.size() == 2);
  CHECK(*inflate_payload(bundle->programs[0].entry) == *inflate_payload(bundle->programs[1].entry));
  CHECK(bundle->programs[0].entry.build_ns == 1'234'567);
  const auto nothing = contents(corpus / "empty");
  CHECK(decode_bundle(nothing, key));
  const auto lying = contents(corpus / "inflates_otherwise");
  const auto liar = decode_bundle(lying, key);
  REQUIRE(liar);
  CHECK_FALSE(inflate_payload(liar->programs.at(0).entry));
  const std::pair<const char*, const char*> bad[] = {
      {"truncated", "truncated"},
      {"unsigned", "was altered, or was not signed"},
      {"key_not_of_material", "is not valid in schema 2 (kind 2)"},
      {"records_miscounted", "records"},
      {"kind_unknown", "is not valid in schema 2 (kind 9)"},
      {"schema_1", "schema 1, expected 2"},  // with records of the kinds 3 and 4
      {"kind_3", "is not valid in schema 2 (kind 3)"},
      {"kind_4", "is not valid in schema 2 (kind 4)"},
  };
  for (const auto& [name, why] : bad) {
    CAPTURE(name);
    const auto bytes = contents(corpus / name);
    const auto refused = decode_bundle(bytes, key);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == StatusCode::corrupt);
    CHECK_THAT(refused.error().message, Contains(why));
  }
}

// The signer is trusted, and yet: what would lead out of the folders, or lie about itself, is refused whole.
TEST_CASE("cache::bundle: a signature is no licence: what schema 2 does not allow is refused with it") {
  Exported exported;
  const SecretKey secret = *read_bundle_key(exported.first.config, IfMissing::fail);
  const std::string trust = exported.first.key();
  const std::string folder = device_folder_name(exported.first.device.info());
  const ProgramKey key = key_for("evil", exported.first.device);
  const std::string payload = "payload";
  EntryView entry;
  entry.format = "synthetic:2";
  entry.material = key.material;
  entry.stored = std::as_bytes(std::span(payload));
  entry.compression = Compression::none;
  entry.inflated_bytes = payload.size();
  const BundledProgram good{folder, key.digest, entry, "{}"};
  const auto refused = [&](const std::function<void(BundleWriter&)>& add) {
    BundleWriter writer;
    writer.add(good);
    add(writer);
    const auto bytes = std::move(writer).finish(secret);
    REQUIRE(bytes);
    return exported.refusal(*bytes, trust);
  };
  const auto program = [&](const std::function<void(BundledProgram&)>& alter) {
    return refused([&](BundleWriter& writer) {
      BundledProgram bad = good;
      alter(bad);
      writer.add(bad);
    });
  };
  CHECK(program([](auto& bad) { bad.folder = "../../x-0123456789abcdef-0123456789abcdef/"; }).code ==
        StatusCode::corrupt);
  CHECK(program([](auto& bad) { bad.folder = ".."; }).code == StatusCode::corrupt);
  CHECK(program([](auto& bad) { bad.key.bytes[0] ^= 1; }).code == StatusCode::corrupt);
  CHECK(program([](auto& bad) { bad.entry.inflated_bytes = 1ull << 40; }).code == StatusCode::corrupt);
  CHECK(program([](auto& bad) { bad.entry.compression = Compression::invalid; }).code == StatusCode::corrupt);
  const std::string long_text(70'000, 'x');
  CHECK(program([&](auto& bad) { bad.meta = long_text; }).code == StatusCode::corrupt);
  const Status status = refused([](auto& writer) { writer.add(BundledDevice{"no folder", "{}"}); });
  CHECK(status.code == StatusCode::corrupt);
  CHECK_THAT(status.message, Contains("record 2 of 2"));
}

}  // namespace
}  // namespace kiln::test
