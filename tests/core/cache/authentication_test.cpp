// HMAC and checksum against published vectors; the key file against everything that makes it worthless.
#include "base/digest.hpp"
#include "base/secret_key.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <latch>
#include <string>
#include <thread>

namespace kiln::test {
namespace {

std::string hmac_hex(std::string_view key, std::string_view text) {
  return HmacSha256(std::as_bytes(std::span(key))).of(std::as_bytes(std::span(text))).hex();
}

std::span<const std::byte> bytes_of(const SecretKey& key) { return key.bytes; }

bool same(const SecretKey& a, const SecretKey& b) { return a.bytes == b.bytes; }

TEST_CASE("base::hmac: the vectors of RFC 4231") {
  CHECK(hmac_hex(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac_hex("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac_hex(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hmac_hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("base::checksum: XXH3-128 of nothing, and one bit makes another") {
  const auto hex = [](const Checksum& sum) {
    Digest digest;
    std::memcpy(digest.bytes.data(), sum.data(), sum.size());
    return digest.hex().substr(0, 32);
  };
  CHECK(hex(xxh3_128({})) == "99aa06d3014798d86001c324468d497f");
  CHECK(xxh3_128(std::as_bytes(std::span("a", 1))) != xxh3_128(std::as_bytes(std::span("c", 1))));
}

TEST_CASE("base::digest: hexadecimal digits, each at each end") {
  const std::string known = "00112233445566778899aabbccddeeff0123456789abcdef8f9eadbc0f1e2d3c";
  const auto digest = Digest::from_hex(known);
  REQUIRE(digest);
  CHECK(digest->hex() == known);
  const unsigned expected[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
                               0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
                               0xcd, 0xef, 0x8f, 0x9e, 0xad, 0xbc, 0x0f, 0x1e, 0x2d, 0x3c};
  for (std::size_t i = 0; i < 32; ++i) CHECK(digest->bytes[i] == expected[i]);
  const std::string digits = "0123456789abcdef";
  for (int code = 0; code < 256; ++code) {
    const char digit = static_cast<char>(code);
    const bool is_digit = digits.find(digit) != std::string::npos;
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{62}, std::size_t{63}}) {
      std::string text = known;
      text[at] = digit;
      const auto read = Digest::from_hex(text);
      if (read.has_value() != is_digit || (read && read->hex() != text)) FAIL("code " << code << " at " << at);
    }
  }
  CHECK_FALSE(Digest::from_hex(known.substr(2)));
  CHECK_FALSE(Digest::from_hex(known + "00"));
  CHECK_FALSE(Digest::from_hex(""));
  KeyEncoder encoder;
  encoder.field("ab", "c");
  encoder.field("n", 0x0102030405060708);
  using namespace std::string_view_literals;
  CHECK(encoder.material() == "\2\0\0\0ab\1\0\0\0\0\0\0\0c\1\0\0\0n\10\0\0\0\0\0\0\0\10\7\6\5\4\3\2\1"sv);
}

TEST_CASE("base::secret_key: an ordinary user trusts what is root's, and nobody else's") {
  if (geteuid() != 0) {
    WARN("skipped: giving files away takes root");
    return;
  }
  const CacheTestFolder temporary;
  const auto& folder = temporary.path();
  constexpr uid_t nobody = 65534, other = 12345;
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  const auto give = [&](const std::filesystem::path& path, uid_t user, gid_t group, mode_t mode) {
    REQUIRE(chown(path.c_str(), user, group) == 0);
    REQUIRE(chmod(path.c_str(), mode) == 0);
  };
  const std::vector<std::byte> bytes(32, std::byte{7});
  const auto make = [&](const char* name, uid_t user, gid_t group, mode_t mode) {
    overwrite(folder / name, bytes);
    give(folder / name, user, group, mode);
  };
  std::filesystem::create_directory(folder / "others");
  make("others/key", nobody, nobody, 0600);
  give(folder / "others", other, other, 0755);
  make("own", nobody, nobody, 0600);
  make("own_for_group", nobody, nobody, 0640);
  make("root_for_group", 0, nobody, 0640);
  make("root_for_all", 0, 0, 0644);
  make("of_another", other, other, 0644);
  const ChildEnd end = in_unprivileged_child([&]() -> std::string {
    std::string told;
    for (const char* name : {"own", "own_for_group", "root_for_group", "root_for_all", "of_another", "others/key"}) {
      const auto key = read_secret_key(folder / name, IfMissing::fail);
      const std::string said = key ? "" : key.error().text();
      told += (key ? std::string(name) + ": ok" : said.substr(said.rfind("/" + std::string(name)) + 1)) + "\n";
    }
    return told;
  });
  CHECK(end.said ==
        "own: ok\n"
        "own_for_group: has mode 0640, expected 0600\n"
        "root_for_group: ok\n"
        "root_for_all: has mode 0644, expected 0600\n"
        "of_another: belongs to user 12345, expected 65534 or root\n"
        "others/key: the parent folder belongs to user 12345, expected 65534 or root\n");
}

TEST_CASE("base::secret_key: made once, for its user alone, and read again") {
  CacheTestFolder temporary;
  const auto path = temporary.path() / "new" / "folders" / "key";
  const Status no_folder = read_secret_key(path, IfMissing::fail).error();
  CHECK(no_folder.code == StatusCode::io);
  CHECK(no_folder.message == "key file " + path.string() + ": its folder cannot be opened: No such file or directory");
  const auto first = read_secret_key(path, IfMissing::create);
  REQUIRE(first);
  CHECK(same(*first, *read_secret_key(path, IfMissing::fail)));
  CHECK(same(*first, *read_secret_key(path, IfMissing::create)));
  CHECK_FALSE(same(*first, *read_secret_key(temporary.path() / "other", IfMissing::create)));
  CHECK_FALSE(same(*first, SecretKey{}));
  CHECK(bytes_of(*first).size() == 32);
  struct stat at {};
  REQUIRE(stat(path.c_str(), &at) == 0);
  CHECK((at.st_mode & 07777) == 0600);
  for (const auto& made : {path.parent_path(), path.parent_path().parent_path()}) {
    CAPTURE(made.string());
    REQUIRE(stat(made.c_str(), &at) == 0);
    CHECK((at.st_mode & 07777) == 0700);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}) == 1);  // no temporary file is left
}

TEST_CASE("base::secret_key: a missing file is told apart from a missing folder") {
  CacheTestFolder temporary;
  const auto missing = read_secret_key(temporary.path() / "key", IfMissing::fail);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == StatusCode::not_found);
  CHECK(read_secret_key("key", IfMissing::create).error().code == StatusCode::invalid_argument);
}

