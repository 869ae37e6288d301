// Which keys are trusted: only those in folders that nobody else can change.
#include "cache/signing_keys.hpp"
#include "core/cache/shared/sharing.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using Catch::Contains;

const std::string hex(64, 'a');

struct Keys {
  CacheTestFolder temporary;
  std::filesystem::path etc = temporary.path() / "etc", user = temporary.path() / "config";
  CacheConfig config;

  Keys() {
    config.directory = temporary.path() / "cache";
    config.key_file = temporary.path() / "key";
    config.trust_folders = {etc, user};
  }

  static void write(const std::filesystem::path& file, const std::string& text, mode_t mode = 0644) {
    std::filesystem::create_directories(file.parent_path());
    overwrite(file, std::as_bytes(std::span(text)));
    REQUIRE(chmod(file.c_str(), mode) == 0);
  }
  TrustedKeys read() const { return read_trusted_keys(config.trust_folders); }
};

TEST_CASE("trusted keys: a key is created, listed, and signs") {
  Keys place;
  const auto made = create_sharing_key(place.config, "ci-2026", "2099-12-31", KeyFolder::user);
  REQUIRE(made);
  CHECK(made->signs);
  CHECK(made->until == "2099-12-31");
  CHECK(!made->expired);
  CHECK(made->public_key.size() == 64);
  const SharingKeys all = sharing_keys(place.config);
  REQUIRE(all.keys.size() == 1);
  CHECK(all.keys[0].public_key == made->public_key);
  CHECK(all.problems.empty());
  CHECK(read_signing_key(place.config.trust_folders, "ci-2026"));
  for (const char* inner : {"keys.d", "credentials.d"}) std::filesystem::create_directories(place.etc / inner);
  CHECK(read_signing_key(place.config.trust_folders, "ci-2026"));  // the first folder holds other keys
  place.write(place.user / "credentials.d" / "cache", "url https://cache.example\n", 0600);
  CHECK(read_credentials(place.config.trust_folders, "cache", "https://cache.example"));
  struct stat at {};
  REQUIRE(stat((place.user / "keys.d" / "ci-2026.secret").c_str(), &at) == 0);
  CHECK((at.st_mode & 0777) == 0600);
}

TEST_CASE("trusted keys: everybody can read what root trusts, and an ordinary user's is the user's") {
  Keys place;
  const auto key = trust_sharing_key(place.config, "ci", hex, "", KeyFolder::user);
  REQUIRE(key);
  const std::filesystem::path file = key->file;
  const auto mode_of = [](const std::filesystem::path& path) {
    struct stat facts {};
    REQUIRE(stat(path.c_str(), &facts) == 0);
    return facts.st_mode & 07777;
  };
  const bool is_root = geteuid() == 0;
  CHECK(mode_of(file) == (is_root ? 0644 : 0600));
  CHECK(mode_of(file.parent_path()) == (is_root ? 0755 : 0700));
  CHECK(mode_of(place.user) == (is_root ? 0755 : 0700));
}

TEST_CASE("trusted keys: a name that is in use is refused, and the first key stays") {
  Keys place;
  const auto made = create_sharing_key(place.config, "ci", "", KeyFolder::user);
  REQUIRE(made);
  CHECK(create_sharing_key(place.config, "ci", "", KeyFolder::user).error().code == StatusCode::invalid_argument);
  CHECK(trust_sharing_key(place.config, "ci", hex, "", KeyFolder::user).error().code == StatusCode::invalid_argument);
  CHECK(sharing_keys(place.config).keys.at(0).public_key == made->public_key);
}

