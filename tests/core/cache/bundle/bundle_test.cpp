// export and import: what one machine built another runs without building, and only what is for it.
#include "cache/entry_format.hpp"
#include "core/cache/bundle/machines.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("cache::bundle: a second machine runs what the first one built, and builds nothing") {
  Machine first, second;
  first.build({"one", "two", "three"});
  const auto made = export_cache(first.config, first.bundle(), {});
  REQUIRE(made);
  CHECK(made->programs == 3);
  CHECK(made->bad.empty());
  CHECK(made->bytes == std::filesystem::file_size(first.bundle()));
  CHECK(made->public_key == first.key());
  CHECK(first.key() != second.key());

  const auto taken = second.import(first.bundle(), made->public_key);
  INFO((taken ? "" : taken.error().text()));
  REQUIRE(taken);
  CHECK(taken->programs == 3);
  CHECK(taken->programs_already == 0);
  CHECK(taken->programs_of_others == 0);
  CHECK(verify_cache(second.config, BadEntries::keep)->ok == 3);  // signed anew, with the second machine's key
  {
    const auto cache = second.open();
    for (const char* text : {"one", "two", "three"}) CHECK(acquire(*cache, text, second.device)->tier == Tier::disk);
    CHECK(cache->stats().disk_hits == 3);
    CHECK(cache->stats().builds == 0);
  }
  CHECK(second.device.builds == 0);
  CHECK(second.device.false_bytes == 0);
  const auto stored = cache_inventory(second.config, Detail::programs);
  CHECK(stored->programs[0].label == "the label of one");
  CHECK(stored->programs[0].build_ms > 0);
  CHECK(stored->devices.at(0).driver == "Synthetic 1.0");
}

TEST_CASE("cache::bundle: an import tells each program's number of all") {
  Machine first, second;
  first.build({"one", "two", "three"});
  const auto made = export_cache(first.config, first.bundle(), {});
  REQUIRE(made);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  const auto progress = [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); };
  REQUIRE(import_cache(second.config, {first.bundle(), made->public_key, {second.device.info()}, progress}));
  CHECK(told == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 3}, {2, 3}, {3, 3}});
}

TEST_CASE("cache::bundle: importing again, or after an import that was cut off, takes what is missing and no more") {
  Machine first, second;
  first.build({"one", "two"});
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  REQUIRE(second.import(first.bundle(), first.key()));
  const auto again = second.import(first.bundle(), first.key());
  CHECK(again->programs == 0);
  CHECK(again->programs_already == 2);
  CHECK(again->bytes == 0);
  std::filesystem::remove(second.files(".bin").front());
  auto damaged = contents(second.files(".bin").front());
  damaged.back() ^= std::byte{1};
  overwrite(second.files(".bin").front(), damaged);
  const auto rest = second.import(first.bundle(), first.key());
  CHECK(rest->programs == 2);
  CHECK(verify_cache(second.config, BadEntries::keep)->ok == 2);
}

TEST_CASE("cache::bundle: an import takes nothing that is in quarantine, until the quarantine ends") {
  Machine first, second;
  first.build({"one", "two"});
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  REQUIRE(second.import(first.bundle(), first.key()));
  const std::filesystem::path program = second.files(".bin").front();
  std::filesystem::path aside = program;
  aside.replace_extension(".quarantined");
  std::filesystem::rename(program, aside);
  std::filesystem::last_write_time(aside, std::filesystem::file_time_type::clock::now());
  for (int i = 0; i < 2; ++i) {
    const auto taken = second.import(first.bundle(), first.key());
    REQUIRE(taken);
    CHECK(taken->programs == 0);
    CHECK(taken->programs_already == 1);
    CHECK(taken->programs_quarantined == 1);
    CHECK(taken->bytes == 0);
    CHECK_FALSE(std::filesystem::exists(program));
    CHECK(std::filesystem::exists(aside));
  }
  std::filesystem::last_write_time(aside, std::filesystem::file_time_type::clock::now() - std::chrono::hours(8 * 24));
  const auto later = second.import(first.bundle(), first.key());
  REQUIRE(later);
  CHECK(later->programs == 1);
  CHECK(later->programs_quarantined == 0);
  CHECK(std::filesystem::exists(program));
}

