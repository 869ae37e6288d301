// The attack table: every file that Kiln reads or writes, in every disguise, under every verb. Nothing waits, nothing
// ends by a signal, a job's result stays right, and no file of somebody else is written.
#include "host/every_verb.hpp"
#include "host/stored_programs.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <iterator>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

void write_over(const fs::path& file, const std::string& text) { put(file, text); }

struct Disguise {
  std::string name;
  std::function<void(const EveryVerb&, const fs::path&)> put;
};

// What takes the place of a file.
template <class Make>
Disguise replaced_by(const char* name, Make make) {
  return {name, [make](const EveryVerb& place, const fs::path& file) {
            fs::remove(file);
            make(place, file);
          }};
}

std::vector<Disguise> disguises() {
  return {
      {"empty", [](const EveryVerb&, const fs::path& file) { write_over(file, ""); }},
      {"truncated", [](const EveryVerb&, const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
      {"huge", [](const EveryVerb&, const fs::path& file) { fs::resize_file(file, std::uintmax_t{1} << 40); }},
      replaced_by("fifo", [](const EveryVerb&, const fs::path& file) { REQUIRE(::mkfifo(file.c_str(), 0600) == 0); }),
      replaced_by("folder", [](const EveryVerb&, const fs::path& file) { fs::create_directory(file); }),
      replaced_by("full folder",
                  [](const EveryVerb&, const fs::path& file) { fs::create_directories(file / "inner"); }),
      replaced_by("link",
                  [](const EveryVerb& place, const fs::path& file) { fs::create_symlink(place.victim(), file); }),
      replaced_by("broken link", [](const EveryVerb&, const fs::path& file) { fs::create_symlink("nothing", file); }),
      replaced_by("loop of links",
                  [](const EveryVerb&, const fs::path& file) { fs::create_symlink(file.filename(), file); }),
      replaced_by("hard link",
                  [](const EveryVerb& place, const fs::path& file) { fs::create_hard_link(place.victim(), file); }),
      replaced_by("device", [](const EveryVerb&, const fs::path& file) { fs::create_symlink("/dev/zero", file); }),
      replaced_by("socket", [](const EveryVerb&,
                               const fs::path& file) { REQUIRE(::mknod(file.c_str(), S_IFSOCK | 0600, 0) == 0); }),
      {"exchanged",
       [](const EveryVerb& place, const fs::path& file) {
         // With the next of its kind, or the first of another.
         const auto& files = place.files();
         const auto is_other = [&](const std::string& name) {
           return place.live() / name != file && fs::path(name).extension() == file.extension();
         };
         const auto other = std::ranges::find_if(files, is_other);
         const fs::path second = place.live() / (other == files.end() ? files.front() : *other);
         const std::string mine = bytes_in(file), its = bytes_in(second);
         write_over(file, its), write_over(second, mine);
       }},
      {"an older version",
       [](const EveryVerb&, const fs::path& file) {
         std::string text = bytes_in(file);
         for (char& c : text) c = c >= '1' && c <= '9' ? '0' : c;
         write_over(file, text);
       }},
      {"one bit",
       [](const EveryVerb&, const fs::path& file) {
         std::string bytes = bytes_in(file);
         if (!bytes.empty()) bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
         write_over(file, bytes);
       }},
      {"writable by others", [](const EveryVerb&, const fs::path& file) { REQUIRE(::chmod(file.c_str(), 0666) == 0); }},
      {"foreign owner",
       [](const EveryVerb&, const fs::path& file) {
         if (geteuid() == 0) REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
       }},
  };
}

// One cell of the table: the verb ends by itself, in time, with a status of its contract; what is said to be right is;
// nothing outside is written; and a later run serves, but where a file that the user names is not what it should be.
bool survives(const EveryVerb& place, const std::string& file, const Disguise& disguise, const EveryVerb::Verb& verb,
              bool with_run) {
  place.renew();
  disguise.put(place, place.live() / file);
  const Finished under = place.kiln(verb.words);
  INFO(file << " as " << disguise.name << " under " << verb.name << ": " << under.err << under.out);
  bool good = under.status >= 0 && under.status <= 3 && (under.status == 0 || !under.err.empty() || !under.out.empty());
  CHECK(good);
  if (with_run) {
    const Finished run = place.run();
    INFO("run: " << run.err << run.out);
    const bool is_users = file.starts_with("data/");
    // A journal that cannot be used may list outputs that are partly new: what would replace one fails.
    const bool may_fail = is_users || file.ends_with("results.journal");
    const bool ends = run.status == 0 || (may_fail && run.status >= 1 && run.status <= 3);
    // Where files of the user change places, their job may be another one.
    const bool is_whole = run.status != 0 || (is_users && disguise.name == "exchanged") || place.is_right(run);
    CHECK(ends);
    CHECK(is_whole);
    good = good && ends && is_whole;
  }
  // A link in place of a file that the user names is the user's own: it is followed.
  const bool is_untouched = place.is_victim_untouched() || (file.starts_with("data/") && disguise.name == "link");
  CHECK(is_untouched);
  return good && is_untouched;
}

// The cells of one of `parts` parts, which CTest runs at the same time. The short form takes each file in each fifth
// disguise under one verb, each another time. The long form takes each file in each disguise under each third verb, so
// that each verb meets each file in five or six disguises: a cell takes half a second.
void attack(std::size_t part, std::size_t parts) {
  const EveryVerb place;
  const std::vector<std::string>& files = place.files();
  REQUIRE(files.size() >= 25);
  const auto& verbs = place.verbs();
  const auto all = disguises();
  std::size_t cells = 0, due = 0, taken = 0, survivors = 0;
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (std::size_t d = 0; d < all.size(); ++d) {
      for (std::size_t v = 0; v < verbs.size(); ++v) {
        ++cells;
        const std::size_t pair = f * all.size() + d;
        const std::size_t step = is_sanitized ? 40 : 5;
        const bool is_short = pair % step == 0 && v == (pair / step * 7 + f) % verbs.size() && !verbs[v].is_slow;
        const bool is_due = is_long() ? (pair + v) % 3 == 0 : is_short;
        if (!is_due || due++ % parts != part) continue;
        ++taken;
        if (!survives(place, files[f], all[d], verbs[v], pair % 2 == 0)) ++survivors;
      }
    }
  }
  CHECK(taken >= (is_sanitized ? 1 : 20));
  WARN("attack table: " << taken << " of " << cells << " cells (" << files.size() << " files, " << all.size()
                        << " disguises, " << verbs.size() << " verbs), " << survivors << " faults");
}

TEST_CASE("disguised files: each file, under every verb: 1 of 4", "[host][disguise][unsanitized]") { attack(0, 4); }
TEST_CASE("disguised files: each file, under every verb: 2 of 4", "[host][disguise][unsanitized]") { attack(1, 4); }
TEST_CASE("disguised files: each file, under every verb: 3 of 4", "[host][disguise][unsanitized]") { attack(2, 4); }
TEST_CASE("disguised files: each file, under every verb: 4 of 4", "[host][disguise][unsanitized]") { attack(3, 4); }

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
                                                  {"run", file},
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
TEST_CASE("disguised files: a bundle of 2 GiB that nobody signed takes little memory",
          "[host][disguise][unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer reserves address space of its own");
    return;
  }
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
  } cases[] = {{"", "is not a bundle: does not begin with KILNBNDL"},
               {"KILNBND", "is not a bundle: does not begin with KILNBNDL"},
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
