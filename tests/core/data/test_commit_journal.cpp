// The journal of a commit: what the next run undoes or finishes, and journals that are damaged or forged.
#include "base/digest.hpp"
#include "base/os/commit_journal.hpp"
#include "core/data/commit_folders.hpp"
#include "support/test_length.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include <kiln/stop_scope.hpp>

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

namespace {

// A journal of a run that was killed after the first of two replaced files had taken its name.
class HalfDone {
 public:
  HalfDone() {
    set({{folders.one("a"), "new a"},
         {temporary("a", 1), "old a"},
         {folders.one("b"), "old b"},
         {temporary("b", 2), "new b"}});
    unit.begun_s = ::time(nullptr);
    unit.entries = {{identity(folders.one("a")), identity(temporary("a", 1)), token(1), folders.one("a")},
                    {identity(temporary("b", 2)), identity(folders.one("b")), token(2), folders.one("b")}};
    fs::create_directory(folders.state());
  }
  static std::string token(int number) { return "000000000000000" + std::to_string(number); }
  fs::path temporary(const std::string&, int number) const { return folders.one(temporary_name(token(number))); }
  static FileIdentity identity(const fs::path& file) {
    struct stat found {};
    REQUIRE(::lstat(file.c_str(), &found) == 0);
    return FileIdentity::of(found);
  }
  fs::path journal() const { return folders.state() / "results.journal"; }
  void write_journal(const std::string& text) const {
    write_contents(journal(), text);
    REQUIRE(::chmod(journal().c_str(), 0600) == 0);
  }
  std::string text() const { return format_commit_units({unit}); }
  bool is_untouched() const { return folders.entries().size() == 4 && contents_of(folders.one("a")) == "new a"; }

  Folders folders;
  CommitUnit unit;
};

}  // namespace

TEST_CASE("journal: the next run undoes what is incomplete") {
  const HalfDone left;
  left.write_journal(left.text());
  const SettledCommits settled = left.folders.settle();
  CHECK(settled.problems.empty());
  REQUIRE(settled.notes.size() == 1);
  CHECK_THAT(settled.notes.front(), Contains(left.folders.one("b").string()));
  CHECK(left.folders.contents() ==
        Contents{{left.folders.one("a").string(), "old a"}, {left.folders.one("b").string(), "old b"}});
  CHECK_FALSE(fs::exists(left.journal()));
}

TEST_CASE("journal: the next commit undoes it too, also of a file that it replaces") {
  const HalfDone left;
  left.write_journal(left.text());
  REQUIRE(commit(left.folders.state(), {{{left.folders.one("b"), "newer"}}}).front().ok());
  CHECK(left.folders.contents() ==
        Contents{{left.folders.one("a").string(), "old a"}, {left.folders.one("b").string(), "newer"}});
}

TEST_CASE("journal: one that is damaged, or not this user's, changes no file", "[unsanitized]") {
  const HalfDone left;
  const std::string text = left.text();
  const std::string one_copy = text.substr(0, text.size() / 2);
  SECTION("every bit of both copies") {
    const std::size_t step = is_sanitized && !is_long() ? 37 : 5;
    for (std::size_t bit = 0; bit < 8 * one_copy.size(); bit += step) {
      std::string altered = one_copy;
      altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
      left.write_journal(altered + altered);
      REQUIRE(left.folders.settle().problems.size() == 1);
      REQUIRE(left.is_untouched());
      REQUIRE(contents_of(left.journal()) == altered + altered);
    }
  }
  SECTION("truncated in the first copy") {
    for (std::size_t length = 1; length < one_copy.size(); ++length) {
      left.write_journal(text.substr(0, length));
      CHECK_THAT(left.folders.settle().problems.at(0), Contains("damaged"));
    }
  }
  SECTION("empty") {
    left.write_journal("");
    CHECK(left.folders.settle().problems.empty());
  }
  SECTION("readable by others") {
    left.write_journal(text);
    REQUIRE(::chmod(left.journal().c_str(), 0644) == 0);
    CHECK_THAT(left.folders.settle().problems.at(0), Contains("0600"));
  }
  SECTION("another user's") {
    if (::geteuid() != 0) return;
    left.write_journal(text);
    REQUIRE(::chown(left.journal().c_str(), 65534, 65534) == 0);
    CHECK_THAT(left.folders.settle().problems.at(0), Contains("user 0"));
  }
  SECTION("with another name") {
    left.write_journal(text);
    fs::create_hard_link(left.journal(), left.folders.root / "again");
    CHECK(left.folders.settle().problems.size() == 1);
  }
  SECTION("a link, a FIFO, a folder") {
    write_contents(left.folders.root / "elsewhere", text);
    fs::create_symlink(left.folders.root / "elsewhere", left.journal());
    CHECK(left.folders.settle().problems.size() == 1);
    fs::remove(left.journal());
    REQUIRE(::mkfifo(left.journal().c_str(), 0600) == 0);
    CHECK(left.folders.settle().problems.size() == 1);
    fs::remove(left.journal());
    fs::create_directory(left.journal());
    CHECK(left.folders.settle().problems.size() == 1);
  }
  SECTION("in a folder that others can write") {
    left.write_journal(text);
    fs::permissions(left.folders.state(), fs::perms(0777));
    CHECK(left.folders.settle().notes.empty());
  }
  CHECK(left.is_untouched());
}