TEST_CASE("cache::bundle: what is named, by label or key, and nothing else; what is not sound is left out and told") {
  Machine first, second;
  first.build({"one", "two", "three"});
  const std::vector<std::string> named = {"the label of one", key_for("two", first.device).digest.hex().substr(0, 8)};
  CHECK(export_cache(first.config, first.bundle(), named)->programs == 2);
  CHECK(second.import(first.bundle(), first.key())->programs == 2);
  const std::vector<std::string> unknown = {"nobody"};
  CHECK_THAT(export_cache(first.config, first.bundle(), unknown).error().message, Contains("'nobody'"));

  auto damaged = contents(first.files(".bin").front());
  damaged[70] ^= std::byte{1};
  overwrite(first.files(".bin").front(), damaged);
  const auto made = export_cache(first.config, first.bundle(), {});
  CHECK(made->programs == 2);
  REQUIRE(made->bad.size() == 1);
  CHECK(made->bad[0].reason == "corrupt");
  CHECK_FALSE(made->bad[0].removed);
  Machine none;
  CHECK(export_cache(none.config, none.bundle(), {}).error().code == StatusCode::not_found);
  CHECK_FALSE(std::filesystem::exists(none.bundle()));
}

TEST_CASE(
    "cache::bundle: for another driver or device it is refused, with both named; of several, each takes its own") {
  Machine first, second;
  first.build({"one"});
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  second.device.facts().driver_identity[0].second = "2.0";
  second.device.facts().driver = "Synthetic 2.0";
  const auto refused = second.import(first.bundle(), first.key());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::unsupported);
  CHECK_THAT(refused.error().message, Contains("Synthetic 1.0") && Contains("Synthetic 2.0"));
  CHECK_THAT(refused.error().message, Contains("differ in version: there 1.0, here 2.0. [plugins] load can name"));
  CHECK(second.files(".bin").empty());
  Machine third;
  third.device.facts().device_identity[0].second = "another";
  const auto elsewhere = third.import(first.bundle(), first.key());
  REQUIRE_FALSE(elsewhere);
  CHECK_THAT(elsewhere.error().message, !Contains("differ in"));
  const auto nothing = import_cache(second.config, {first.bundle(), first.key(), {}});
  CHECK_THAT(nothing.error().message, Contains("no device that stores programs"));
  CHECK_FALSE(std::filesystem::exists(second.config.directory));

  SyntheticDevice newer;
  newer.facts().driver_identity[0].second = "2.0";
  newer.facts().driver = "Synthetic 2.0";
  REQUIRE(acquire(*first.open(), "one", newer));
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  const auto taken = second.import(first.bundle(), first.key());
  REQUIRE(taken);
  CHECK(taken->programs == 1);
  CHECK(taken->programs_of_others == 1);
  CHECK(acquire(*second.open(), "one", second.device)->tier == Tier::disk);
}

TEST_CASE("cache::bundle: driver files go along inside their programs, and folders of drivers do not") {
  Machine first, second;
  first.device.driver_setting = std::string(64, 'a');
  first.device.driver_files = {{"mesa_shader_cache/0f/one", std::vector<std::byte>(100, std::byte{7})}};
  first.build({"one"});
  const auto folder = first.config.directory / "driver" / std::string(64, 'a');
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "index") << "of an older version";
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  REQUIRE(second.import(first.bundle(), first.key())->programs == 1);
  CHECK_FALSE(std::filesystem::exists(second.config.directory / "driver"));
  const auto secret = read_secret_key(second.config.key_file, IfMissing::fail);
  const auto bytes = contents(second.files(".bin").at(0));
  const DecodedEntry decoded = decode_entry(bytes, EntryKey(*secret));
  REQUIRE(decoded.rejection == Rejection::none);
  const auto payload = inflate_payload(decoded.entry);
  REQUIRE(payload);
  const auto program = decode_payload(std::string(decoded.entry.format), *payload);
  REQUIRE(program);
  CHECK(program->driver_setting == first.device.driver_setting);
  CHECK(program->driver_files == first.device.driver_files);
}

