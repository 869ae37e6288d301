#include "base/os/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include "core/data/scratch_folder.hpp"
#include "support/in_child.hpp"
#include "support/syscall_killer.hpp"

#include <kiln/buffer.hpp>

using kiln::AtomicFile;
using kiln::StatusCode;
using kiln::test::bytes_of;
using kiln::test::contents_of;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

TEST_CASE("AtomicFile: a file appears at commit and not before", "[atomic_file]") {
  const ScratchFolder folder;
  auto file = AtomicFile::create(folder / "out");
  REQUIRE(file);
  REQUIRE(file->write(bytes_of("one ")).ok());
  REQUIRE(file->write(bytes_of("two")).ok());
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
  REQUIRE(file->commit().ok());
  CHECK(contents_of(folder / "out") == "one two");
  CHECK(folder.entries() == 1);
  CHECK(file->write(bytes_of("late")).code == StatusCode::internal);
  CHECK(file->commit().code == StatusCode::internal);
}

TEST_CASE("AtomicFile: what is not committed leaves the old file and nothing else", "[atomic_file]") {
  const ScratchFolder folder;
  write_contents(folder / "out", "old");
  {
    auto file = AtomicFile::create(folder / "out");
    REQUIRE(file);
    REQUIRE(file->write(bytes_of("new")).ok());
    CHECK(folder.entries() == 1);
    auto moved = *std::move(file);
    CHECK(folder.entries() == 1);
  }
  CHECK(contents_of(folder / "out") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("AtomicFile: assignment discards what the target held", "[atomic_file]") {
  const ScratchFolder folder;
  auto first = AtomicFile::create(folder / "first");
  auto second = AtomicFile::create(folder / "second");
  REQUIRE(first);
  REQUIRE(second);
  *first = *std::move(second);
  CHECK(folder.entries() == 0);
  REQUIRE(first->commit().ok());
  CHECK(std::filesystem::exists(folder / "second"));
  CHECK_FALSE(std::filesystem::exists(folder / "first"));
}

TEST_CASE("AtomicFile: assigned to itself it keeps what it holds", "[atomic_file]") {
  const ScratchFolder folder;
  auto file = AtomicFile::create(folder / "out");
  REQUIRE(file);
  REQUIRE(file->write(bytes_of("text")).ok());
  AtomicFile& same = *file;
  *file = std::move(same);
  REQUIRE(file->commit().ok());
  CHECK(contents_of(folder / "out") == "text");
}

TEST_CASE("AtomicFile: the mode is narrowed by the umask", "[atomic_file]") {
  const ScratchFolder folder;
  const mode_t before = ::umask(027);
  auto file = AtomicFile::create(folder / "out");
  ::umask(before);
  REQUIRE(file);
  REQUIRE(file->commit().ok());
  struct stat found {};
  REQUIRE(::stat((folder / "out").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0640);
}

TEST_CASE("AtomicFile: a name of 255 bytes; symbolic links are followed", "[atomic_file]") {
  const ScratchFolder folder;
  const std::string name(255, 'n');
  for (const char* content : {"first", "second"}) {
    auto longest = AtomicFile::create(folder / name);
    REQUIRE(longest);
    REQUIRE(longest->write(bytes_of(content)).ok());
    REQUIRE(longest->commit().ok());
    CHECK(contents_of(folder / name) == content);
  }
  write_contents(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  auto link = AtomicFile::create(folder / "link");
  REQUIRE(link);
  REQUIRE(link->write(bytes_of("new")).ok());
  REQUIRE(link->commit().ok());
  CHECK(contents_of(folder / "target") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("AtomicFile: a file with other hard links is refused and stays", "[atomic_file]") {
  const ScratchFolder folder;
  write_contents(folder / "out", "old");
  std::filesystem::create_hard_link(folder / "out", folder / "other");
  const auto refused = AtomicFile::create(folder / "out");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("2 hard links"));
  // Also where the link appears while the file is written.
  std::filesystem::remove(folder / "other");
  auto file = AtomicFile::create(folder / "out");
  REQUIRE(file);
  REQUIRE(file->write(bytes_of("new")).ok());
  std::filesystem::create_hard_link(folder / "out", folder / "other");
  CHECK(file->commit().code == StatusCode::invalid_argument);
  CHECK(contents_of(folder / "out") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("AtomicFile: errors name the path and the system's reason", "[atomic_file]") {
  const ScratchFolder folder;
  const auto missing = AtomicFile::create(folder / "no" / "such" / "out");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == StatusCode::not_found);
  CHECK_THAT(missing.error().message, Catch::Contains((folder / "no").string()) && Catch::Contains("No such file"));

  const auto onto_folder = AtomicFile::create(folder.path());
  REQUIRE_FALSE(onto_folder);
  CHECK(onto_folder.error().code == StatusCode::invalid_argument);

  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  const auto onto_fifo = AtomicFile::create(folder / "fifo");
  REQUIRE_FALSE(onto_fifo);
  CHECK(onto_fifo.error().code == StatusCode::invalid_argument);
  CHECK_THAT(onto_fifo.error().message, Catch::Contains("regular file"));

  const auto nameless = AtomicFile::create(folder.path() / "");
  REQUIRE_FALSE(nameless);
  CHECK(nameless.error().code == StatusCode::invalid_argument);
}

TEST_CASE("AtomicFile: a write that the system refuses leaves the old file", "[atomic_file]") {
  const ScratchFolder folder;
  write_contents(folder / "out", "old");
  // A limit on file sizes refuses for every user, root too; in a child, since it holds for the whole process.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    auto file = AtomicFile::create(folder / "out");
    if (!file) ::_exit(3);
    const auto status = file->write(bytes_of(std::string(10000, 'x')));
    if (status.code != StatusCode::io || status.message.find("File too large") == std::string::npos) ::_exit(4);
    ::_exit(file->commit().ok() ? 5 : 0);
  }
  int state = 0;
  REQUIRE(::waitpid(child, &state, 0) == child);
  REQUIRE(WIFEXITED(state));
  CHECK(WEXITSTATUS(state) == 0);
  CHECK(contents_of(folder / "out") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("AtomicFile: the next writer removes the temporary file of an ended writer and no other file",
          "[atomic_file]") {
  const ScratchFolder folder;
  // In a child, which ends without destructors. 9: a file system without nameless files cannot be imitated here.
  const auto write_in_child = [&](bool commits) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (!kiln::test::refuse_nameless_files()) ::_exit(9);
      auto file = AtomicFile::create(folder / "out");
      if (!file || !file->write(bytes_of("text")).ok()) ::_exit(1);
      ::_exit(commits && !file->commit().ok() ? 2 : 0);
    }
    int state = 0;
    REQUIRE(::waitpid(child, &state, 0) == child);
    REQUIRE(WIFEXITED(state));
    return WEXITSTATUS(state);
  };
  const std::string kept[] = {".kiln-aaaaaaaaaaaaaaaa.tmp", ".kiln-0123456789abcdef0.tmp", ".kiln-0123456789abcdef.old",
                              "kiln-0123456789abcdef.tmp"};
  for (const std::string& name : kept) write_contents(folder / name, name);
  const kiln::UniqueFd living(::open((folder / kept[0]).c_str(), O_RDONLY | O_CLOEXEC));  // its writer holds the lock
  REQUIRE(living);
  REQUIRE(::flock(living.get(), LOCK_EX | LOCK_NB) == 0);
  const int status = write_in_child(false);
  if (status == 9) {
    WARN("skipped: a filter of system calls is not permitted here");
    return;
  }
  REQUIRE(status == 0);
  CHECK(folder.entries() == std::size(kept) + 1);  // the temporary file
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
  REQUIRE(write_in_child(true) == 0);
  CHECK(folder.entries() == std::size(kept) + 1);  // the output
  CHECK(contents_of(folder / "out") == "text");
  for (const std::string& name : kept) CHECK(contents_of(folder / name) == name);
}

TEST_CASE("AtomicFile: assignment removes the target's temporary file and takes over that of the source",
          "[atomic_file]") {
  const ScratchFolder folder;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!kiln::test::refuse_nameless_files()) ::_exit(9);
    auto first = AtomicFile::create(folder / "first");
    auto second = AtomicFile::create(folder / "second");
    if (!first || !second || folder.entries() != 2 || !second->write(bytes_of("text")).ok()) ::_exit(1);
    *first = *std::move(second);
    if (folder.entries() != 1) ::_exit(2);
    AtomicFile moved = *std::move(first);
    if (!moved.commit().ok() || folder.entries() != 1) ::_exit(3);
    auto third = AtomicFile::create(folder / "third");
    if (!third || folder.entries() != 2) ::_exit(4);
    moved = *std::move(third);
    moved = AtomicFile::create(folder / "fourth").value();  // discards the third
    if (folder.entries() != 2) ::_exit(5);
    ::_exit(0);
  }
  int state = 0;
  REQUIRE(::waitpid(child, &state, 0) == child);
  REQUIRE(WIFEXITED(state));
  if (WEXITSTATUS(state) == 9) {
    WARN("skipped: a filter of system calls is not permitted here");
    return;
  }
  CHECK(WEXITSTATUS(state) == 0);
  CHECK(contents_of(folder / "second") == "text");
}

TEST_CASE("AtomicFile: of a file that cannot be written the nearest folder is named", "[atomic_file]") {
  const ScratchFolder folder;
  const std::filesystem::path closed = folder / "closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(closed, std::filesystem::perms(0555));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) ::_exit(1);
    int failed = 2;
    for (const char* name : {"file", "none/file", "none/deeper/file"}) {
      const kiln::Status status = kiln::check_writable(closed / name);
      const std::string expected = "io: file " + (closed / name).string() + ": folder " + closed.string() +
                                   " cannot be written: Permission denied";
      if (status.text() != expected) ::_exit(failed);
      ++failed;
    }
    ::_exit(0);
  }
  int state = 0;
  REQUIRE(::waitpid(child, &state, 0) == child);
  REQUIRE(WIFEXITED(state));
  CHECK(WEXITSTATUS(state) == 0);
}

TEST_CASE("AtomicFile: the owner of what is replaced stays, and another group gets no rights", "[atomic_file]") {
  if (::geteuid() != 0) {
    WARN("skipped: giving files away takes root");
    return;
  }
  const ScratchFolder folder;
  constexpr uid_t nobody = 65534, other = 12345;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  const auto give = [&](const char* name, uid_t user, gid_t group, mode_t mode) {
    write_contents(folder / name, "old");
    REQUIRE(::chown((folder / name).c_str(), user, group) == 0);
    REQUIRE(::chmod((folder / name).c_str(), mode) == 0);
  };
  give("of_another", other, other, 0666);
  give("of_its_group", nobody, nobody, 0664);
  give("of_another_group", nobody, other, 0675);
  const auto end = kiln::test::in_unprivileged_child([&]() -> std::string {
    std::string told;
    for (const char* name : {"of_another", "of_its_group", "of_another_group"}) {
      auto file = AtomicFile::create(folder / name);
      if (file && file->write(bytes_of("new")).ok()) (void)file->commit();
      told += (file ? "ok" : file.error().text()) + "\n";
    }
    return told;
  });
  CHECK(end.said == "io: file " + (folder / "of_another").string() +
                        ": cannot keep owner 12345 (remove the old file first): Operation not permitted\nok\nok\n");
  struct Kept {
    const char* name;
    std::string text;
    uid_t user;
    gid_t group;
    mode_t mode;
  };
  for (const Kept& each :
       {Kept{"of_another", "old", other, other, 0666}, Kept{"of_its_group", "new", nobody, nobody, 0664},
        Kept{"of_another_group", "new", nobody, nobody, 0605}}) {
    CAPTURE(each.name);
    CHECK(contents_of(folder / each.name) == each.text);
    struct stat found {};
    REQUIRE(::stat((folder / each.name).c_str(), &found) == 0);
    CHECK(found.st_uid == each.user);
    CHECK(found.st_gid == each.group);
    CHECK((found.st_mode & 07777) == each.mode);
  }
  // Root keeps both.
  auto file = AtomicFile::create(folder / "of_another");
  REQUIRE(file);
  REQUIRE(file->write(bytes_of("newer")).ok());
  REQUIRE(file->commit().ok());
  struct stat found {};
  REQUIRE(::stat((folder / "of_another").c_str(), &found) == 0);
  CHECK(found.st_uid == other);
  CHECK(found.st_gid == other);
  CHECK((found.st_mode & 07777) == 0666);
  CHECK(folder.entries() == 3);
}

TEST_CASE("AtomicFile: a name is followed over forty links and no more", "[atomic_file]") {
  const ScratchFolder folder;
  for (int i = 1; i <= 42; ++i) {
    std::filesystem::create_symlink(i == 1 ? "out" : "link" + std::to_string(i - 1),
                                    folder / ("link" + std::to_string(i)));
  }
  CHECK(kiln::followed(folder / "link40").value() == folder / "out");
  const std::string refused =
      "io: file " + (folder / "link41").string() + ": path contains more than 40 symbolic links";
  CHECK(kiln::followed(folder / "link41").error().text() == refused);
  CHECK(AtomicFile::create(folder / "link41").error().text() == refused);
  CHECK(kiln::check_writable(folder / "link41").text() == refused);
  CHECK(kiln::check_writable(folder / "link40").ok());
  std::filesystem::create_symlink(folder / "out", folder / "absolute");
  CHECK(kiln::followed(folder / "absolute").value() == folder / "out");
  const std::string long_name(300, 'n');
  CHECK(kiln::followed(folder / long_name).error().text() == "io: file " + (folder / long_name).string() +
                                                                 ": cannot resolve " + (folder / long_name).string() +
                                                                 ": File name too long");
}

TEST_CASE("FileNames: gives each file the name that name_of_file() gives it", "[atomic_file]") {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  fs::create_directory(folder / "real");
  fs::create_directory_symlink("real", folder / "linked");
  write_contents(folder / "real/file", "x");
  fs::create_symlink("real/file", folder / "to_file");
  fs::create_symlink("real/missing", folder / "to_missing");
  fs::create_symlink("loop", folder / "loop");
  const fs::path real = fs::canonical(folder / "real");
  kiln::FileNames names;
  CHECK(names.of(folder / "linked/file") == real / "file");
  CHECK(names.of(folder / "to_file") == real / "file");
  CHECK(names.of(folder / "to_missing") == real / "missing");
  CHECK(names.of(folder / "linked/none/new") == real / "none/new");
  for (const char* const name : {"real/file", "linked/file", "to_file", "to_missing", "loop", "linked/new", "real",
                                 "linked/.", "linked/..", "linked/../real/file", "none/new", "real/file/inside", ""}) {
    CAPTURE(name);
    CHECK(names.of(folder / name) == kiln::name_of_file(folder / name));
    CHECK(names.of(folder / name) == kiln::name_of_file(folder / name));  // remembered
  }
  for (const char* const relative : {"file", "./file", "../file", "no/such/file", "."}) {
    CAPTURE(relative);
    CHECK(names.of(relative) == kiln::name_of_file(relative));
  }
}

TEST_CASE("FileNames: a link that changes later is not noticed", "[atomic_file]") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("a", folder / "link");
  kiln::FileNames names;
  const std::filesystem::path before = names.of(folder / "link");
  std::filesystem::remove(folder / "link");
  std::filesystem::create_symlink("b", folder / "link");
  CHECK(names.of(folder / "link") == before);
  CHECK(before.filename() == "a");
}