TEST_CASE("base::secret_key: a key that others could have, or could have put there, is refused with both sides") {
  CacheTestFolder temporary;
  const auto path = temporary.path() / "key";
  REQUIRE(read_secret_key(path, IfMissing::create));
  const auto refusal = [&] {
    const auto key = read_secret_key(path, IfMissing::create);
    REQUIRE_FALSE(key);
    return key.error().message;
  };
  SECTION("readable by others") {
    REQUIRE(chmod(path.c_str(), 0644) == 0);
    CHECK(refusal().ends_with("has mode 0644, expected 0600"));
  }
  SECTION("of another size") {
    std::filesystem::resize_file(path, 31);
    CHECK(refusal().ends_with("has 31 bytes, expected 32"));
  }
  SECTION("all zero") {
    overwrite(path, std::vector<std::byte>(32));
    CHECK_THAT(refusal(), Catch::Matchers::Contains("every byte is 0, expected 32 random bytes"));
  }
  SECTION("written by a group") {
    REQUIRE(chmod(path.c_str(), 0660) == 0);
    CHECK(refusal().ends_with("has mode 0660, expected 0600"));
  }
  SECTION("a symbolic link") {
    std::filesystem::rename(path, temporary.path() / "real");
    std::filesystem::create_symlink("real", path);
    CHECK(refusal().ends_with("is a symbolic link, expected a file"));
  }
  SECTION("not a file") {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CHECK(refusal().ends_with("is not a regular file"));
  }
  SECTION("in a folder where others may exchange it") {
    REQUIRE(chmod(temporary.path().c_str(), 0777) == 0);
    CHECK(refusal().ends_with("expected write permission only for the owner"));
    REQUIRE(chmod(temporary.path().c_str(), 0700) == 0);
  }
  SECTION("of another user") {
    if (geteuid() != 0) {
      WARN("skipped: giving a file away takes root");
      return;
    }
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK(refusal().ends_with("belongs to user 12345, expected 0"));
  }
}

