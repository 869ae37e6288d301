// The texts of trusted keys and credentials: dates, lines, and which server a URL is of.
#include "cache/signing_keys.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

using Catch::Contains;

const std::string public_hex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

std::string decoding(std::string_view text) {
  const auto key = decode_trusted_key(text);
  return key ? "ok" : key.error().text();
}

TEST_CASE("trust texts: a date ends with its last second, and is a real day since 1970") {
  constexpr std::int64_t day_s = 24 * 3600;
  const std::pair<const char*, std::int64_t> days[] = {
      {"1970-01-01", 0}, {"2024-02-29", 1709164800}, {"2000-12-31", 978220800}, {"2099-12-31", 4102358400}};
  for (const auto& [date, start] : days) {
    CAPTURE(date);
    CHECK(end_of_date(date) == start + day_s);
    CHECK(date_text(start) == date);
    CHECK(date_text(start + day_s - 1) == date);
    CHECK(date_text(start - 1) != date);
  }
  for (const char* date : {"", "1969-12-31", "2023-02-29", "2026-04-31", "2026-00-01", "2026-13-01", "2026-01-00",
                           "2026-01-32", "2026/01-01", "2026-01/01", "202x-01-01", "2026-0a-01",
                           "2026-01-0:", "2026-01-/1", "2026-01-1", "2026-01-011"}) {
    CAPTURE(date);
    CHECK_FALSE(end_of_date(date));
  }
}

TEST_CASE("trust texts: a key is written in these lines, and read back") {
  TrustedKey key;
  key.key = public_key_from_hex(public_hex).value();
  const std::string first = "public " + public_hex + "\n";
  CHECK(encode_trusted_key(key, 0) == first);
  key.until_s = 1709164800 + 24 * 3600;
  CHECK(encode_trusted_key(key, 0) == first + "until 2024-02-29\n");
  key.revoked = true;
  const std::string text = encode_trusted_key(key, 978220800);
  CHECK(text == first + "until 2024-02-29\nrevoked 2000-12-31\n");
  for (const std::string& read : {text, "# of a build server\n\n" + text, text.substr(0, text.size() - 1),
                                  "until 2024-02-29\r\nrevoked\r\npublic " + public_hex + "\r\n"}) {
    const auto decoded = decode_trusted_key(read);
    REQUIRE(decoded);
    CHECK(hex_of(decoded->key) == public_hex);
    CHECK(decoded->until_s == key.until_s);
    CHECK(decoded->revoked);
  }
  const auto plain = decode_trusted_key(first);
  REQUIRE(plain);
  CHECK_FALSE(plain->until_s);
  CHECK_FALSE(plain->revoked);
}

TEST_CASE("trust texts: a line that is not understood is named by its number") {
  const std::string key = "public " + public_hex + "\n";
  const std::string once = ", expected public, until or revoked, each once";
  const std::pair<std::string, std::string> texts[] = {
      {"", "corrupt: has no line `public KEY` with a key of 64 hexadecimal digits"},
      {"# nothing\n", "corrupt: has no line `public KEY` with a key of 64 hexadecimal digits"},
      {"public\n", "corrupt: line 1: expected a public key of 64 hexadecimal digits"},
      {"\npublic " + public_hex.substr(1) + "\n", "corrupt: line 2: expected a public key of 64 hexadecimal digits"},
      {key + "until\n", "corrupt: line 2: expected a date such as 2027-01-31"},
      {key + "#\nuntil 2027-02-29\n", "corrupt: line 3: expected a date such as 2027-01-31"},
      {key + key, "corrupt: line 2: found 'public'" + once},
      {key + "until 2027-01-01\nuntil 2028-01-01\n", "corrupt: line 3: found 'until'" + once},
      {key + "revoked\nrevoked\n", "corrupt: line 3: found 'revoked'" + once},
      {key + "only for tests\n", "corrupt: line 2: found 'only'" + once},
      {key + " #\n", "corrupt: line 2: found ''" + once}};
  for (const auto& [text, expected] : texts) CHECK(decoding(text) == expected);
}

TEST_CASE("trust texts: a trusted key is given by its digits or by a file that begins with them") {
  const CacheTestFolder folder;
  const auto reading = [&](const std::string& contents) {
    const std::string file = (folder.path() / "key").string();
    std::ofstream(file) << contents;
    const auto key = read_trusted_key(file);
    if (key) return hex_of(*key);
    CHECK(key.error().text() == "invalid_argument: trusted key file " + file +
                                    ": expected a public key of 64 hexadecimal digits at the beginning");
    return std::string("none");
  };
  CHECK(hex_of(read_trusted_key(public_hex).value()) == public_hex);
  for (const char* end : {"", "\n", "\r\n", " of a build server\n"}) CHECK(reading(public_hex + end) == public_hex);
  for (const std::string& other : {public_hex + "0", public_hex + "\t", public_hex.substr(1), " " + public_hex,
                                   std::string(), "G" + public_hex.substr(1)}) {
    CHECK(reading(other) == "none");
  }
  const std::string expected = ": expected 64 hexadecimal digits or a readable file";
  CHECK(read_trusted_key("").error().text() == "invalid_argument: trusted key ''" + expected);
  CHECK_THAT(read_trusted_key("/none").error().text(),
             Catch::StartsWith("invalid_argument: trusted key '/none'" + expected + " (file /none: cannot open: "));
}