TEST_CASE("trusted keys: names are never paths, dates are real days, keys have 64 digits") {
  Keys place;
  const std::string too_long(65, 'a');
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../ci"), std::string("a/b"),
        std::string("/etc/passwd"), std::string("-x"), std::string(".hidden"), std::string("a b"), too_long}) {
    INFO(name);
    CHECK(create_sharing_key(place.config, name, "", KeyFolder::user).error().code == StatusCode::invalid_argument);
    CHECK(trust_sharing_key(place.config, name, hex, "", KeyFolder::user).error().code == StatusCode::invalid_argument);
  }
  for (const std::string date :
       {"2026", "2026-13-01", "2026-02-30", "26-01-01", "2026-1-1", "2026-01-01x", "tomorrow"}) {
    INFO(date);
    CHECK(create_sharing_key(place.config, "ci", date, KeyFolder::user).error().code == StatusCode::invalid_argument);
  }
  CHECK(!trust_sharing_key(place.config, "ci", hex.substr(1), "", KeyFolder::user));
  CHECK(sharing_keys(place.config).keys.empty());
}

TEST_CASE("trusted keys: a revoked key stays revoked under every name, also from the other folder") {
  Keys place;
  REQUIRE(trust_sharing_key(place.config, "one", hex, "", KeyFolder::system));
  REQUIRE(trust_sharing_key(place.config, "two", hex, "", KeyFolder::user));
  const auto revoked = revoke_sharing_key(place.config, "one", KeyFolder::user);
  REQUIRE(revoked);
  for (const SharingKey& key : sharing_keys(place.config).keys) CHECK(key.revoked);
  CHECK(revoke_sharing_key(place.config, "none", KeyFolder::user).error().code == StatusCode::not_found);
}

TEST_CASE("trusted keys: a public key that is revoked under any name is not trusted again") {
  Keys place;
  REQUIRE(trust_sharing_key(place.config, "one", hex, "", KeyFolder::user));
  REQUIRE(revoke_sharing_key(place.config, "one", KeyFolder::user));
  place.write(place.user / "trust.d" / "a.key", "public " + std::string(64, 'c') + "\n");
  SECTION("the revocation is listed") {}
  SECTION("its name is hidden by a key of the other folder") {
    place.write(place.etc / "trust.d" / "one.key", "public " + std::string(64, 'b') + "\n");
  }
  const auto again = trust_sharing_key(place.config, "two", hex, "", KeyFolder::system);
  REQUIRE(!again);
  CHECK(again.error().code == StatusCode::invalid_argument);
  CHECK_THAT(again.error().message, Contains("key 'two'") && Contains((place.user / "trust.d" / "one.key").string()));
  CHECK(!std::filesystem::exists(place.etc / "trust.d" / "two.key"));
}

TEST_CASE("trusted keys: a key that could not be trusted leaves no secret key") {
  Keys place;
  place.write(place.user / "trust.d" / "other.key", "public " + hex + "\n");
  REQUIRE(chmod((place.user / "trust.d").c_str(), 0777) == 0);
  REQUIRE(!create_sharing_key(place.config, "ci", "", KeyFolder::user));
  CHECK(!std::filesystem::exists(place.user / "keys.d" / "ci.secret"));
  REQUIRE(chmod((place.user / "trust.d").c_str(), 0755) == 0);
  CHECK(create_sharing_key(place.config, "ci", "", KeyFolder::user));
}

TEST_CASE("trusted keys: revoking removes the secret key") {
  Keys place;
  REQUIRE(create_sharing_key(place.config, "ci", "", KeyFolder::user));
  REQUIRE(revoke_sharing_key(place.config, "ci", KeyFolder::user));
  CHECK(!std::filesystem::exists(place.user / "keys.d" / "ci.secret"));
  CHECK(!read_signing_key(place.config.trust_folders, "ci"));
}

TEST_CASE("trusted keys: the first folder hides a name of the second") {
  Keys place;
  place.write(place.etc / "trust.d" / "ci.key", "public " + hex + "\n");
  place.write(place.user / "trust.d" / "ci.key", "public " + std::string(64, 'b') + "\n");
  const TrustedKeys keys = place.read();
  REQUIRE(keys.keys.size() == 1);
  CHECK(hex_of(keys.keys[0].key) == hex);
}