TEST_CASE("journal: one damaged copy is replaced by the other, and version 1 has one copy") {
  const HalfDone left;
  std::string text = left.text();
  SECTION("the first is damaged") { text[text.size() / 3] ^= 1; }
  SECTION("the second is cut off") { text.resize(text.size() / 2 + 20); }
  SECTION("version 1") {
    text.resize(text.rfind("checksum ", text.size() / 2));
    text.replace(0, text.find('\n'), "kiln results 1");
    std::string digits;
    for (const std::byte byte : xxh3_128(bytes_of(text))) {
      constexpr char hex[] = "0123456789abcdef";
      digits += {hex[std::to_integer<unsigned>(byte) >> 4], hex[std::to_integer<unsigned>(byte) & 15]};
    }
    text += "checksum " + digits + "\n";
  }
  left.write_journal(text);
  CHECK(left.folders.settle().problems.empty());
  CHECK(contents_of(left.folders.one("a")) == "old a");
  CHECK(contents_of(left.folders.one("b")) == "old b");
  CHECK_FALSE(fs::exists(left.journal()));
}

TEST_CASE("journal: files that it does not describe exactly stay") {
  HalfDone left;
  SECTION("the new file is another one now") {
    fs::remove(left.folders.one("a"));
    write_contents(left.folders.one("a"), "user's");
    left.write_journal(left.text());
    CHECK(left.folders.settle().problems.empty());
    CHECK(contents_of(left.folders.one("a")) == "user's");
    CHECK(contents_of(left.folders.one("b")) == "old b");
  }
  SECTION("the old file was changed in place") {
    write_contents(left.folders.one("b"), "user's");
    left.write_journal(left.text());
    CHECK(left.folders.settle().problems.empty());
    CHECK(contents_of(left.folders.one("a")) == "old a");
    CHECK(contents_of(left.folders.one("b")) == "user's");
  }
  SECTION("the temporary name holds another file") {
    fs::remove(left.temporary("a", 1));
    write_contents(left.temporary("a", 1), "foreign");
    left.write_journal(left.text());
    CHECK_THAT(left.folders.settle().problems.at(0), Contains("the old content is lost"));
    CHECK(contents_of(left.temporary("a", 1)) == "foreign");
    CHECK(contents_of(left.folders.one("a")) == "new a");
  }
  SECTION("forged: a made file that is a user's") {
    write_contents(left.folders.two("precious"), "precious");
    FileIdentity made = HalfDone::identity(left.folders.two("precious"));
    made.bytes += 1;
    left.unit.entries = {{made, std::nullopt, HalfDone::token(3), left.folders.two("precious")},
                         {made, std::nullopt, HalfDone::token(4), left.folders.two("none")}};
    left.write_journal(left.text());
    (void)left.folders.settle();
    CHECK(contents_of(left.folders.two("precious")) == "precious");
  }
  CHECK_FALSE(fs::exists(left.journal()));
}