TEST_CASE("trust texts: a URL is below another one at a slash") {
  const std::string prefix = "https://host/path";
  for (const char* below : {"https://host/path", "https://host/path/", "https://host/path/more"}) {
    CHECK(is_below_url(below, prefix));
    CHECK(is_below_url(below, prefix + "/"));
    CHECK(is_below_url(below, "https://host"));
  }
  for (const char* other : {"https://host/paths", "https://host", "https://host/pat", "http://host/path", ""}) {
    CHECK_FALSE(is_below_url(other, prefix));
  }
  CHECK_FALSE(is_below_url("https://host", ""));
  CHECK_FALSE(is_below_url("https://host", "https"));
  CHECK_FALSE(is_below_url("host/path", "host"));  // of no scheme
}

TEST_CASE("trust texts: chosen keys are those of these names, and one that is not there is told") {
  TrustedKeys all;
  for (const char* name : {"one", "two", "three"}) all.keys.emplace_back().name = name;
  const auto chosen = [&](const std::vector<std::string>& names, std::vector<std::string>& problems) {
    std::vector<std::string> found;
    for (const TrustedKey& key : chosen_keys(all, names, problems)) found.push_back(key.name);
    return found;
  };
  std::vector<std::string> problems;
  CHECK(chosen({}, problems) == std::vector<std::string>{"one", "two", "three"});
  CHECK(chosen({"three", "one"}, problems) == std::vector<std::string>{"three", "one"});
  CHECK(problems.empty());
  CHECK(chosen({"two", "four"}, problems) == std::vector<std::string>{"two"});
  CHECK(problems ==
        std::vector<std::string>{"key 'four': not in trust.d. Add it with `kiln cache key trust four KEY`"});
}

TEST_CASE("trust texts: credentials have these words, each once and with a value") {
  const CacheTestFolder folder;
  const std::filesystem::path first = folder.path() / "first", second = folder.path() / "second";
  for (const std::filesystem::path& each : {first, second}) {
    std::filesystem::create_directories(each / "credentials.d");
    REQUIRE(chmod(each.c_str(), 0700) == 0);
    REQUIRE(chmod((each / "credentials.d").c_str(), 0700) == 0);
  }
  const auto write = [](const std::filesystem::path& of, const std::string& text) {
    const std::filesystem::path file = of / "credentials.d" / "cache";
    std::ofstream(file) << text;
    REQUIRE(chmod(file.c_str(), 0600) == 0);
    return file.string();
  };
  const auto read = [&] {
    const std::vector<std::filesystem::path> folders{"", folder.path() / "none", first, second};
    return read_credentials(folders, "cache", "https://host/path");
  };
  CHECK(read().error().text() == "not_found: credentials 'cache': not in credentials.d");
  const std::string every =
      "url https://host\nuser a\npassword b c\ntoken d\nauthority e\ncertificate f\nprivate_key g\naccess_key h\n"
      "secret_key i\nsession_token j\nregion k\nendpoint l\n";
  write(second, "# all\n\n" + every);
  const auto values = read();
  REQUIRE(values);
  CHECK(*values == std::map<std::string, std::string>{{"user", "a"},
                                                      {"password", "b c"},
                                                      {"token", "d"},
                                                      {"authority", "e"},
                                                      {"certificate", "f"},
                                                      {"private_key", "g"},
                                                      {"access_key", "h"},
                                                      {"secret_key", "i"},
                                                      {"session_token", "j"},
                                                      {"region", "k"},
                                                      {"endpoint", "l"}});
  const std::string who = "corrupt: credentials 'cache' " + (first / "credentials.d" / "cache").string();
  write(first, "url https://host\nuser a\nuser b\n");  // the first folder counts
  CHECK(read().error().text() == who + ": line 3: 'user' is given twice");
  write(first, "url https://host\ntoken\n");
  CHECK(read().error().text() == who + ": line 2: expected a word and a value");
  write(first, "url https://host\npin 1\n");
  CHECK(read().error().text() ==
        who +
            ": line 2: 'pin' is not known, expected one of url, user, password, token, authority, certificate, "
            "private_key, access_key, secret_key, session_token, region, endpoint");
  write(first, "user a\n");
  CHECK(read().error().text() == who + ": has no line `url PREFIX` with the URL of the server");
  write(first, "url https://other\n");
  CHECK(read().error().text() == "invalid_argument: credentials 'cache' " +
                                     (first / "credentials.d" / "cache").string() +
                                     ": expected a URL below https://other, found https://host/path");
}

}  // namespace
}  // namespace kiln::test