TEST_CASE("trusted keys: what others can write, and what is not understood, is not used and is reported") {
  Keys place;
  const std::string text = "public " + hex + "\n";
  const std::filesystem::path folder = place.user / "trust.d";
  place.write(folder / "good.key", "public " + std::string(64, 'b') + "\n");
  SECTION("a file that a group can write") {
    place.write(folder / "bad.key", text, 0664);
    CHECK_THAT(place.read().problems.at(0),
               Contains("bad.key: has mode 0664, expected write permission only for the owner"));
  }
  SECTION("a link") {
    std::filesystem::create_symlink(folder / "good.key", folder / "bad.key");
    CHECK_THAT(place.read().problems.at(0), Contains("bad.key"));
  }
  SECTION("an unknown word, which may be a restriction") {
    place.write(folder / "bad.key", text + "only https://one.example\n");
    CHECK_THAT(place.read().problems.at(0), Contains("line 2") && Contains("only"));
  }
  SECTION("a date that is none") {
    place.write(folder / "bad.key", text + "until 2026-02-30\n");
    CHECK_THAT(place.read().problems.at(0), Contains("line 2"));
  }
  SECTION("no key") {
    place.write(folder / "bad.key", "until 2026-01-01\n");
    CHECK(place.read().problems.size() == 1);
  }
  SECTION("two keys") {
    place.write(folder / "bad.key", text + text);
    CHECK(place.read().problems.size() == 1);
  }
  const TrustedKeys keys = place.read();
  REQUIRE(keys.keys.size() == 1);
  CHECK(keys.keys[0].name == "good");
}

TEST_CASE("trusted keys: a file that cannot be used may revoke a key, so the key is not used from elsewhere either") {
  Keys place;
  place.write(place.user / "trust.d" / "ci.key", "public " + hex + "\n");
  place.write(place.user / "trust.d" / "copy.key", "public " + hex + "\n");
  place.write(place.user / "trust.d" / "other.key", "public " + std::string(64, 'b') + "\n");
  REQUIRE(place.read().keys.size() == 3);
  const auto file = place.etc / "trust.d" / "ci.key";
  std::size_t left = 1;
  SECTION("its mode") {
    place.write(file, "public " + hex + "\nrevoked 2026-01-01\n", 0664);
    left = 2;  // nothing of the file is believed, also not which key it names
  }
  SECTION("a word that is not known") { place.write(file, "public " + hex + "\nrevoked: yes\n"); }
  const TrustedKeys keys = place.read();
  CHECK(keys.find("ci") == nullptr);
  CHECK(keys.find("other") != nullptr);
  CHECK(keys.keys.size() == left);
  CHECK_THAT(keys.problems.at(0), Contains("key 'ci' is not used"));
}

TEST_CASE("trusted keys: a key that ended, or is revoked, signs nothing more") {
  Keys place;
  REQUIRE(create_sharing_key(place.config, "old", "2020-01-01", KeyFolder::user));
  REQUIRE(create_sharing_key(place.config, "good", "2099-12-31", KeyFolder::user));
  REQUIRE(create_sharing_key(place.config, "gone", "", KeyFolder::user));
  const auto check = [&](const char* name) {
    const auto secret = read_signing_key(place.config.trust_folders, name);
    REQUIRE(secret);
    return check_signer(place.read(), *secret, name);
  };
  CHECK(check("good").ok());
  CHECK_THAT(check("old").message, Contains("'old'") && Contains("2020-01-01"));
  place.write(place.user / "trust.d" / "gone.key",
              "public " + hex_of(public_key_of(*read_signing_key(place.config.trust_folders, "gone")).value()) +
                  "\nrevoked 2026-01-01\n");
  CHECK_THAT(check("gone").message, Contains("'gone'") && Contains("revoked"));
  std::filesystem::remove(place.user / "trust.d" / "gone.key");
  CHECK(check("gone").ok());  // readers elsewhere may trust it
}

