// Journals that are damaged after the process that wrote them was killed: read from the other copy, or refused by name.
#include "core/data/commit_folders.hpp"
#include "support/syscall_killer.hpp"
#include "support/test_length.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

namespace {

// A commit of three outputs, two replaced and one new, that was killed before a system call. Names by their place.
class KilledCommit {
 public:
  explicit KilledCommit(std::size_t call, bool with_state = true) : with_state_(with_state) {
    set({{folders.one("x"), "old x"}, {folders.two("z"), "old z"}});
    KillPoint point;
    point.call = call;
    run = run_and_kill([&] { ::_exit(commit(state(), {fresh()}).front().ok() ? 0 : 1); }, point);
  }
  // The one that was killed after the first output had taken its name.
  static std::size_t halfway() {
    std::size_t call = 0, exchanges = 0;
    KillPoint point;
    const Folders whole;
    set({{whole.one("x"), "old x"}, {whole.two("z"), "old z"}});
    point.at_each_call = [&](const SystemCall& each) {
      exchanges += each.number == SYS_renameat2 ? 1 : 0;
      call += exchanges < 2 ? 1 : 0;
    };
    const Unit unit{{whole.one("x"), "new x"}, {whole.one("y"), "new y"}, {whole.two("z"), "new z"}};
    (void)run_and_kill([&] { ::_exit(commit(whole.state(), {unit}).front().ok() ? 0 : 1); }, point);
    return call;
  }

  fs::path state() const { return with_state_ ? folders.state() : fs::path(); }
  fs::path journal() const {
    if (with_state_) return folders.state() / "results.journal";
    return folders.one(".kiln-" + std::to_string(::geteuid()) + ".journal");
  }
  Unit fresh() const { return {{folders.one("x"), "new x"}, {folders.one("y"), "new y"}, {folders.two("z"), "new z"}}; }
  Contents old() const { return as_contents({{folders.one("x"), "old x"}, {folders.two("z"), "old z"}}); }
  // All but the journal, which may be a FIFO.
  Contents contents() const {
    Contents found;
    for (const fs::path& file : folders.entries()) {
      if (file != journal()) found[file.string()] = contents_of(file);
    }
    return found;
  }
  bool is_whole() const { return contents() == old() || contents() == as_contents(fresh()); }
  // Outputs whose other version is in a temporary file beside them.
  std::vector<std::string> replaced() const {
    std::vector<std::string> names;
    for (const auto& [file, text] : contents()) {
      if (file.ends_with(".tmp")) names.push_back(text.substr(4));
    }
    for (std::string& name : names) name = (name == "z" ? folders.two(name) : folders.one(name)).string();
    return names;
  }

  Folders folders;
  KilledRun run;

 private:
  bool with_state_;
};

struct Damage {
  std::string name;
  std::function<void(const fs::path& journal)> apply;
  bool is_undone = false;  // the journal can still be read
  bool lists_all = false;  // the journal still lists all outputs
};

void flip(const fs::path& file, std::size_t byte, int bit = 0) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(byte));
  const int held = stream.get();
  stream.seekp(static_cast<std::streamoff>(byte));
  stream.put(static_cast<char>(held ^ (1 << bit)));
}

void replace_text(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = contents_of(file);
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  write_contents(file, text);
}

void put_elsewhere(const fs::path& journal, const fs::path& place) { fs::rename(journal, place); }

std::vector<Damage> damages(const fs::path& elsewhere, const fs::path& other_journal) {
  const auto part = [](std::size_t quarters) {
    return [quarters](const fs::path& journal) { fs::resize_file(journal, fs::file_size(journal) * quarters / 4); };
  };
  std::vector<Damage> all{
      {"flip the first byte", [](const fs::path& journal) { flip(journal, 0); }, true},
      {"flip the last byte", [](const fs::path& journal) { flip(journal, fs::file_size(journal) - 1); }, true},
      {"other times", [](const fs::path& journal) { replace_text(journal, "unit ", "unit 1"); }, false, true},
      {"another version", [](const fs::path& journal) { replace_text(journal, "results ", "results 7"); }, false, true},
      {"cut to one byte", [](const fs::path& journal) { fs::resize_file(journal, 1); }},
      {"cut to a quarter", part(1)},
      {"cut to three quarters", part(3), true},
      {"emptied", part(0)},
      {"zeros", [](const fs::path& journal) { write_contents(journal, std::string(fs::file_size(journal), '\0')); }},
      {"another folder's", [=](const fs::path& journal) { fs::rename(other_journal, journal); }},
      {"a second name", [=](const fs::path& journal) { fs::create_hard_link(journal, elsewhere); }, false, true},
      {"a mode for others", [](const fs::path& journal) { fs::permissions(journal, fs::perms(0644)); }, false, true},
      {"a folder",
       [=](const fs::path& journal) {
         put_elsewhere(journal, elsewhere);
         fs::create_directory(journal);
       }},
      {"a FIFO",
       [=](const fs::path& journal) {
         put_elsewhere(journal, elsewhere);
         REQUIRE(::mkfifo(journal.c_str(), 0600) == 0);
       }},
      {"a symbolic link",
       [=](const fs::path& journal) {
         put_elsewhere(journal, elsewhere);
         fs::create_symlink(elsewhere, journal);
       }},
      {"a link to nothing",
       [=](const fs::path& journal) {
         put_elsewhere(journal, elsewhere);
         fs::create_symlink("/nothing", journal);
       }},
  };
  if (::geteuid() == 0) {
    all.push_back({"another user's",
                   [](const fs::path& journal) { REQUIRE(::chown(journal.c_str(), 65534, 65534) == 0); }, false, true});
  } else {
    all.push_back({"not readable", [](const fs::path& journal) { fs::permissions(journal, fs::perms(0)); }});
  }
  return all;
}

