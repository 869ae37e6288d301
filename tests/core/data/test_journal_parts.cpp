// The parts of a journal: its text line by line, its file, and the outputs that a damaged one still names.
#include "base/digest.hpp"
#include "base/os/commit_journal.hpp"
#include "core/data/commit_folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string journal_header = "kiln results 2 0\n";

// With the line that ends a copy.
std::string with_checksum(const std::string& lines) {
  std::string digits;
  for (const std::byte byte : xxh3_128(bytes_of(lines))) {
    constexpr char hex[] = "0123456789abcdef";
    digits += {hex[std::to_integer<unsigned>(byte) >> 4], hex[std::to_integer<unsigned>(byte) & 15]};
  }
  return lines + "checksum " + digits + "\n";
}

CommitUnit unit_of_two() {
  CommitUnit unit;
  unit.begun_s = 7;
  unit.entries = {{{1, 2, -3, 4}, FileIdentity{5, 6, 7, 8}, "0123456789abcdef", "/a b/~\x7f\x20\xff%.npy"},
                  {{9, 9, 9, 9}, std::nullopt, "fedcba9876543210", "/b"}};
  return unit;
}

}  // namespace

TEST_CASE("journal: the text of a unit, twice") {
  const CommitUnit unit = unit_of_two();
  const std::string copy =
      "kiln results 2 77\nunit 7\nfile 1:2:-3:4 5:6:7:8 0123456789abcdef /a%20b/~%7f%20%ff%25.npy\n"
      "file 9:9:9:9 - fedcba9876543210 /b\n";
  const std::string text = format_commit_units({unit}, 77);
  REQUIRE(text.size() % 2 == 0);
  const std::string half = text.substr(0, text.size() / 2);
  CHECK(text == half + half);
  REQUIRE(half.starts_with(copy + "checksum "));
  CHECK(half.size() == copy.size() + 9 + 32 + 1);
  CHECK(parse_commit_units(text, 77));
  CHECK(parse_commit_units(text));  // any folder
  CHECK(parse_commit_units(format_commit_units({unit}), 77));
  CHECK(parse_commit_units(text, 78).error().text() ==
        "corrupt: was written in another folder (expected inode 78, found 77)");
  CHECK(parse_commit_units("kiln results 3\n").error().text() == "corrupt: has version 3, expected 1 or 2");
  for (const char* damaged :
       {"", "kiln results \n", "kiln results 2\n", "kiln results 2 x\n", "kiln 3\n", "unit 7\n"}) {
    CAPTURE(damaged);
    CHECK(parse_commit_units(damaged).error().text() == "corrupt: is damaged");
  }
  for (std::size_t at = 0; at < half.size(); ++at) {  // one copy, which nothing replaces
    std::string altered = half;
    altered[at] = static_cast<char>(altered[at] ^ 1);
    if (parse_commit_units(altered)) FAIL("altered at " << at);
  }
  CHECK(parse_commit_units(half));
}

