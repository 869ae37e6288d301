// Every file that Kiln shares between its processes, each in several disguises, under every verb that reads it: nothing
// waits, nothing ends by a signal, a job's result stays right, and no file of somebody else is written.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

constexpr const char* victim_text = "not Kiln's\n";

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_over(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

// A cache folder that a run has filled, and what a case puts in the place of one of its files.
class Workplace {
 public:
  Workplace()
      : config(folder.write("c.toml", "[selector]\nlog = true\n" + tiny_gemm("a") + "device = \"opengl:0\"\n")) {
    REQUIRE(kiln({"run", config.string()}).status == 0);
    folder.write("good/tuning.tsv", "kiln-tuning 1\n");
    fs::copy(cache(), folder / "good", fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    for (const char* absent : {"tuning.tsv", "tuning.tsv.lock", "tuning.lock", "selector.log.1"}) {
      if (!fs::exists(folder / "good" / absent)) write_over(folder / "good" / absent, "");
    }
  }

  fs::path cache() const { return folder / "cache"; }
  Finished kiln(std::vector<std::string> words) const {
    for (const std::string& word : {std::string("--cache-dir"), cache().string()}) words.push_back(word);
    ProcessOptions options;
    options.environment["KILN_KEY_FILE"] = (folder / "state/key").string();
    options.before = {"timeout", "-s", "KILL", "120"};
    return run_kiln(words, options);
  }
  // All but what is the driver's own.
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "good")) {
      const std::string name = entry.path().lexically_relative(folder / "good").string();
      if (entry.is_regular_file() && !name.starts_with("driver/")) found.push_back(name);
    }
    std::ranges::sort(found);
    return found;
  }
  void renew() const {
    fs::remove_all(cache());
    fs::copy(folder / "good", cache(), fs::copy_options::recursive);
    write_over(folder / "victim", victim_text);
  }

  TemporaryFolder folder;
  fs::path config;
};

struct Disguise {
  std::string name;
  std::function<void(const Workplace&, const fs::path&)> put;
};