// All old or all new; else an error that names the journal and the outputs, and no new output.
void check_after(const KilledCommit& killed, const Damage& damage) {
  const Contents left = killed.contents();
  const SettledCommits settled = settle_commits(killed.state(), killed.folders.data());
  if (settled.problems.empty()) {
    REQUIRE(killed.is_whole());
    REQUIRE(commit(killed.state(), {killed.fresh()}).front().ok());
    REQUIRE(killed.contents() == as_contents(killed.fresh()));
    return;
  }
  REQUIRE_FALSE(damage.is_undone);
  CHECK(killed.contents() == left);
  const Status refused =
      commit(killed.state(), {{{killed.folders.one("x"), "3"}, {killed.folders.two("n"), "3"}}}).front();
  CHECK(refused.code == StatusCode::corrupt);
  if (!killed.state().empty()) {
    CHECK(commit(killed.state(), {{{killed.folders.two("z"), "3"}}}).front().code == StatusCode::corrupt);
  }
  CHECK(killed.contents() == left);
  for (const std::string& message : {settled.problems.front(), refused.message}) {
    CHECK_THAT(message, Contains(killed.journal().string()) && Contains("partly new and partly old"));
    for (const std::string& output : killed.replaced()) CHECK_THAT(message, Contains(output));
    if (damage.lists_all) {
      for (const auto& file : killed.fresh()) CHECK_THAT(message, Contains(file.first.string()));
    }
  }
  // What the message says helps.
  fs::remove_all(killed.journal());
  CHECK(commit(killed.state(), {killed.fresh()}).front().ok());
}

}  // namespace

TEST_CASE("commit: a journal that is damaged after a kill is read, or refused by name", "[unsanitized]") {
  const std::size_t halfway = KilledCommit::halfway();
  if (!KilledCommit(halfway).run.is_traced) {
    WARN("skipped: ptrace is not permitted here");
    return;
  }
  const ScratchFolder elsewhere;
  std::size_t damaged = 0;
  for (const bool with_state : {true, false}) {
    bool was_killed = true;
    for (std::size_t call = 1; was_killed; call += is_long() ? 1 : 5) {
      for (std::size_t i = 0; i < damages({}, {}).size(); ++i) {
        const KilledCommit killed(call, with_state);
        was_killed = killed.run.was_killed;
        if (!fs::exists(killed.journal()) || fs::is_empty(killed.journal())) break;  // nothing has its name yet
        fs::remove(elsewhere / "journal");
        std::optional<KilledCommit> other;
        Damage damage = damages(elsewhere / "journal", {})[i];
        if (damage.name == "another folder's") {
          other.emplace(halfway, with_state);
          damage = damages({}, other->journal())[i];
        }
        CAPTURE(with_state, call, damage.name);
        damage.apply(killed.journal());
        check_after(killed, damage);
        ++damaged;
      }
    }
  }
  CHECK(damaged > 100);
}

TEST_CASE("commit: a damaged journal beside the data is refused after the shared one can be used", "[unsanitized]") {
  const std::size_t halfway = KilledCommit::halfway();
  const KilledCommit killed(halfway, false);
  if (!killed.run.is_traced) return;
  REQUIRE(fs::exists(killed.journal()));
  SECTION("damaged") {
    fs::resize_file(killed.journal(), 20);
    const Status refused = commit(killed.folders.state(), {killed.fresh()}).front();
    CHECK(refused.code == StatusCode::corrupt);
    CHECK_THAT(refused.message, Contains(killed.journal().string()) && Contains(killed.folders.one("x").string()));
  }
  SECTION("whole") {
    const fs::path next = killed.folders.one("next"), last = killed.folders.two("last");
    REQUIRE(commit(killed.folders.state(), {{{next, ""}, {last, ""}}}).front().ok());
    CHECK_FALSE(fs::exists(killed.journal()));
    CHECK(contents_of(killed.folders.one("x")) == contents_of(killed.folders.two("z")).replace(4, 1, "x"));
  }
}

TEST_CASE("commit: in a state folder that became read-only, what was settled is not settled again") {
  const KilledCommit killed(KilledCommit::halfway());
  if (!killed.run.is_traced || ::geteuid() == 0) return;
  fs::permissions(killed.folders.state(), fs::perms(0500));
  CHECK(killed.folders.settle().notes.size() == 1);
  CHECK(killed.folders.settle().notes.empty());
  CHECK(killed.is_whole());
  fs::permissions(killed.folders.state(), fs::perms(0700));
}

TEST_CASE("commit: each byte flipped, and each length, of the journal of a killed commit", "[unsanitized]") {
  const std::size_t halfway = KilledCommit::halfway();
  const KilledCommit first(halfway);
  if (!first.run.is_traced) {
    WARN("skipped: ptrace is not permitted here");
    return;
  }
  const std::size_t bytes = fs::file_size(first.journal());
  const std::size_t step = is_long() ? 1 : 29;
  for (std::size_t byte = 0; byte < bytes; byte += step) {
    const KilledCommit killed(halfway);
    CAPTURE(byte);
    flip(killed.journal(), byte, static_cast<int>(byte % 8));
    check_after(killed, {"flip", {}, true});
  }
  for (std::size_t length = 0; length < bytes; length += step) {
    const KilledCommit killed(halfway);
    CAPTURE(length);
    fs::resize_file(killed.journal(), length);
    check_after(killed, {"cut", {}, length >= (bytes + 1) / 2});
  }
}