TEST_CASE("journal: old content that cannot be renamed back keeps its temporary name and is retried") {
  HalfDone left;
  const fs::path temporary = left.temporary("n", 3);
  write_contents(temporary, "old n");
  const FileIdentity old = HalfDone::identity(temporary);
  FileIdentity made = old;
  made.inode += 1;
  const fs::path unnameable = left.folders.one(std::string(256, 'n'));  // longer than any file's name
  left.unit.entries.push_back({made, old, HalfDone::token(3), unnameable});
  left.write_journal(left.text());
  for (int attempt = 0; attempt < 2; ++attempt) {
    CAPTURE(attempt);
    const SettledCommits settled = left.folders.settle();
    CHECK(settled.notes.empty());
    REQUIRE(settled.problems.size() == 1);
    CHECK_THAT(settled.problems.front(), Contains("cannot be completed now: file " + unnameable.string() +
                                                  ": cannot rename " + temporary.filename().string() + " to nnn") &&
                                             Contains("File name too long. The next run tries again"));
    CHECK(left.folders.contents() == Contents{{left.folders.one("a").string(), "old a"},
                                              {left.folders.one("b").string(), "old b"},
                                              {temporary.string(), "old n"}});
    CHECK(fs::exists(left.journal()));
  }
}

TEST_CASE("journal: an unreadable one names only the outputs of the temporary files") {
  const Folders folders;
  fs::create_directory(folders.state());
  const fs::path journal = folders.state() / "results.journal";
  write_contents(journal, "damaged\n");
  REQUIRE(::chmod(journal.c_str(), 0600) == 0);
  const std::string begin = "journal " + journal.string() +
                            ": is damaged. A run that ended while it wrote may have left outputs partly new and partly "
                            "old: ";
  const std::string end = ". Check these files, remove the journal, and run their jobs again";
  using Problems = std::vector<std::string>;
  set({{folders.one("a"), "new a"},
       {folders.two("b"), "the user's"},
       {folders.one(".kiln-short.tmp"), "the user's"},
       {folders.one(".kiln-0123456789abcdef.new"), "the user's"}});
  CHECK(folders.settle().problems == Problems{begin + "which ones is not known" + end});
  const std::string token = commit_token("a", "0123456789abcdef");
  for (const char* const suffix : {".tmp", ".old"}) {
    const fs::path temporary = folders.one(".kiln-" + token + suffix);
    write_contents(temporary, "old a");
    CHECK(folders.settle().problems ==
          Problems{begin + folders.one("a").string() + ". Their other versions: " + temporary.string() + end});
    // Of an output that is not there now.
    fs::rename(folders.one("a"), folders.one("away"));
    CHECK(folders.settle().problems ==
          Problems{begin + "which ones is not known. Their other versions: " + temporary.string() + end});
    fs::rename(folders.one("away"), folders.one("a"));
    fs::remove(temporary);
  }
}

TEST_CASE("journal: a folder that is away is tried again") {
  const HalfDone left;
  left.write_journal(left.text());
  fs::rename(left.folders.root / "a b", left.folders.root / "away");
  const std::vector<fs::path> none;
  CHECK_THAT(settle_commits(left.folders.state(), none).problems.at(0), Contains("a b") && Contains("next run"));
  REQUIRE(commit(left.folders.state(), {{{left.folders.two("x"), "1"}, {left.folders.two("y"), "1"}}}).front().ok());
  fs::rename(left.folders.root / "away", left.folders.root / "a b");
  CHECK(settle_commits(left.folders.state(), none).problems.empty());
  CHECK(contents_of(left.folders.one("a")) == "old a");
  CHECK(contents_of(left.folders.one("b")) == "old b");
  CHECK_FALSE(fs::exists(left.journal()));
}

TEST_CASE("journal: what belongs to a folder that is away is tried again for thirty days") {
  HalfDone left;
  fs::rename(left.folders.root / "a b", left.folders.root / "away");
  const std::vector<fs::path> none;
  const std::string problem = "an earlier run ended while it wrote " + left.folders.one("a").string() + ", " +
                              left.folders.one("b").string() +
                              ", and this cannot be completed now: " + (left.folders.root / "a b").string() +
                              ": No such file or directory. The next run tries again";
  constexpr std::int64_t days_30 = 2'592'000, minutes = 600;
  for (const std::int64_t age : {std::int64_t{0}, days_30 - minutes, days_30 + minutes}) {
    CAPTURE(age);
    left.unit.begun_s = ::time(nullptr) - age;
    left.write_journal(left.text());
    const SettledCommits settled = settle_commits(left.folders.state(), none);
    CHECK(settled.problems == std::vector<std::string>{problem});
    CHECK(settled.notes.empty());
    CHECK(fs::exists(left.journal()) == (age < days_30));
  }
}

