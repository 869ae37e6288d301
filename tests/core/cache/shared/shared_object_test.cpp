// A shared object that was altered, or that somebody else signed, never becomes a program.
#include "cache/bundle_format.hpp"
#include "cache/cache_root.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"
#include "core/cache/shared/sharing.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <random>

namespace kiln::test {
namespace {

constexpr std::int64_t today_s = 1'790'000'000;

// A program, its entry and objects made from it.
struct Signed {
  SyntheticDevice device;
  SecretKey user, signer;
  ProgramKey key = key_for("one", device);
  std::string folder = device_folder_name(device.info());

  Signed() {
    user.bytes.fill(std::byte{7});
    signer.bytes.fill(std::byte{9});
    device.driver_files = {{mesa_name, std::vector<std::byte>(300, std::byte{1})}};
    device.driver_setting = std::string(64, 'a');
  }

  std::vector<std::byte> entry(std::uint64_t build_ns = 5) {
    const auto binary = *device.serialize(SyntheticProgram("one", 1, device.live));
    const auto payload = encode_payload(binary);
    EntryView view;
    view.format = binary.format;
    view.material = key.material;
    view.stored = payload;
    view.compression = Compression::zstd;
    view.build_ns = build_ns;
    return *encode_entry(view, EntryKey(user));
  }
  std::vector<std::byte> object(std::uint64_t build_ns = 5) {
    return *make_object(entry(build_ns), EntryKey(user), folder, "{}", signer);
  }
  std::vector<TrustedKey> accepted() const { return {{"ci", *public_key_of(signer), std::nullopt, false, {}}}; }
  OpenedObject open(std::span<const std::byte> bytes, const std::vector<TrustedKey>& keys) const {
    return open_object(bytes, keys, today_s, std::string_view(key.material));
  }
};

TEST_CASE("shared object: it holds the program, the driver files and the build time") {
  Signed place;
  const auto object = place.object(77);
  const OpenedObject opened = place.open(object, place.accepted());
  CHECK(opened.why == "");
  REQUIRE(opened.fault == ObjectFault::none);
  CHECK(opened.program.build_ns == 77);
  CHECK(opened.program.material == place.key.material);
  CHECK(opened.program.folder == place.folder);
  REQUIRE(opened.program.binary.driver_files.size() == 1);
  CHECK(opened.program.binary.driver_files[0].name == mesa_name);
  CHECK(opened.program.binary.driver_setting == std::string(64, 'a'));
}

TEST_CASE("shared object: an altered byte, whichever it is, is refused") {
  Signed place;
  const auto good = place.object();
  const auto keys = place.accepted();
  const std::size_t step = is_long() ? 1 : 3;
  for (std::size_t at = 0; at < good.size(); at += step) {
    auto bad = good;
    bad[at] ^= std::byte{1};
    INFO("byte " << at << " of " << good.size());
    const OpenedObject opened = place.open(bad, keys);
    REQUIRE(opened.fault != ObjectFault::none);
    REQUIRE(!opened.why.empty());
    REQUIRE(opened.program.binary.bytes.empty());
  }
}

TEST_CASE("shared object: a truncation, whatever its length is, and bytes behind the end are refused") {
  Signed place;
  const auto good = place.object();
  const auto keys = place.accepted();
  for (std::size_t size = 0; size < good.size(); size += is_long() ? 1 : 7) {
    INFO(size);
    REQUIRE(place.open(std::span(good).first(size), keys).fault == ObjectFault::length);
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  CHECK(place.open(longer, keys).fault == ObjectFault::length);
}

TEST_CASE("shared object: random changes of several bytes are refused") {
  Signed place;
  const auto good = place.object();
  const auto keys = place.accepted();
  std::mt19937 random(1);
  for (int round = 0; round < (is_long() ? 10'000 : 400); ++round) {
    auto bad = good;
    for (unsigned changes = 1 + random() % 8; changes != 0; --changes) {
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    }
    if (bad == good) continue;
    REQUIRE(place.open(bad, keys).fault != ObjectFault::none);
  }
}

TEST_CASE("shared object: each reason has its own name, in the order of the checks") {
  Signed place;
  const auto good = place.object();
  const BundlePublicKey key = *public_key_of(place.signer);

  SECTION("another key") {
    SecretKey other;
    other.bytes.fill(std::byte{8});
    const std::vector<TrustedKey> keys{{"other", *public_key_of(other), std::nullopt, false, {}}};
    CHECK(place.open(good, keys).fault == ObjectFault::unknown_key);
  }
  SECTION("no key at all") { CHECK(place.open(good, {}).fault == ObjectFault::unknown_key); }
  SECTION("the public key replaced by an accepted one") {
    SecretKey other;
    other.bytes.fill(std::byte{8});
    const BundlePublicKey accepted = *public_key_of(other);
    auto bad = good;
    std::ranges::copy(accepted, bad.begin() + 16);
    const std::vector<TrustedKey> keys{{"other", accepted, std::nullopt, false, {}}};
    CHECK(place.open(bad, keys).fault == ObjectFault::signature);
  }
  SECTION("revoked") {
    const std::vector<TrustedKey> keys{{"ci", key, std::nullopt, true, {}}};
    CHECK(place.open(good, keys).fault == ObjectFault::revoked);
  }
  SECTION("expired, to the second") {
    CHECK(place.open(good, {{"ci", key, today_s, false, {}}}).fault == ObjectFault::expired);
    CHECK(place.open(good, {{"ci", key, today_s + 1, false, {}}}).fault == ObjectFault::none);
  }
  SECTION("one name of the key is expired, another is not") {
    const std::vector<TrustedKey> keys{{"old", key, today_s, false, {}}, {"new", key, std::nullopt, false, {}}};
    CHECK(place.open(good, keys).fault == ObjectFault::none);
  }
  SECTION("signed, and the program of another key") {
    const ProgramKey other = key_for("two", place.device);
    CHECK(open_object(good, place.accepted(), today_s, std::string_view(other.material)).fault ==
          ObjectFault::other_program);
  }
  SECTION("signed, and two programs") {
    const auto entry = place.entry();
    const DecodedEntry decoded = decode_entry(entry, EntryKey(place.user));
    BundleWriter writer;
    writer.add(BundledProgram{place.folder, place.key.digest, decoded.entry, "{}"});
    writer.add(BundledProgram{place.folder, place.key.digest, decoded.entry, "{}"});
    const auto bundle = *std::move(writer).finish(place.signer);
    CHECK(place.open(bundle, place.accepted()).fault == ObjectFault::other_program);
  }
  SECTION("signed, and a payload that inflates to another size") {
    const auto entry = place.entry();
    DecodedEntry decoded = decode_entry(entry, EntryKey(place.user));
    decoded.entry.inflated_bytes = 100'000'000;
    BundleWriter writer;
    writer.add(BundledProgram{place.folder, place.key.digest, decoded.entry, "{}"});
    CHECK(place.open(*std::move(writer).finish(place.signer), place.accepted()).fault == ObjectFault::payload);
  }
}

TEST_CASE("shared object: driver files are only accepted under names that the driver chooses") {
  CHECK(is_mesa_file_name(mesa_name));
  CHECK(is_mesa_file_name("mesa_shader_cache/" + mesa_name));
  CHECK(!is_mesa_file_name("mesa_shader_cache/mesa_shader_cache/" + mesa_name));
  CHECK(!is_mesa_file_name("other/" + mesa_name));
  for (const std::string& name : std::vector<std::string>{
           "index", "ab/index", "../" + mesa_name, "ab/0123456789abcdef0123456789abcdef01234",
           "ab" + mesa_name.substr(3), "AB/0123456789abcdef0123456789abcdef012345",
           "ab/0123456789abcdef0123456789abcdef01234/", "ab/../456789abcdef0123456789abcdef0123456789", ""}) {
    INFO(name);
    CHECK(!is_mesa_file_name(name));
  }
  // Signed by a trusted key, and refused all the same.
  Signed place;
  place.device.driver_files = {{"index", {std::byte{1}}}};
  const auto entry = place.entry();
  CHECK(make_object(entry, EntryKey(place.user), place.folder, "{}", place.signer).error().code == StatusCode::corrupt);
  const DecodedEntry decoded = decode_entry(entry, EntryKey(place.user));
  BundleWriter writer;
  writer.add(BundledProgram{place.folder, place.key.digest, decoded.entry, "{}"});
  CHECK(place.open(*std::move(writer).finish(place.signer), place.accepted()).fault == ObjectFault::driver_file);
}

TEST_CASE("shared object: an older object for the same key gives the same program") {
  Signed place;
  const auto older = place.object(1), newer = place.object(2);
  const OpenedObject one = place.open(older, place.accepted()), two = place.open(newer, place.accepted());
  REQUIRE(one.fault == ObjectFault::none);
  REQUIRE(two.fault == ObjectFault::none);
  CHECK(one.program.material == two.program.material);
  CHECK(one.program.binary.bytes == two.program.binary.bytes);
}

TEST_CASE("shared object: an entry that is not authentic here is never signed") {
  Signed place;
  auto entry = place.entry();
  entry[entry.size() / 2] ^= std::byte{1};
  CHECK(!make_object(entry, EntryKey(place.user), place.folder, "{}", place.signer));
  SecretKey other;
  other.bytes.fill(std::byte{3});
  CHECK(!make_object(place.entry(), EntryKey(other), place.folder, "{}", place.signer));
}

TEST_CASE("remote store: by default a batch reads one object after another until a request fails") {
  const auto server = std::make_shared<SharedServer>();
  MemoryStore store(server);
  server->objects["f/one"] = {std::byte{1}};
  server->objects["f/three"] = {std::byte{3}};
  server->objects["f/four"] = {std::byte{4}};
  const std::vector<std::string> names{"f/one", "f/two", "f/three", "f/four"};
  const RemoteLimits limits{.deadline = Deadline::after(std::chrono::seconds(10))};
  std::vector<std::size_t> places;
  std::vector<std::vector<std::byte>> objects;
  const auto ask = [&](std::size_t count) {
    return store.RemoteStore::get_many(std::span<const std::string>(names).first(count), limits,
                                       [&](std::size_t place, std::vector<std::byte> bytes) {
                                         places.push_back(place);
                                         objects.push_back(std::move(bytes));
                                       });
  };
  CHECK(ask(0).ok());
  CHECK(server->gets == 0);
  CHECK(ask(3).ok());
  CHECK(server->gets == 3);
  CHECK(places == std::vector<std::size_t>{0, 2});
  CHECK(objects == std::vector<std::vector<std::byte>>{{std::byte{1}}, {std::byte{3}}});
  server->fails = true;
  CHECK(ask(3).code == StatusCode::unavailable);
  CHECK(server->gets == 4);
  CHECK(places.size() == 2);
}

TEST_CASE("remote index: it is read as it was written, and anything else is refused") {
  RemoteIndex index;
  for (int i = 0; i < 50; ++i) index.push_back({sha256(std::to_string(i)), static_cast<std::uint64_t>(i)});
  index = merged_index({}, index);
  const auto bytes = encode_remote_index(index);
  CHECK(*decode_remote_index(bytes) == index);
  CHECK(decode_remote_index(encode_remote_index({}))->empty());
  for (std::size_t size = 0; size < bytes.size(); size += 5) {
    REQUIRE(!decode_remote_index(std::span(bytes).first(size)));
  }
  auto unsorted = index;
  std::swap(unsorted[3], unsorted[4]);
  CHECK(decode_remote_index(encode_remote_index(unsorted)).error().code == StatusCode::corrupt);
  const RemoteIndex more{{index[7].key, 1000}};
  const RemoteIndex merged = merged_index(index, more);
  CHECK(merged.size() == index.size());
  CHECK(merged[7].build_ns == 1000);
}

}  // namespace
}  // namespace kiln::test