TEST_CASE("cache::bundle: read_only and max_disk hold for imports too") {
  Machine first, second;
  first.build({"one", "two"});
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  second.config.read_only = true;
  const auto refused = second.import(first.bundle(), first.key());
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Contains("read_only"));
  second.config.read_only = false;
  second.config.max_disk = 600;
  const auto large = second.import(first.bundle(), first.key());
  CHECK(large.error().code == StatusCode::unavailable);
  CHECK_THAT(large.error().message, Contains("at most 600 (max_disk)"));
  CHECK_FALSE(std::filesystem::exists(second.config.directory));
  // What is older gives way to what was imported.
  second.config.max_disk = 6000;
  second.config.compression = "none";
  second.build({std::string(1500, 'x'), std::string(1500, 'y')});
  const auto taken = second.import(first.bundle(), first.key());
  REQUIRE(taken);
  CHECK(taken->programs == 2);
  CHECK(cache_inventory(second.config, Detail::figures)->bytes_stored <= 6000 + 2000);
}

TEST_CASE("cache::bundle: the key is made once, for this user alone, beside the other and never in the cache") {
  Machine machine;
  const auto key = bundle_public_key(machine.config);
  REQUIRE(key);
  CHECK(key->size() == 64);
  CHECK(*bundle_public_key(machine.config) == *key);
  const std::filesystem::path file = machine.config.key_file.string() + ".bundle";
  struct stat at {};
  REQUIRE(stat(file.c_str(), &at) == 0);
  CHECK((at.st_mode & 07777) == 0600);
  CHECK(at.st_size == 32);
  chmod(file.c_str(), 0644);
  CHECK_THAT(bundle_public_key(machine.config).error().message, Contains("0644") && Contains("0600"));
  machine.config.key_file = machine.config.directory / "key";
  CHECK_THAT(bundle_public_key(machine.config).error().message, Contains("is in the cache folder"));
  machine.config.key_file.clear();
  CHECK(bundle_public_key(machine.config).error().text() ==
        "unavailable: no key file is configured. Set HOME or XDG_STATE_HOME to an absolute path, or set KILN_KEY_FILE "
        "or [cache] key_file");
}

TEST_CASE("cache::bundle: the trusted key is 64 digits or a file that begins with them, and anything else is told") {
  Machine machine;
  const std::string key = machine.key();
  CHECK(hex_of(*read_trusted_key(key)) == key);
  const auto file = (machine.temporary.path() / "trusted").string();
  for (const std::string& after : {std::string(), std::string("\n"), std::string(" of machine one\n")}) {
    std::ofstream(file, std::ios::trunc) << key << after;
    CHECK(hex_of(*read_trusted_key(file)) == key);
  }
  for (const std::string& text : {std::string(), std::string("0"), key.substr(1), key + "0"}) {
    std::ofstream(file, std::ios::trunc) << text;
    CHECK_THAT(read_trusted_key(file).error().message, Contains("64 hexadecimal digits"));
  }
  CHECK_THAT(read_trusted_key("nowhere").error().message, Contains("'nowhere'"));
  CHECK_FALSE(read_trusted_key(""));
}