TEST_CASE("trusted keys: a folder that others can write gives no key") {
  Keys place;
  place.write(place.user / "trust.d" / "ci.key", "public " + hex + "\n");
  SECTION("trust.d") { REQUIRE(chmod((place.user / "trust.d").c_str(), 0777) == 0); }
  SECTION("its parent") { REQUIRE(chmod(place.user.c_str(), 0777) == 0); }
  const TrustedKeys keys = place.read();
  CHECK(keys.keys.empty());
  CHECK_THAT(keys.problems.at(0), Contains("0777"));
}

TEST_CASE("trusted keys: a folder that cannot be searched may revoke a key, so none is used and none signs") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    Keys place;
    if (!create_sharing_key(place.config, "ci", "", KeyFolder::user)) return "no key was created";
    std::filesystem::create_directory(place.etc);
    std::filesystem::permissions(place.etc, std::filesystem::perms::owner_read);
    const TrustedKeys keys = place.read();
    const bool signs = read_signing_key(place.config.trust_folders, "ci").has_value();
    std::filesystem::permissions(place.etc, std::filesystem::perms::owner_all);
    if (!keys.keys.empty()) return "a key is used";
    if (signs) return "a key signs";
    const std::string folder = (place.etc / "trust.d").string();
    const std::string expected = "folder " + folder + ": attributes cannot be read: Permission denied";
    return keys.problems.at(0).starts_with(expected) ? "" : "said '" + keys.problems.at(0) + "'";
  });
  CHECK(end.said == "");
}

TEST_CASE("trusted keys: what arrived in a batch is not used after its key was revoked") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine writer(server), reader(server);
  writer.write_to(url);
  writer.build({"one", "two"});
  REQUIRE(writer.push().written == 2);
  reader.read_from(url, writer);
  reader.expect_slow_answers(url);
  const KernelSource sources[] = {source_of("one"), source_of("two")};
  const ProgramKey keys[] = {key_for("one", reader.device), key_for("two", reader.device)};
  const ProgramRequest requests[] = {{&keys[0], &sources[0], &reader.device}, {&keys[1], &sources[1], &reader.device}};
  const auto cache = reader.open();
  std::vector<Tier> tiers;
  cache->get_or_build_all(requests, 1, [&](std::size_t, const Result<Acquired>& got) {
    tiers.push_back(got ? got->tier : Tier::invalid);
    if (tiers.size() == 1) {
      CHECK(revoke_sharing_key(reader.config, "ci", KeyFolder::user));
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // trust.d is read once a second
    }
    return true;
  });
  CHECK(tiers == std::vector{Tier::remote, Tier::built});
  CHECK(cache->stats().shared.revoked == 1);
}

TEST_CASE("trusted keys: where only the system's folder is configured, root's own keys are in it") {
  Keys place;
  const std::string none = "not_found: no key folder is configured. Set HOME or XDG_CONFIG_HOME to an absolute path";
  const auto answer = [&](const char* name, KeyFolder which) {
    const auto key = trust_sharing_key(place.config, name, hex, "", which);
    return key ? std::filesystem::path(key->file).string() : key.error().text();
  };
  place.config.trust_folders = {place.etc};
  CHECK(answer("one", KeyFolder::user) == (geteuid() == 0 ? (place.etc / "trust.d" / "one.key").string() : none));
  CHECK(answer("two", KeyFolder::system) == (place.etc / "trust.d" / "two.key").string());
  place.config.trust_folders.clear();
  CHECK(answer("three", KeyFolder::system) == none);
}

TEST_CASE("trusted keys: a missing folder is no problem") {
  Keys place;
  CHECK(place.read().keys.empty());
  CHECK(place.read().problems.empty());
}