TEST_CASE("journal: results that all have their names are complete, also where one was changed since") {
  for (const bool has_backup : {false, true}) {
    for (const bool is_changed : {false, true}) {
      CAPTURE(has_backup, is_changed);
      const HalfDone left;
      fs::rename(left.folders.one("b"), left.folders.one("old b"));
      fs::rename(left.temporary("b", 2), left.folders.one("b"));
      fs::rename(left.folders.one("old b"), left.temporary("b", 2));
      if (has_backup) fs::rename(left.temporary("a", 1), left.folders.one(".kiln-" + HalfDone::token(1) + ".old"));
      if (is_changed) {  // by a file of its own
        write_contents(left.folders.one("other"), "the user's");
        fs::rename(left.folders.one("other"), left.folders.one("a"));
      }
      left.write_journal(left.text());
      const SettledCommits settled = left.folders.settle();
      CHECK(settled.problems.empty());
      CHECK(settled.notes ==
            std::vector<std::string>{"an earlier run ended while it wrote " + left.folders.one("a").string() + ", " +
                                     left.folders.one("b").string() + ": its results are complete"});
      CHECK(left.folders.contents() == Contents{{left.folders.one("a").string(), is_changed ? "the user's" : "new a"},
                                                {left.folders.one("b").string(), "new b"}});
      CHECK_FALSE(fs::exists(left.journal()));
    }
  }
}

TEST_CASE("journal: names of any bytes, and what is refused") {
  CommitUnit unit;
  unit.begun_s = 7;
  unit.entries = {{{1, 2, -3, 4}, FileIdentity{5, 6, 7, 8}, "0123456789abcdef", "/a b/\xff\n%\x01.npy"},
                  {{9, 9, 9, 9}, std::nullopt, "fedcba9876543210", "/b"}};
  const auto read = parse_commit_units(format_commit_units({unit, unit}));
  REQUIRE(read);
  REQUIRE(read->size() == 2);
  CHECK(read->at(1).entries.at(0).path == unit.entries[0].path);
  CHECK(read->at(1).entries.at(0).made == unit.entries[0].made);
  CHECK(read->at(1).entries.at(0).old == unit.entries[0].old);
  CHECK_FALSE(read->at(1).entries.at(1).old);
  for (const char* path : {"relative", "/", "/folder/", "/a/.", "/a/.."}) {
    unit.entries[1].path = path;
    INFO(path);
    CHECK_FALSE(parse_commit_units(format_commit_units({unit})));
  }
  unit.entries[1].path = "/b";
  for (const char* token : {"../../etc/passwd", "0123456789abcde", "0123456789ABCDEF", ""}) {
    unit.entries[1].token = token;
    CHECK_FALSE(parse_commit_units(format_commit_units({unit})));
  }
}

TEST_CASE("journal: one of more than 16 MiB is not read", "[journal]") {
  const HalfDone left;
  left.write_journal("x");
  const auto refused = [&](std::uintmax_t bytes) {
    fs::resize_file(left.journal(), bytes);
    const auto journal = CommitJournal::open(left.journal(), CommitJournal::Missing::none);
    REQUIRE(journal);
    const auto units = journal->read();
    REQUIRE_FALSE(units);
    return units.error();
  };
  const Status whole = refused(16 << 20);
  CHECK(whole.code == StatusCode::corrupt);
  CHECK_THAT(whole.message, Contains("is damaged"));
  const Status above = refused((16 << 20) + 1);
  CHECK(above.code == StatusCode::corrupt);
  CHECK_THAT(above.message, Contains("has 16777217 bytes, expected at most 16777216"));
}

TEST_CASE("journal: where a thread of this process holds it, this process is named by its number") {
  const Folders folders;
  fs::create_directory(folders.state());
  fs::permissions(folders.state(), fs::perms::owner_all);
  const fs::path file = folders.state() / "results.journal";
  const auto held = CommitJournal::open(file, CommitJournal::Missing::create);
  REQUIRE(held);
  const std::atomic<bool> stop{true};
  const StopScope scope(&stop);
  const auto refused = CommitJournal::open(file, CommitJournal::Missing::create);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::cancelled);
  CHECK_THAT(refused.error().message, Contains("while process " + std::to_string(::getpid()) + " ("));
}
