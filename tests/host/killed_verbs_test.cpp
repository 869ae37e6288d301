// Every verb, killed at its system calls: the next run serves, nothing sound is lost, and nothing is left behind.
#include "host/every_verb.hpp"
#include "host/stored_programs.hpp"
#include "support/syscall_killer.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// In a child.
[[noreturn]] void become(const EveryVerb& place, const EveryVerb::Verb& verb) {
  for (const auto& [name, text] : place.options().environment) setenv(name.c_str(), text.c_str(), 1);
  const int nothing = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) dup2(nothing, stream);
  std::vector<std::string> words = verb.words;
  words.insert(words.begin(), std::string(KILN_BINARY_DIR) + "/bin/kiln");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  _exit(127);
}

// Whether a kill before this call may leave other files than one before the next call.
bool changes_files(const SystemCall& call) {
  const auto is = [&](long number) { return call.number == static_cast<std::uint64_t>(number); };
  if (is(SYS_openat)) return (call.arguments[2] & (O_CREAT | O_TRUNC | O_TMPFILE)) != 0;
  for (const long number :
       {SYS_write,  SYS_pwrite64, SYS_ftruncate, SYS_fallocate, SYS_rename, SYS_renameat, SYS_renameat2,
        SYS_link,   SYS_linkat,   SYS_unlink,    SYS_unlinkat,  SYS_rmdir,  SYS_mkdir,    SYS_mkdirat,
        SYS_fchmod, SYS_symlink,  SYS_fsync,     SYS_fdatasync, SYS_syncfs, SYS_flock}) {
    if (is(number)) return true;
  }
  return false;
}

// What a killed process may leave, and a later one removes in time.
bool is_temporary(const std::string& file) {
  return file.ends_with(".tmp") || file.ends_with(".lock") || file.ends_with(".suspect") ||
         file.starts_with("cache/") || file.starts_with("state/kiln/") || file.starts_with("share/") ||
         file.starts_with("data/layer/");
}

// Each `parts`-th verb, from `part` on.
void kill_verbs(std::size_t part, std::size_t parts) {
  const EveryVerb place;
  std::size_t kills = 0, calls = 0, changing = 0, faults = 0, verbs = 0;
  for (std::size_t v = part; v < place.verbs().size(); v += parts) {
    const EveryVerb::Verb& verb = place.verbs()[v];
    if (verb.is_slow && !is_long()) continue;
    ++verbs;
    place.renew();
    std::vector<std::size_t> points;
    KillPoint counted;
    std::size_t number = 0;
    counted.at_each_call = [&](const SystemCall& call) {
      ++number;
      if (changes_files(call)) points.push_back(number);
    };
    const KilledRun whole = run_and_kill([&] { become(place, verb); }, counted);
    if (!whole.is_traced) {
      WARN("skipped: ptrace is not permitted here");
      return;
    }
    calls += whole.calls;
    changing += points.size();
    // What is killed before any other call leaves the files as they are before the next that changes some.
    const std::size_t wanted = is_long() ? points.size() : is_sanitized ? 1 : 3;
    for (std::size_t i = 0; i < std::min(wanted, points.size()); ++i) {
      const std::size_t point = points[i * points.size() / std::min(wanted, points.size())];
      CAPTURE(verb.name, point);
      place.renew();
      KillPoint at;
      at.call = point;
      (void)run_and_kill([&] { become(place, verb); }, at);
      ++kills;
      const Finished verified = place.kiln({"cache", "verify"});
      const Finished run = place.run();
      INFO(verified.err << verified.out << run.err << run.out);
      const bool is_sound = verified.status == 0, is_right = place.is_right(run);
      CHECK(is_sound);
      CHECK(is_right);
      std::size_t left = 0;
      for (const auto& entry : fs::recursive_directory_iterator(place.live())) {
        const std::string name = entry.path().lexically_relative(place.live()).string();
        const bool is_known = std::ranges::binary_search(place.files(), name) || is_temporary(name);
        if (!entry.is_regular_file() || is_known || !entry.path().filename().string().starts_with(".")) continue;
        CAPTURE(name);
        CHECK(name.empty());
        ++left;
      }
      if (!is_sound || !is_right || left != 0) ++faults;
    }
  }
  CHECK(kills > 0);
  WARN("killed verbs: " << kills << " kills in " << verbs << " verbs at " << changing << " of " << calls
                        << " system calls, " << faults << " faults");
}

}  // namespace

TEST_CASE("killed verbs: the next run can use what is left: 1 of 4", "[host][unsanitized]") { kill_verbs(0, 4); }
TEST_CASE("killed verbs: the next run can use what is left: 2 of 4", "[host][unsanitized]") { kill_verbs(1, 4); }
TEST_CASE("killed verbs: the next run can use what is left: 3 of 4", "[host][unsanitized]") { kill_verbs(2, 4); }
TEST_CASE("killed verbs: the next run can use what is left: 4 of 4", "[host][unsanitized]") { kill_verbs(3, 4); }

TEST_CASE("every verb: those who attack all verbs know each verb that the help names", "[host]") {
  const std::set<std::string> without_files{"simulate", "bench", "bench table"};
  const EveryVerb place;
  std::istringstream help(place.kiln({"--help"}).out);
  std::string line;
  while (std::getline(help, line) && line != "Verbs:") {
  }
  std::size_t count = 0;
  while (std::getline(help, line) && !line.empty()) {
    std::istringstream text(line);
    std::string name;
    for (std::string word; text >> word && std::islower(static_cast<unsigned char>(word[0])) != 0;) {
      name += (name.empty() ? "" : " ") + word;
      if (text.str().find("  ", static_cast<std::size_t>(text.tellg())) == static_cast<std::size_t>(text.tellg()))
        break;
    }
    CAPTURE(line, name);
    const bool known = std::ranges::any_of(place.verbs(), [&](const EveryVerb::Verb& verb) {
      std::string words;
      for (const std::string& word : verb.words) words += word + " ";
      return words.starts_with(name + " ");
    });
    CHECK((known || without_files.contains(name)));
    ++count;
  }
  CHECK(count > 40);
}

}  // namespace kiln::test