TEST_CASE("credentials: only for the server that the file names, and only if nobody else can read them") {
  Keys place;
  const std::filesystem::path file = place.user / "credentials.d" / "cache";
  place.write(file, "url https://cache.example/kiln\nuser u\npassword two words\n", 0600);
  const auto read = [&](const std::string& url) { return read_credentials(place.config.trust_folders, "cache", url); };
  REQUIRE(read("https://cache.example/kiln"));
  CHECK(read("https://cache.example/kiln/more")->at("password") == "two words");
  CHECK(!read("https://cache.example/kiln")->contains("url"));
  for (const std::string url : {"https://cache.example.evil/kiln", "http://cache.example/kiln",
                                "https://cache.example/kilnx", "https://evil/cache.example/kiln", ""}) {
    INFO(url);
    CHECK(read(url).error().code == StatusCode::invalid_argument);
  }
  REQUIRE(chmod(file.c_str(), 0640) == 0);
  const auto of_group = read("https://cache.example/kiln");  // root may let a group read them
  CHECK((of_group ? "read" : to_string(of_group.error().code)) == (geteuid() == 0 ? "read" : "unavailable"));
  REQUIRE(chmod(file.c_str(), 0604) == 0);
  CHECK(read("https://cache.example/kiln").error().text() ==
        "unavailable: credentials 'cache' " + file.string() +
            ": has mode 0604, expected read permission only for the owner");
  place.write(file, "url https://cache.example/kiln\nusr u\n", 0600);
  CHECK_THAT(read("https://cache.example/kiln").error().message,
             Contains("line 2") && Contains("'usr'") && Contains("user"));
  place.write(file, "user u\n", 0600);
  CHECK_THAT(read("https://cache.example/kiln").error().message, Contains("url"));
  CHECK(read_credentials(place.config.trust_folders, "../cache", "https://cache.example").error().code ==
        StatusCode::invalid_argument);
}

TEST_CASE("credentials: those of the environment are for the server that it names") {
  setenv("KILN_REMOTE_URL", "redis://cache.example", 1);
  setenv("KILN_REMOTE_USER", "u", 1);
  setenv("KILN_REMOTE_PASSWORD", "p", 1);
  setenv("KILN_REMOTE_TOKEN", "", 1);
  CHECK(environment_credentials("redis://cache.example/0") ==
        std::map<std::string, std::string>{{"password", "p"}, {"user", "u"}});
  CHECK(environment_credentials("redis://cache.example:6379/0").empty());
  CHECK(environment_credentials("redis://evil.example/0").empty());
  CHECK(environment_credentials("redis://cache.example.evil/0").empty());
  for (const char* name : {"KILN_REMOTE_URL", "KILN_REMOTE_USER", "KILN_REMOTE_PASSWORD", "KILN_REMOTE_TOKEN"})
    unsetenv(name);
  CHECK(environment_credentials("redis://cache.example/0").empty());
}

TEST_CASE("trusted keys: a file that is no key hides none beside it") {
  Keys place;
  const auto folder = place.user / "trust.d";
  place.write(folder / "a.key", "public " + hex + "\n");
  for (const char* name : {"b", "b.txt", ".c.key", "c c.key"}) place.write(folder / name, "public " + hex + "\n");
  place.write(folder / "d.key", "public " + std::string(64, 'b') + "\n");
  const TrustedKeys keys = place.read();
  REQUIRE(keys.keys.size() == 2);
  CHECK(keys.keys[0].name == "a");
  CHECK(keys.keys[1].name == "d");
  CHECK(keys.problems ==
        std::vector<std::string>{"trusted key " + (folder / ".c.key").string() + ": not a name of a key",
                                 "trusted key " + (folder / "c c.key").string() + ": not a name of a key"});
}

TEST_CASE("trusted keys: of an unusable file with two keys the first is not used from elsewhere") {
  Keys place;
  const std::string other(64, 'b');
  place.write(place.user / "trust.d" / "bad.key", "public " + hex + "\npublic " + other + "\n");
  place.write(place.user / "trust.d" / "first.key", "public " + hex + "\n");
  place.write(place.user / "trust.d" / "second.key", "public " + other + "\n");
  CHECK(place.read().find("first") == nullptr);
  CHECK(place.read().find("second") != nullptr);
}

}  // namespace
}  // namespace kiln::test