std::vector<Disguise> disguises() {
  return {
      {"empty", [](const Workplace&, const fs::path& file) { write_over(file, ""); }},
      {"truncated", [](const Workplace&, const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
      {"huge", [](const Workplace&, const fs::path& file) { fs::resize_file(file, std::uintmax_t{1} << 40); }},
      {"fifo",
       [](const Workplace&, const fs::path& file) {
         fs::remove(file);
         REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
       }},
      {"folder",
       [](const Workplace&, const fs::path& file) {
         fs::remove(file);
         fs::create_directory(file);
       }},
      {"link",
       [](const Workplace& place, const fs::path& file) {
         fs::remove(file);
         fs::create_symlink(place.folder / "victim", file);
       }},
      {"hard link",
       [](const Workplace& place, const fs::path& file) {
         fs::remove(file);
         fs::create_hard_link(place.folder / "victim", file);
       }},
      {"device",
       [](const Workplace&, const fs::path& file) {
         fs::remove(file);
         fs::create_symlink("/dev/zero", file);
       }},
      {"another file",
       [](const Workplace& place, const fs::path& file) { write_over(file, content_of(place.config)); }},
      {"an older version",
       [](const Workplace&, const fs::path& file) {
         std::string text = content_of(file);
         for (char& c : text) c = c >= '1' && c <= '9' ? '0' : c;
         write_over(file, text);
       }},
      {"foreign owner",
       [](const Workplace&, const fs::path& file) {
         if (geteuid() == 0) REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
       }},
  };
}

// Verbs that only read: their status says what they found, and they end by themselves.
std::vector<std::vector<std::string>> reading_verbs(const Workplace& place) {
  return {{"cache", "list"},
          {"cache", "stats", "--json"},
          {"cache", "verify"},
          {"selector", "show"},
          {"selector", "replay"},
          {"cache", "explain"},
          {"cache", "inspect", "a"},
          {"tune", "export", (place.folder / "out.tsv").string()},
          {"plugins"},
          {"devices"},
          {"cache", "prune", "--max-size", "1GiB"}};
}

TEST_CASE("disguised files: each file of the cache folder, under every verb", "[host][disguise]") {
  const Workplace place;
  const std::vector<std::string> files = place.files();
  REQUIRE(files.size() >= 10);
  const auto verbs = reading_verbs(place);
  std::size_t cell = 0;
  for (const std::string& name : files) {
    for (const Disguise& disguise : disguises()) {
      ++cell;
      if (!is_long() && (is_sanitized ? cell % 8 != 0 : cell % 2 != 0)) continue;
      place.renew();
      disguise.put(place, place.cache() / name);
      // The short form asks one of the verbs that read, each another time.
      for (std::size_t v = 0; v < verbs.size(); ++v) {
        if (!is_long() && v != cell / 2 % verbs.size()) continue;
        const Finished read = place.kiln(verbs[v]);
        INFO(name << " as " << disguise.name << " under " << verbs[v][0] << " " << verbs[v].back() << ": " << read.err);
        CHECK((read.status >= 0 && read.status <= 2));
      }
      const Finished run = place.kiln({"run", place.config.string(), "--json"});
      INFO(name << " as " << disguise.name << " under run: " << run.err);
      CHECK(run.status == 0);
      if (run.status == 0) CHECK(run.json()["jobs"][0]["verified"] == true);
      CHECK(content_of(place.folder / "victim") == victim_text);
    }
  }
}

// What a user names: a file that is none, or larger than any that Kiln writes, is refused by name.
TEST_CASE("disguised files: arguments of verbs", "[host][disguise]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  fs::create_directory(folder / "folder");
  folder.write("huge", "");
  fs::resize_file(folder / "huge", std::uintmax_t{1} << 40);
  folder.write("empty", "");
  const std::string key(64, 'a');
  for (const char* name : {"fifo", "folder", "huge", "empty", "/dev/zero"}) {
    const std::string file = name[0] == '/' ? name : (folder / name).string();
    for (const std::vector<std::string>& words : {std::vector<std::string>{"cache", "import", file, "--trust", key},
                                                  {"cache", "import", file, "--trust", file},
                                                  {"tune", "import", file},
                                                  {"bench", "compare", file, file},
                                                  {"pm4", "dump", file},
                                                  {"report", file, "--output", (folder / "page.html").string()}}) {
      const Finished refused = run_kiln(words, {.before = {"timeout", "-s", "KILL", "60"}});
      INFO(words[0] << " " << words[1] << " " << name << ": " << refused.err);
      const bool is_empty_stream = std::string_view(name) == "empty" && words[0] == "pm4";
      if (!is_empty_stream) CHECK((refused.status == 1 || refused.status == 2));
      CHECK(refused.status >= 0);
    }
  }
}

// Memory is taken for a bundle's bytes once the trusted key is known to have signed them.
TEST_CASE("disguised files: a bundle of 2 GiB that nobody signed takes little memory", "[host][disguise]") {
  if (is_sanitized) return;  // a sanitizer reserves address space of its own
  const TemporaryFolder folder;
  constexpr std::uint64_t size = (std::uint64_t{2} << 30) - 1;
  const auto little_endian = [](std::uint64_t value, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
    return text;
  };
  const std::string key(32, '\xaa');
  const auto header = [&](std::uint64_t schema, std::uint64_t body) {
    return "KILNBNDL" + little_endian(schema, 4) + little_endian(1, 4) + key + little_endian(body, 8);
  };
  const struct {
    std::string beginning, why;
  } cases[] = {{"", "is no bundle: its magic is not KILNBNDL"},
               {"KILNBND", "is no bundle: its magic is not KILNBNDL"},
               {header(7, size - 120), "schema 7, expected 2"},
               {header(2, size), "is truncated or altered"},
               {header(2, ~std::uint64_t{0}), "is truncated or altered"},
               {header(2, size - 120), "was altered, or was not signed by key aaaa"}};
  for (const auto& [beginning, why] : cases) {
    const fs::path file = folder.write("x.kiln", beginning);
    fs::resize_file(file, size);
    ProcessOptions options;
    options.environment["KILN_KEY_FILE"] = (folder / "state/key").string();
    options.before = {"timeout", "-s", "KILL", "120", "prlimit", "--data=400000000"};
    std::string trust;
    for (int i = 0; i < 32; ++i) trust += "aa";
    const Finished refused = run_kiln(
        {"cache", "import", file.string(), "--trust", trust, "--cache-dir", (folder / "cache").string()}, options);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err, Contains(why));
  }
}

}  // namespace
}  // namespace kiln::test