TEST_CASE("cache::bundle: Ed25519 as RFC 8032 has it") {
  // Section 7.1, test 2: secret key, public key, message, signature.
  const auto bytes = [](std::string_view hex) {
    std::vector<std::byte> made;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      made.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    }
    return made;
  };
  SecretKey secret;
  const auto seed = bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  std::copy(seed.begin(), seed.end(), secret.bytes.begin());
  const auto key = public_key_of(secret);
  REQUIRE(key);
  CHECK(hex_of(*key) == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::vector<std::byte> message = {std::byte{0x72}};
  const auto signature = sign_bundle(secret, message);
  REQUIRE(signature);
  const auto expected = bytes(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  CHECK(std::equal(signature->begin(), signature->end(), expected.begin(), expected.end()));
  CHECK(*is_signed_by(*key, message, *signature));
  CHECK_FALSE(*is_signed_by(*key, seed, *signature));
}

TEST_CASE("cache::bundle: an import needs the room of its programs, to the byte, and counts what it writes") {
  const std::string text(500, 'x'), label = "the label of " + text;
  Machine first, second;
  first.config.compression = "none";
  first.build({"two"});
  {
    const auto cache = first.open();
    REQUIRE(acquire(*cache, text, first.device));
    cache->record(key_for(text, first.device), first.device, Measurement{}, 42.5);
  }
  CHECK_FALSE(export_cache(first.config, first.temporary.path() / "none" / "bundle", {}));
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  std::uint64_t needed = 0;
  for (const auto& file : first.files(".bin")) needed += std::filesystem::file_size(file);
  second.config.max_disk = needed - 1;
  CHECK(second.import(first.bundle(), first.key()).error().text() ==
        "unavailable: bundle " + first.bundle().string() + ": programs need " + std::to_string(needed) +
            " bytes, expected at most " + std::to_string(needed - 1) + " (max_disk)");
  second.config.max_disk = needed;
  REQUIRE(second.import(first.bundle(), first.key()));
  Machine third;
  third.config.compression = GENERATE("none", "zstd");
  const auto taken = third.import(first.bundle(), first.key());
  REQUIRE(taken);
  CHECK(taken->bytes == cache_inventory(third.config, Detail::figures)->bytes_stored);
  CHECK(taken->pruned == 0);
  const auto one = inspect_program(third.config, label);
  REQUIRE(one);
  CHECK(one->compression == third.config.compression);
  CHECK(one->program.gflops == 0);  // measured elsewhere
  chmod(third.config.key_file.c_str(), 0644);
  CHECK_THAT(third.import(first.bundle(), first.key()).error().message, Contains("0644"));
  chmod(third.config.key_file.c_str(), 0600);
  const std::vector<std::string> which{label, "nobody"};
  CHECK_THAT(export_cache(first.config, first.bundle(), which).error().message, Contains("'nobody'"));
  CHECK_THAT(third.import(third.temporary.path() / "none", first.key()).error().text(),
             Catch::StartsWith("not_found: bundle: "));
}

TEST_CASE("cache::bundle: a refusal names the devices of both sides that store programs") {
  Machine first, second;
  first.build({"one"});
  REQUIRE(export_cache(first.config, first.bundle(), {}));
  const std::string there = device_folder_name(first.device.info());
  second.device.facts().driver_identity[0].second = "2.0";
  second.device.facts().driver_identity.emplace_back("extra", "more");
  second.device.facts().driver = "Synthetic 2.0";
  SyntheticDevice library, another;
  library.facts().serializes = false;
  library.facts().device_identity[0].second = "library";
  another.facts().name = "Another";
  another.facts().device_identity[0].second = "another";
  const std::vector<DeviceInfo> devices{library.info(), another.info(), second.device.info()};
  const auto refused = import_cache(second.config, {first.bundle(), first.key(), devices});
  REQUIRE_FALSE(refused);
  CHECK(
      refused.error().text() ==
      "unsupported: bundle " + first.bundle().string() +
          ": contains programs for Synthetic (test, 1 lane), Synthetic 1.0 (" + there +
          "); the loaded plugins have Another, Synthetic 1.0 (" + device_folder_name(another.info()) +
          "); Synthetic (test, 1 lane), Synthetic 2.0 (" + device_folder_name(second.device.info()) +
          "). The drivers of Synthetic (test, 1 lane) differ in version: there 1.0, here 2.0, extra: there none, here "
          "more. [plugins] load can name other plugins");
}

}  // namespace
}  // namespace kiln::test
