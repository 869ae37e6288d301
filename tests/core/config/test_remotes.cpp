// [[cache.remote]]: what its keys become, which URLs it takes, and the plugins that it loads.
#include "core/config/config_fixture.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

using Lines = std::vector<std::string>;

const std::string plugins_text = "[plugins]\nload = [\"cpu\"]\n";

// In quotes, with what TOML escapes.
std::string remote_text(const std::string& url, const std::string& keys = "") {
  std::string escaped;
  for (const char c : url) escaped += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return "[[cache.remote]]\nurl = \"" + escaped + "\"\n" + keys;
}

Lines problems_of_url(const std::string& url) { return texts(read_text(remote_text(url)).problems); }

Lines loaded_by(const std::string& remotes) { return read_valid(plugins_text + remotes).plugins.load; }

}  // namespace

TEST_CASE("config: a remote has what its keys say", "[config]") {
  const Config config = read_valid(plugins_text + R"([[cache.remote]]
url = "https://cache.example/kiln//"
writers = ["ci-2026", "office"]
credentials = "cache"
layout = "bazel"

[[cache.remote]]
url = "redis://host:6379/2"
mode = "read_write"
sign_with = "mine"

[[cache.remote]]
url = "file:///mnt/share"
mode = "read"
)");
  const std::vector<RemoteConfig>& remotes = config.cache.remotes;
  REQUIRE(remotes.size() == 3);
  CHECK(remotes[0].url == "https://cache.example/kiln");
  CHECK_FALSE(remotes[0].writes);
  CHECK(remotes[0].writers == Lines{"ci-2026", "office"});
  CHECK(remotes[0].sign_with.empty());
  CHECK(remotes[0].credentials == "cache");
  CHECK(remotes[0].layout == "bazel");
  CHECK(remotes[0].place.file == "test.toml");
  CHECK(remotes[0].place.line == 3);
  CHECK(remotes[1].url == "redis://host:6379/2");
  CHECK(remotes[1].writes);
  CHECK(remotes[1].writers.empty());
  CHECK(remotes[1].sign_with == "mine");
  CHECK(remotes[1].credentials.empty());
  CHECK(remotes[1].layout == "plain");
  CHECK(remotes[1].place.line == 9);
  CHECK(remotes[2].url == "file:///mnt/share");
  CHECK_FALSE(remotes[2].writes);
  CHECK(config.plugins.load == Lines{"cpu", "remote_http", "remote_redis"});
}

TEST_CASE("config: a remote loads the plugin of its scheme, once", "[config]") {
  CHECK(loaded_by("") == Lines{"cpu"});
  CHECK(loaded_by(remote_text("file:///f")) == Lines{"cpu"});
  for (const char* const scheme : {"http", "https", "s3"}) {
    INFO(scheme);
    CHECK(loaded_by(remote_text(std::string(scheme) + "://host")) == Lines{"cpu", "remote_http"});
  }
  for (const char* const scheme : {"redis", "rediss"}) {
    INFO(scheme);
    CHECK(loaded_by(remote_text(std::string(scheme) + "://host")) == Lines{"cpu", "remote_redis"});
  }
  CHECK(loaded_by(remote_text("file:///f") + remote_text("http://a") + remote_text("redis://b") +
                  remote_text("https://c")) == Lines{"cpu", "remote_http", "remote_redis"});
  ConfigSources sources = at_home();
  sources.set = {"plugins.load=[\"remote_http\", \"cpu\"]"};
  CHECK(read_valid(remote_text("http://a"), sources).plugins.load == Lines{"remote_http", "cpu"});
}

TEST_CASE("config: which URLs a remote takes", "[config]") {
  for (const char* const url : {"http://h", "https://h/a/..b", "https://h/a../b", "s3://bucket/prefix", "redis://h:1/2",
                                "rediss://[::1]:1", "file:///", "file:///mnt/ein Ordner/ä"}) {
    INFO(url);
    CHECK(problems_of_url(url) == Lines{});
  }
  const std::pair<std::string, std::string> wrong[] = {
      {"cache.example",
       "found \"cache.example\", expected a URL that begins with http://, https://, s3://, redis://, rediss:// or "
       "file://"},
      {"HTTP://h",
       "found \"HTTP://h\", expected a URL that begins with http://, https://, s3://, redis://, rediss:// or file://"},
      {"://h",
       "found \"://h\", expected a URL that begins with http://, https://, s3://, redis://, rediss:// or file://"},
      {"http:/h",
       "found \"http:/h\", expected a URL that begins with http://, https://, s3://, redis://, rediss:// or "
       "file://"},
      {"https://me:secret@h",
       "expected a URL without a user and a password. Put them in a file of credentials.d, and set "
       "credentials to the name of that file"},
      {"file:///a@b",
       "expected a URL without a user and a password. Put them in a file of credentials.d, and set "
       "credentials to the name of that file"},
      {"https://h/a b", "found \"https://h/a b\", expected a URL of letters, digits and -._~/:[] only"},
      {"https://h/../a", "found \"https://h/../a\", expected a URL without '..'"},
      {"https://h/a/..", "found \"https://h/a/..\", expected a URL without '..'"},
      {"file:///a/..", "found \"file:///a/..\", expected a URL without '..'"},
      {"http://", "found \"http://\", expected a host"},
      {"https:///kiln", "found \"https:///kiln\", expected a host"},
      {"file://", "found \"file://\", expected an absolute path: file:///mnt/share"},
      {"file://share", "found \"file://share\", expected an absolute path: file:///mnt/share"},
  };
  for (const auto& [url, problem] : wrong) {
    INFO(url);
    CHECK(problems_of_url(url) == Lines{"test.toml:2:7: cache.remote.url: " + problem});
  }
}