TEST_CASE("journal: each line has its form, whatever the checksum says") {
  const std::string unit = "unit 7\n", file = "file 1:2:-3:4 5:6:7:8 0123456789abcdef /a\n";
  const auto units_in = [](const std::string& lines) {
    const auto read = parse_commit_units(with_checksum(journal_header + lines));
    return read ? static_cast<int>(read->size()) : -1;
  };
  CHECK(units_in("") == 0);
  CHECK(units_in(unit) == 1);
  CHECK(units_in(unit + file) == 1);
  CHECK(units_in("unit -7\n" + file + file + unit) == 2);
  CHECK(units_in(unit + "file 1:2:3:4 - 0123456789abcdef /a%0a%25%7F\n") == 1);
  const char* const wrong_files[] = {"file",
                                     "file ",
                                     "file 1:2:3 - 0123456789abcdef /a",
                                     "file 1:2:3:4:5 - 0123456789abcdef /a",
                                     "file 1:2:3:x - 0123456789abcdef /a",
                                     "file :2:3:4 - 0123456789abcdef /a",
                                     "file -1:2:3:4 - 0123456789abcdef /a",
                                     "file 1:-2:3:4 - 0123456789abcdef /a",
                                     "file 1:2:3:-4 - 0123456789abcdef /a",
                                     "file 1:2:3:4 5:6:7 0123456789abcdef /a",
                                     "file 1:2:3:4  0123456789abcdef /a",
                                     "file 1:2:3:4 - 0123456789abcde /a",
                                     "file 1:2:3:4 - 0123456789abcdef0 /a",
                                     "file 1:2:3:4 - 0123456789abcdeg /a",
                                     "file 1:2:3:4 - 0123456789abcdef a",
                                     "file 1:2:3:4 - 0123456789abcdef ",
                                     "file 1:2:3:4 - 0123456789abcdef",
                                     "file 1:2:3:4 - 0123456789abcdef /a/",
                                     "file 1:2:3:4 - 0123456789abcdef /a/.",
                                     "file 1:2:3:4 - 0123456789abcdef /a/..",
                                     "file 1:2:3:4 - 0123456789abcdef /a%00",
                                     "file 1:2:3:4 - 0123456789abcdef /a%",
                                     "file 1:2:3:4 - 0123456789abcdef /a%4",
                                     "file 1:2:3:4 - 0123456789abcdef /a%4x",
                                     "file 1:2:3:4 - 0123456789abcdef /a%x4"};
  for (const char* line : wrong_files) {
    CAPTURE(line);
    CHECK(units_in(unit + line + "\n") == -1);
  }
  for (const std::string& lines : {file, std::string("unit x\n"), std::string("unit\n"), std::string("unit 7 \n"),
                                   std::string("other 1\n"), std::string("\n")}) {
    CAPTURE(lines);
    CHECK(units_in(lines) == -1);
    CHECK(units_in(unit + file + lines) == (lines == file ? 1 : -1));
  }
  const std::string whole = with_checksum(journal_header + unit + file);
  CHECK(parse_commit_units(whole));
  CHECK_FALSE(parse_commit_units(whole.substr(0, whole.size() - 1)));
  CHECK_FALSE(parse_commit_units(journal_header + unit + file));
}

TEST_CASE("journal: a damaged one still names the outputs of its whole lines") {
  const ScratchFolder folder;
  const std::string a = "file 1:2:3:4 - 0123456789abcdef /a\n", b = "file 1:2:3:4 5:6:7:8 0123456789abcdef /b%20c\n";
  const auto listed = [&](const std::string& text) {
    write_contents(folder / "journal", text);
    return outputs_listed_in(folder / "journal");
  };
  using Outputs = std::set<fs::path>;
  CHECK(listed("") == Outputs{});
  CHECK(listed("damaged\n" + a + "unit 7\n" + b + a) == Outputs{"/a", "/b c"});
  CHECK(listed(a + b.substr(0, b.size() - 1)) == Outputs{"/a"});
  CHECK(listed("file x\n" + b) == Outputs{"/b c"});
  fs::create_symlink("journal", folder / "link");
  fs::create_directory(folder / "folder");
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const char* name : {"link", "folder", "fifo", "none"}) CHECK(outputs_listed_in(folder / name).empty());
}

TEST_CASE("journal: what it says of a file that cannot be one") {
  const ScratchFolder folder;
  const fs::path path = folder / "journal";
  const std::string user = std::to_string(::geteuid());
  const auto opened = [&](CommitJournal::Missing missing = CommitJournal::Missing::create) {
    const auto journal = CommitJournal::open(path, missing);
    return !journal ? journal.error().text() : *journal ? "ok" : "absent";
  };
  const auto refused = [&](const std::string& why, const std::string& found) {
    return "corrupt: journal " + path.string() + ": cannot be used" + why + ": expected a file of user " + user +
           " with mode 0600 and 1 hard link, found " + found;
  };
  CHECK(opened(CommitJournal::Missing::none) == "absent");
  CHECK(opened() == "ok");
  struct stat made {};
  REQUIRE(::stat(path.c_str(), &made) == 0);
  CHECK((made.st_mode & 07777) == 0600);
  for (const auto& [mode, text] : {std::pair{0640u, "0640"}, std::pair{0601u, "0601"}, std::pair{01604u, "01604"}}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(opened() == refused("", "a file of user " + user + " with mode " + text + " and 1 hard link"));
  }
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
  CHECK(opened() == "ok");
  fs::create_hard_link(path, folder / "other");
  CHECK(opened() == refused("", "a file of user " + user + " with mode 0700 and 2 hard links"));
  fs::remove(path);
  fs::create_symlink("other", path);
  CHECK(opened() == refused(" (Too many levels of symbolic links)",
                            "a symbolic link of user " + user + " with mode 0777 and 1 hard link"));
  fs::remove(path);
  fs::create_directory(path);
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
  struct stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  const std::string links = found.st_nlink == 1 ? " hard link" : " hard links";
  CHECK(opened() == refused(" (Is a directory)", "a folder of user " + user + " with mode 0700 and " +
                                                     std::to_string(found.st_nlink) + links));
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(opened() == refused("", "a device, FIFO or socket of user " + user + " with mode 0600 and 1 hard link"));
}