TEST_CASE("base::hmac: keys around the size of a block, and what counts as equal") {
  CHECK(hmac_hex("", "") == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
  CHECK(hmac_hex(std::string(64, 'k'), "text") == "0414bb1d8c0c4556cdb2028727b16610ae377b1a194b6db1f853d4297f2329bc");
  CHECK(hmac_hex(std::string(65, 'k'), "text") == "5b69580123e3d7e788b7e8352ac37a3247b911c5ec0837147b74109a6382d3f5");
  const std::string one = "abc", same_text = "abc", other = "abd", longer = "abcd";
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  CHECK(equal_in_constant_time(bytes(one), bytes(same_text)));
  CHECK_FALSE(equal_in_constant_time(bytes(one), bytes(other)));
  CHECK_FALSE(equal_in_constant_time(bytes(one), bytes(longer)));
  CHECK(equal_in_constant_time({}, {}));
}

TEST_CASE("base::secret_key: every refusal, word for word") {
  const CacheTestFolder temporary;
  const auto& folder = temporary.path();
  const auto path = folder / "key";
  const std::string who = "key file " + path.string() + ": ";
  const auto refusal = [](const std::filesystem::path& of, IfMissing missing = IfMissing::create) {
    const auto key = read_secret_key(of, missing);
    return key ? "ok" : key.error().text();
  };
  CHECK(refusal(path, IfMissing::fail) == "not_found: " + who + "does not exist");
  CHECK(refusal("key") == "invalid_argument: key file key: expected an absolute path to a file");
  CHECK(refusal(folder / "") ==
        "invalid_argument: key file " + (folder / "").string() + ": expected an absolute path to a file");
  CHECK_FALSE(std::filesystem::exists(path));
  REQUIRE(refusal(path) == "ok");
  CHECK(refusal(path / "inner" / "key") == "io: key file " + (path / "inner" / "key").string() +
                                               ": cannot create folder " + (path / "inner").string() +
                                               ": Not a directory");
  CHECK(refusal(folder / std::string(300, 'n')) ==
        "io: key file " + (folder / std::string(300, 'n')).string() + ": cannot be opened: File name too long");
  const auto of_mode = [&](const std::filesystem::path& at, unsigned mode) {
    REQUIRE(chmod(at.c_str(), mode) == 0);
    return refusal(path);
  };
  const std::string writable = ", expected write permission only for the owner";
  CHECK(of_mode(folder, 0720) == "unavailable: " + who + "the parent folder has mode 0720" + writable);
  CHECK(of_mode(folder, 0702) == "unavailable: " + who + "the parent folder has mode 0702" + writable);
  CHECK(of_mode(folder, 01777) == "ok");  // others make names there, and exchange none
  CHECK(of_mode(folder, 0755) == "ok");
  CHECK(of_mode(folder, 0700) == "ok");
  const bool is_root = geteuid() == 0;  // a group may read root's key
  for (const unsigned mode : {0604u, 0602u, 0601u, 0620u, 0610u, 0640u}) {
    char text[8];
    std::snprintf(text, sizeof text, "%04o", mode);
    CHECK(of_mode(path, mode) ==
          (is_root && mode == 0640u ? "ok" : "unavailable: " + who + "has mode " + text + ", expected 0600"));
  }
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  std::filesystem::resize_file(path, 33);
  CHECK(refusal(path) == "corrupt: " + who + "has 33 bytes, expected 32");
  overwrite(path, std::vector<std::byte>(32));
  CHECK(refusal(path) ==
        "corrupt: " + who +
            "every byte is 0, expected 32 random bytes. Remove the file. The next run creates a new key");
  std::vector<std::byte> nearly(32);
  nearly.back() = std::byte{1};
  overwrite(path, nearly);
  CHECK(refusal(path) == "ok");
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(refusal(path) == "unavailable: " + who + "is not a regular file");
  std::filesystem::remove(path);
  std::filesystem::create_symlink("real", path);
  CHECK(refusal(path) == "unavailable: " + who + "is a symbolic link, expected a file");
  if (!is_root) return;  // giving files away takes root
  std::filesystem::remove(path);
  REQUIRE(refusal(path) == "ok");
  REQUIRE(chown(folder.c_str(), 12345, 12345) == 0);
  CHECK(refusal(path) == "unavailable: " + who + "the parent folder belongs to user 12345, expected 0");
  REQUIRE(chown(folder.c_str(), 0, 0) == 0);
}

TEST_CASE("base::secret_key: many that create it at once end with one key") {
  CacheTestFolder temporary;
  const auto path = temporary.path() / "key";
  constexpr int threads = 8;
  std::latch start(threads);
  std::vector<SecretKey> keys(threads);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      start.arrive_and_wait();
      if (auto key = read_secret_key(path, IfMissing::create)) keys[static_cast<std::size_t>(i)] = *key;
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const SecretKey& key : keys) CHECK(same(key, keys.front()));
  CHECK_FALSE(same(keys.front(), SecretKey{}));
}

}  // namespace
}  // namespace kiln::test