TEST_CASE("config: which characters a URL may contain", "[config]") {
  const std::string allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:[]";
  for (char c = ' '; c <= '~'; ++c) {
    INFO(c);
    CHECK(problems_of_url(std::string("https://ho") + c + "st").empty() == (allowed.find(c) != std::string::npos));
  }
}

TEST_CASE("config: slashes at a URL's end are cut off, but not those of its scheme", "[config]") {
  CHECK(read_valid(remote_text("https://host/a///")).cache.remotes.at(0).url == "https://host/a");
  CHECK(read_valid(remote_text("http://h/")).cache.remotes.at(0).url == "http://h");
  CHECK(read_valid(remote_text("file:////")).cache.remotes.at(0).url == "file:///");
}

TEST_CASE("config: a remote with a problem is left out", "[config]") {
  const std::pair<std::string, Lines> wrong[] = {
      {"[[cache.remote]]\n",
       {"test.toml:1:1: cache.remote.url: missing, expected a URL such as \"https://cache.example/kiln\""}},
      {remote_text("http://h", "mode = \"read_write\"\n"),
       {"test.toml:1:1: cache.remote.mode: \"read_write\" needs sign_with, the name of the key that signs what is "
        "written"}},
      {remote_text("http://h", "sign_with = \"k\"\n"),
       {"test.toml:1:1: cache.remote.sign_with: has no effect with mode = \"read\": expected mode = \"read_write\""}},
      {remote_text("http://h", "mode = \"reed_write\"\n"),
       {"test.toml:3:8: cache.remote.mode: found \"reed_write\", expected one of read, read_write; nearest: "
        "read_write"}},
      {remote_text("http://h", "writers = \"k\"\n"),
       {"test.toml:3:11: cache.remote.writers: found the text \"k\", expected an array of texts"}},
      {remote_text("http://h", "writers = [\"a\", \"b/c\"]\n"),
       {"test.toml:3:11: cache.remote.writers: found \"b/c\", expected a name from trust.d (letters, digits and ._-), "
        "not "
        "a path"}},
      {remote_text("http://h", "mode = \"read_write\"\nsign_with = \"../k\"\n"),
       {"test.toml:4:13: cache.remote.sign_with: found \"../k\", expected a name from keys.d (letters, digits and "
        "._-), "
        "not a path"}},
      {remote_text("http://h", "credentials = \"/k\"\n"),
       {"test.toml:3:15: cache.remote.credentials: found \"/k\", expected a name from credentials.d (letters, digits "
        "and "
        "._-), not a path"}},
      {remote_text("http://h", "layuot = \"plain\"\n"),
       {"test.toml:3:1: cache.remote.layuot: unknown key; nearest: layout"}},
      {remote_text("http://h", "layout = \"flat\"\n"),
       {"test.toml:3:10: cache.remote.layout: found \"flat\", expected one of plain, bazel; nearest: plain"}},
      {"[[cache.remote]]\nurl = 3\n",
       {"test.toml:2:7: cache.remote.url: found the integer 3, expected a text that is not empty"}},
      {"[cache]\nremote = [3]\n",
       {"test.toml:2:11: cache.remote: found the integer 3, expected a section: [[cache.remote]]"}},
      {"[cache]\nremote = 3\n",
       {"test.toml:2:1: cache.remote: found the integer 3, expected sections: [[cache.remote]]"}},
  };
  for (const auto& [text, problems] : wrong) {
    INFO(text);
    const ConfigReading reading = read_text(text);
    CHECK(texts(reading.problems) == problems);
    CHECK(reading.config.cache.remotes.empty());
  }
  const ConfigReading beside = read_text(remote_text("ftp://h") + remote_text("http://good"));
  CHECK(beside.problems.size() == 1);
  REQUIRE(beside.config.cache.remotes.size() == 1);
  CHECK(beside.config.cache.remotes[0].url == "http://good");
}

TEST_CASE("config: the writers of layers are names of keys", "[config]") {
  CHECK(read_valid("[cache]\nlayer_writers = [\"ci-2026\", \"a\"]\n").cache.layer_writers == Lines{"ci-2026", "a"});
  CHECK(texts(read_text("[cache]\nlayer_writers = [\"good\", \"../a\"]\n").problems) ==
        Lines{"test.toml:2:17: cache.layer_writers: found \"../a\", expected the name of a key in trust.d"});
  ConfigSources sources = at_home();
  sources.set = {"cache.layer_writers=/k"};
  CHECK(
      texts(read_text("", sources).problems) ==
      Lines{"--set cache.layer_writers=/k: cache.layer_writers: found \"/k\", expected the name of a key in trust.d"});
}