TEST_CASE("journal: it is written over, cut to its text, and removed") {
  const ScratchFolder folder;
  auto journal = CommitJournal::open(folder / "journal", CommitJournal::Missing::create);
  REQUIRE(journal);
  REQUIRE(*journal);
  CHECK(journal->path() == folder / "journal");
  struct stat found {};
  REQUIRE(::stat(folder.path().c_str(), &found) == 0);
  const auto units = [&] {
    const auto read = journal->read();
    return read ? static_cast<int>(read->size()) : -1;
  };
  CHECK(units() == 0);
  for (const std::size_t count : {std::size_t{2}, std::size_t{3}, std::size_t{1}, std::size_t{0}, std::size_t{2}}) {
    const std::vector<CommitUnit> written(count, unit_of_two());
    CHECK(journal->write(written).text() == "ok");
    CHECK(contents_of(folder / "journal") == format_commit_units(written, found.st_ino));
    CHECK(units() == static_cast<int>(count));
  }
  keep_or_remove(*journal, {unit_of_two()});
  CHECK(units() == 1);
  keep_or_remove(*journal, {});
  CHECK(folder.entries() == 0);
  journal->remove();  // once more
  CHECK(folder.entries() == 0);
}

TEST_CASE("journal: the identity of a file is its number, size, time and owner") {
  struct stat found {};
  found.st_ino = 3, found.st_size = 5, found.st_uid = 4;
  found.st_mtim = {7, 9};
  CHECK(FileIdentity::of(found) == FileIdentity{3, 5, 7'000'000'009, 4});
  CHECK(temporary_name("0123456789abcdef") == ".kiln-0123456789abcdef.tmp");
  const std::string token = commit_token("a", "0123456789abcdef");
  CHECK(token.size() == 16);
  CHECK(token.substr(8) == "89abcdef");
  CHECK(token == commit_token("a", "fedcba9889abcdef"));  // the first half is the name's
  CHECK(token.substr(0, 8) != commit_token("b", "0123456789abcdef").substr(0, 8));
  CHECK(file_failure("/f", "cannot write", ENOENT).text() ==
        "not_found: file /f: cannot write: No such file or directory");
  CHECK(file_failure("/f", "cannot write", ENOTDIR).text() == "not_found: file /f: cannot write: Not a directory");
  CHECK(file_failure("/f", "cannot write", EACCES).text() == "io: file /f: cannot write: Permission denied");
}

TEST_CASE("journal: one beside the data stops units of several files, whichever unit comes first") {
  for (const bool single_first : {true, false}) {
    CAPTURE(single_first);
    const Folders folders;
    const fs::path beside = journal_beside(folders.root / "other");
    CHECK(beside.filename() == ".kiln-" + std::to_string(::geteuid()) + ".journal");
    write_contents(beside, "damaged\n");
    REQUIRE(::chmod(beside.c_str(), 0600) == 0);
    const Unit single{{folders.one("x"), "1"}}, several{{folders.two("a"), "1"}, {folders.two("b"), "1"}};
    const std::vector<Status> ends =
        single_first ? commit(folders.state(), {single, several}) : commit(folders.state(), {several, single});
    REQUIRE(ends.size() == 2);
    CHECK(ends[single_first ? 0 : 1].text() == "ok");
    const Status& stopped = ends[single_first ? 1 : 0];
    CHECK(stopped.code == StatusCode::corrupt);
    CHECK_THAT(stopped.message, Catch::StartsWith("journal " + beside.string() + ": is damaged. "));
    CHECK(folders.contents() == Contents{{folders.one("x").string(), "1"}, {beside.string(), "damaged\n"}});
  }
}
