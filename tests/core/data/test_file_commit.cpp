// Files that change together: by processes that are killed at every system call, by two at once, and on full disks.
#include "base/os/commit_journal.hpp"
#include "core/data/commit_folders.hpp"
#include "support/syscall_killer.hpp"
#include "support/test_length.hpp"

#include <kiln/stop_scope.hpp>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <optional>

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

namespace {

// Something mounted while this lives, where the test may mount; open files do not keep it.
class Mounted {
 public:
  Mounted(const char* source, fs::path place, const char* type, unsigned long flags, const char* options)
      : place_(std::move(place)),
        worked_(::geteuid() == 0 && ::mount(source, place_.c_str(), type, flags, options) == 0) {}
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  ~Mounted() {
    if (worked_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  explicit operator bool() const { return worked_; }

 private:
  fs::path place_;
  bool worked_;
};

mode_t mode_of(const fs::path& file) {
  struct stat found {};
  return ::lstat(file.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

// Kills a commit of `fresh` over `old` at every system call; afterwards all of it is old or all is new.
void kill_everywhere(const Unit& old, const Unit& fresh, const std::function<bool()>& limits, bool with_state,
                     std::size_t step) {
  std::size_t forward = 0, back = 0;
  if (is_long()) step = 1;
  for (std::size_t call = 1;; call += step) {
    const Folders folders;
    const auto placed = [&](const Unit& unit) {
      Unit all;
      for (const auto& [name, text] : unit) all.emplace_back(folders.root.path() / name, text);
      return all;
    };
    set(placed(old));
    for (const auto& file : placed(old)) REQUIRE(::chmod(file.first.c_str(), 0600) == 0);
    const Unit now = placed(fresh);
    Contents all_old = as_contents(placed(old)), all_new = all_old;
    for (const auto& [path, text] : now) all_new[path.string()] = text;
    const fs::path state = with_state ? folders.state() : fs::path();
    std::vector<std::string> readable;
    KillPoint point;
    point.call = call;
    point.at_each_call = [&](const SystemCall&) {
      for (const fs::path& file : folders.entries()) {
        const bool may_be_new = !all_old.contains(file.string()) && all_new.contains(file.string());
        if (!may_be_new && (mode_of(file) & 077) != 0) readable.push_back(file.string());
      }
    };
    const KilledRun run = run_and_kill(
        [&] {
          if (!limits()) ::_exit(9);
          const auto statuses = commit(state, {now});
          ::_exit(statuses.front().ok() ? 0 : 1);
        },
        point);
    if (!run.is_traced) {
      WARN("skipped: ptrace is not permitted here");
      return;
    }
    if (run.status == 9) {
      WARN("skipped: seccomp is not permitted here");
      return;
    }
    INFO("killed at call " << call);
    CHECK(readable.empty());
    const SettledCommits settled = settle_commits(state, folders.data());
    CHECK(settled.problems.empty());
    const Contents found = folders.contents();
    if (!run.was_killed) CHECK(run.status == 0);
    if (run.was_killed && found == all_old) {
      ++back;
    } else {
      ++forward;
      CHECK(found == all_new);
    }
    CHECK_FALSE(fs::exists(folders.state() / "results.journal"));
    if (!run.was_killed) break;
  }
  CHECK(back > 0);
  CHECK(forward > 0);
}

bool no_limits() { return true; }

}  // namespace

TEST_CASE("commit: a kill at every system call leaves all old or all new", "[unsanitized]") {
  const Unit old{{"a b/x", "old x"}, {"a b/y", "old y"}, {"other/z", "old z"}};
  const Unit fresh{{"a b/x", "new x"}, {"a b/y", "the new y"}, {"other/z", "new z"}};
  const std::size_t some = is_sanitized ? 5 : 3;
  SECTION("three files replaced") { kill_everywhere(old, fresh, no_limits, true, is_sanitized ? some : 1); }
  SECTION("three files made") { kill_everywhere({}, fresh, no_limits, true, some); }
  SECTION("one made between two replaced") { kill_everywhere({old[0], old[2]}, fresh, no_limits, true, some); }
  SECTION("one file replaced") { kill_everywhere({old[0]}, {fresh[0]}, no_limits, true, some); }
  SECTION("the journal beside the data") { kill_everywhere(old, fresh, no_limits, false, some); }
  SECTION("a file system without exchange") { kill_everywhere(old, fresh, refuse_exchange, true, some); }
}

TEST_CASE("commit: without nameless files, a kill leaves temporary files that the next writer removes") {
  const Unit old{{"a b/x", "old x"}, {"a b/y", "old y"}};
  for (std::size_t call = 1;; call += is_long() ? 1 : 3) {
    const Folders folders;
    set({{folders.one("x"), "old x"}, {folders.one("y"), "old y"}});
    const auto write_new = [&](const std::string& word) {
      return [&, word] {
        if (!refuse_nameless_files()) ::_exit(9);
        ::_exit(
            commit(folders.state(), {{{folders.one("x"), word + " x"}, {folders.one("y"), word + " y"}}}).front().ok()
                ? 0
                : 1);
      };
    };
    const KilledRun run = run_and_kill(write_new("new"), {call, {}, {}});
    if (!run.is_traced || run.status == 9) return;
    INFO("killed at call " << call);
    (void)folders.settle();
    const bool is_new = contents_of(folders.one("x")) == "new x";
    CHECK(contents_of(folders.one("x")) == (is_new ? "new x" : "old x"));
    CHECK(contents_of(folders.one("y")) == (is_new ? "new y" : "old y"));
    CHECK(run_and_kill(write_new("newer"), {}).status == 0);
    CHECK(folders.contents() ==
          Contents{{folders.one("x").string(), "newer x"}, {folders.one("y").string(), "newer y"}});
    if (!run.was_killed) break;
  }
}

TEST_CASE("commit: a unit that fails changes nothing, and the others of its group are committed") {
  const Folders folders;
  set({{folders.one("a"), "old"}, {folders.one("b"), "old"}, {folders.one("c"), "old"}});
  std::vector<std::vector<AtomicFile>> units;
  units.push_back(prepared({{folders.one("a"), "new"}, {folders.one("b"), "new"}}));
  units.push_back(prepared({{folders.one("c"), "new"}, {folders.one("d"), "new"}}));
  std::string word;
  std::optional<Mounted> busy;
  SECTION("a hard link appears") {
    fs::create_hard_link(folders.one("b"), folders.two("b"));
    word = "2 hard links";
  }
  SECTION("a folder appears") {
    fs::remove(folders.one("b"));
    fs::create_directories(folders.one("b"));
    word = "is a folder";
  }
  SECTION("its folder disappears") {
    if (::geteuid() != 0) return;
    units[0] = prepared({{folders.one("a"), "new"}, {folders.two("gone/../b"), "new"}});
    REQUIRE(units[0].empty());
    fs::create_directory(folders.two("gone"));
    units[0] = prepared({{folders.one("a"), "new"}, {folders.two("gone/b"), "new"}});
    fs::remove_all(folders.two("gone"));
    word = "gone/b";
  }
  SECTION("the second is a mount point, which no file can replace") {
    busy.emplace(folders.one("b").c_str(), folders.one("b"), nullptr, MS_BIND, nullptr);
    if (!*busy) return;
    word = "busy";
  }
  const auto statuses = commit_files(folders.state(), units);
  busy.reset();
  CHECK_FALSE(statuses[0].ok());
  CHECK_THAT(statuses[0].message, Contains(word));
  CHECK(statuses[1].ok());
  CHECK(contents_of(folders.one("a")) == "old");
  CHECK(contents_of(folders.one("c")) == "new");
  CHECK(contents_of(folders.one("d")) == "new");
  for (const fs::path& file : folders.entries()) CHECK_THAT(file.string(), !Contains(".kiln-"));
  CHECK_FALSE(fs::exists(folders.state() / "results.journal"));
}

TEST_CASE("commit: the folder of the journal is made, with those above it, for this user alone") {
  const Folders folders;
  set({{folders.one("a"), "old"}, {folders.one("b"), "old"}});
  std::vector<std::vector<AtomicFile>> units;
  units.push_back(prepared({{folders.one("a"), "new"}, {folders.one("b"), "new"}}));
  const fs::path above = folders.root / "x";
  const Status status = commit_files(above / "y" / "z", units).front();
  CHECK(status.text() == "ok");
  for (const fs::path& made : {above, above / "y", above / "y" / "z"}) {
    INFO(made);
    REQUIRE(fs::is_directory(made));
    CHECK(mode_of(made) == 0700);
  }
  CHECK(contents_of(folders.one("b")) == "new");
}

TEST_CASE("commit: a mode and content that change while the results are written count") {
  const Folders folders;
  set({{folders.one("a"), "old"}, {folders.one("b"), "old"}});
  auto unit = prepared({{folders.one("a"), "new"}, {folders.one("b"), "new"}, {folders.one("c"), "new"}});
  REQUIRE(unit.size() == 3);
  REQUIRE(::chmod(folders.one("a").c_str(), 0600) == 0);
  write_contents(folders.one("b"), "changed");
  write_contents(folders.one("c"), "made");
  REQUIRE(::chmod(folders.one("c").c_str(), 0640) == 0);
  std::vector<std::vector<AtomicFile>> units;
  units.push_back(std::move(unit));
  REQUIRE(commit_files(folders.state(), units).front().ok());
  CHECK(mode_of(folders.one("a")) == 0600);
  CHECK(mode_of(folders.one("c")) == 0640);
  for (const char* name : {"a", "b", "c"}) CHECK(contents_of(folders.one(name)) == "new");
}

TEST_CASE("commit: two processes at once leave the files of one") {
  const Folders folders;
  constexpr int processes = 4, rounds = 20;
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      bool all = true;
      for (int round = 0; round < rounds; ++round) {
        const std::string text = std::to_string(process) + "." + std::to_string(round);
        // By turns in the other order.
        const bool turned = process % 2 != 0;
        const Unit unit{{turned ? folders.two("y") : folders.one("x"), text},
                        {turned ? folders.one("x") : folders.two("y"), text}};
        all = all && commit(folders.state(), {unit}).front().ok();
      }
      ::_exit(all ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    REQUIRE(::waitpid(child, &state, 0) == child);
    CHECK(WEXITSTATUS(state) == 0);
  }
  CHECK(contents_of(folders.one("x")) == contents_of(folders.two("y")));
  CHECK(folders.entries().size() == 2);
}

// What another process makes after the check is replaced, as it would be if it had been there before.
TEST_CASE("commit: a file that another process makes meanwhile is replaced, in units of one and of several files") {
  const auto commit_beside = [](const Unit& unit, const fs::path& made_meanwhile, const std::function<bool()>& limits,
                                const fs::path& state) {
    bool made = false;
    KillPoint point;
    point.counts_from = opens_nameless_file;
    point.at_each_call = [&](const SystemCall& call) {
      if (made || call.number != SYS_linkat) return;
      made = true;
      write_contents(made_meanwhile, "another's");
    };
    const KilledRun run = run_and_kill(
        [&] {
          if (!limits()) _exit(3);
          const Status status = commit(state, {unit}).front();
          _exit(status.ok() ? 0 : 1);
        },
        point);
    if (run.is_traced) CHECK((run.status == 3 || made));
    return run;
  };
  const auto none = [] { return true; };
  for (const auto& limits : {std::function<bool()>(none), std::function<bool()>(refuse_nameless_files)}) {
    for (const bool with_state : {true, false}) {
      for (const std::size_t files : {1, 2, 3}) {
        for (std::size_t which = 0; which < files; ++which) {
          CAPTURE(with_state, files, which);
          const Folders folders;
          Unit unit;
          for (std::size_t i = 0; i < files; ++i) unit.emplace_back(folders.one("f" + std::to_string(i)), "mine");
          const KilledRun run =
              commit_beside(unit, unit[which].first, limits, with_state ? folders.state() : fs::path());
          if (!run.is_traced || run.status == 3) {
            WARN("skipped: ptrace or a filter of system calls is not permitted here");
            return;
          }
          CHECK(run.status == 0);
          CHECK(folders.contents() == as_contents(unit));
          CHECK(folders.settle().problems.empty());
        }
      }
    }
  }
}

TEST_CASE("commit: eight processes at once make the same new file, and none fails") {
  for (int round = 0; round < (is_long() ? 200 : 20); ++round) {
    const Folders folders;
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    std::vector<pid_t> children;
    for (int child = 0; child < 8; ++child) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      std::vector<std::vector<AtomicFile>> units;
      units.push_back(prepared({{folders.one("out"), "text " + std::to_string(child)}}));
      char byte = 0;
      close(ready[1]);
      (void)!read(ready[0], &byte, 1);  // the end of the pipe: all at once
      _exit(units[0].size() == 1 && commit_files(folders.state(), units).front().ok() ? 0 : 1);
    }
    close(ready[0]), close(ready[1]);
    for (const pid_t child : children) {
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    CHECK(folders.entries().size() == 1);
    CHECK(contents_of(folders.one("out")).starts_with("text "));
  }
}

TEST_CASE("commit: a stop ends the wait for a process that commits, and its number is told") {
  const Folders folders;
  set({{folders.one("a"), "old"}});
  fs::create_directory(folders.state());
  fs::permissions(folders.state(), fs::perms::owner_all);
  int held[2];
  REQUIRE(pipe(held) == 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const auto journal = CommitJournal::open(folders.state() / "results.journal", CommitJournal::Missing::create);
    (void)!write(held[1], journal ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = 0;
  REQUIRE(read(held[0], &answer, 1) == 1);
  REQUIRE(answer == 'y');
  const std::atomic<bool> stop{true};
  const auto begun = std::chrono::steady_clock::now();
  {
    const StopScope scope(&stop);
    for (const Unit& unit :
         {Unit{{folders.one("a"), "new"}}, Unit{{folders.one("b"), "new"}, {folders.one("c"), ""}}}) {
      const Status status = commit(folders.state(), {unit}).front();
      CHECK(status.code == StatusCode::cancelled);
      CHECK_THAT(status.message, Contains("results.journal") && Contains("process " + std::to_string(holder) + " ("));
    }
    CHECK_THAT(settle_commits(folders.state(), {}).problems.at(0), Contains("process " + std::to_string(holder)));
  }
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
  CHECK(folders.contents() == as_contents({{folders.one("a"), "old"}}));
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  CHECK(commit(folders.state(), {{{folders.one("a"), "new"}}}).front().ok());
}

// A journal that is not on the disk before the first name could leave a crashed machine with new files beside old ones.
TEST_CASE("commit: contents and journal are flushed once, before the first rename", "[unsanitized]") {
  struct Case {
    std::vector<std::size_t> units;  // their numbers of files
    std::size_t files = 0, file_systems = 0;
  };
  // A file system is flushed as a whole where that is one call instead of more than two.
  const std::vector<Case> cases{{{1}, 1, 0},       {{2}, 0, 1},    {{3}, 0, 1},   {{1, 1}, 2, 0},
                                {{1, 1, 1}, 0, 1}, {{2, 1}, 0, 1}, {{1, 2}, 0, 1}};
  for (const Case& one : cases) {
    for (const bool replaced : {false, true}) {
      CAPTURE(one.units, replaced);
      const Folders folders;
      std::vector<Unit> units;
      Contents expected;
      for (const std::size_t files : one.units) {
        Unit& unit = units.emplace_back();
        for (std::size_t i = 0; i < files; ++i) {
          const fs::path file = folders.one(std::to_string(units.size()) + "." + std::to_string(i));
          if (replaced) write_contents(file, "old");
          unit.emplace_back(file, "new");
          expected[file.string()] = "new";
        }
      }
      std::size_t flushed_files = 0, flushed_file_systems = 0, flushed_late = 0;
      bool is_named = false;
      KillPoint point;
      point.counts_from = opens_nameless_file;
      point.at_each_call = [&](const SystemCall& call) {
        if (call.number == SYS_linkat || call.number == SYS_renameat || call.number == SYS_renameat2) is_named = true;
        const bool is_file = call.number == SYS_fsync, is_file_system = call.number == SYS_syncfs;
        flushed_files += is_file ? 1 : 0;
        flushed_file_systems += is_file_system ? 1 : 0;
        flushed_late += is_named && (is_file || is_file_system) ? 1 : 0;
      };
      const KilledRun run = run_and_kill(
          [&] {
            bool all = true;
            for (const Status& status : commit(folders.state(), units)) all = all && status.ok();
            ::_exit(all ? 0 : 1);
          },
          point);
      if (!run.is_traced) {
        WARN("skipped: ptrace is not permitted here");
        return;
      }
      REQUIRE(run.status == 0);
      CHECK(is_named);
      CHECK(flushed_files == one.files);
      CHECK(flushed_file_systems == one.file_systems);
      CHECK(flushed_late == 0);
      CHECK(folders.contents() == expected);
    }
  }
}

TEST_CASE("commit: a full disk fails the unit and leaves the old files") {
  const Folders folders;
  set({{folders.one("a"), "old"}, {folders.two("b"), "old"}});
  SECTION("a limit on the size of files, below the journal's") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{16, 16};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
      const auto statuses = commit(folders.state(), {{{folders.one("a"), "new"}, {folders.two("b"), "new"}}});
      const bool named = statuses.front().message.find("results.journal") != std::string::npos;
      ::_exit(statuses.front().code == StatusCode::io && named ? 0 : 3);
    }
    int state = 0;
    REQUIRE(::waitpid(child, &state, 0) == child);
    CHECK(WEXITSTATUS(state) == 0);
  }
  SECTION("a small file system") {
    const Mounted small("none", folders.root / "other", "tmpfs", 0, "size=64k");
    if (!small) return;
    set({{folders.two("b"), "old"}});
    auto second = AtomicFile::create(folders.two("b"));
    REQUIRE(second);
    CHECK(second->write(bytes_of(std::string(100'000, 'x'))).code == StatusCode::io);
    second = AtomicFile::create(folders.two("b"));
    REQUIRE(second);
    // On two file systems, and through a link from one to the other.
    fs::create_symlink(folders.two("b"), folders.one("link"));
    CHECK(commit(folders.state(), {{{folders.one("a"), "new"}, {folders.one("link"), "new"}}}).front().ok());
    CHECK(contents_of(folders.one("a")) == "new");
    CHECK(contents_of(folders.two("b")) == "new");
    CHECK(fs::is_symlink(folders.one("link")));
    return;
  }
  CHECK(contents_of(folders.one("a")) == "old");
  CHECK(contents_of(folders.two("b")) == "old");
}
