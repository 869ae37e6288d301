// Every system call that storing and finding a program makes fails once, in each of the ways in which disks fail: the
// program is served all the same, nothing half-written stays, and the next process stores what this one could not.
#include "core/cache/faults/with_fault.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <map>
#include <set>

namespace kiln::test {
namespace {

struct Error {
  int number;
  const char* name;
};
constexpr std::array errors{Error{EIO, "EIO"}, Error{ENOSPC, "ENOSPC"}, Error{EACCES, "EACCES"}, Error{EROFS, "EROFS"}};

// What has nothing to do with files. A failure of these is another matter.
const std::set<int> other_calls{SYS_clock_gettime, SYS_clock_nanosleep, SYS_clone,       SYS_exit,   SYS_exit_group,
                                SYS_geteuid,       SYS_getpid,          SYS_gettid,      SYS_getuid, SYS_rt_sigaction,
                                SYS_rt_sigreturn,  SYS_rt_sigprocmask,  SYS_sigaltstack, SYS_tgkill, SYS_getrusage};

// Those that a put or a get cannot do without.
const std::map<int, std::string> known_calls{
    {SYS_openat, "openat"},     {SYS_newfstatat, "newfstatat"}, {SYS_pread64, "pread64"},
    {SYS_write, "write"},       {SYS_pwrite64, "pwrite64"},     {SYS_renameat, "renameat"},
    {SYS_linkat, "linkat"},     {SYS_mkdirat, "mkdirat"},       {SYS_mkdir, "mkdir"},
    {SYS_unlinkat, "unlinkat"}, {SYS_fcntl, "fcntl"},           {SYS_fstatfs, "fstatfs"},
    {SYS_fsync, "fsync"},       {SYS_close, "close"},           {SYS_getrandom, "getrandom"},
    {SYS_flock, "flock"},       {SYS_getdents64, "getdents64"}};

std::string name_of(int call) {
  const auto known = known_calls.find(call);
  return known == known_calls.end() ? "system call " + std::to_string(call) : known->second;
}

struct Situation {
  const char* name;
  // Before the process that meets the fault.
  std::function<void(Workplace&)> prepare;
  // In the short form one call of so many fails: where most of them are those of other situations.
  std::size_t one_of = 1;
};

void store(Workplace& place, const std::string& text) {
  SyntheticDevice device;
  if (!acquire(*place.open(), text, device)) throw std::runtime_error("could not be prepared");
}

const std::array situations{
    Situation{"nothing is there", [](Workplace&) {}},
    Situation{"others are there", [](Workplace& place) { store(place, "two"); }},
    Situation{"it is there", [](Workplace& place) { store(place, "one"); }},
    Situation{"it is there, and damaged",
              [](Workplace& place) {
                store(place, "one");
                const auto file = place.files(".bin").at(0);
                std::filesystem::resize_file(file, 100);
              }},
    Situation{"it is set aside",
              [](Workplace& place) {
                store(place, "one");
                const auto file = place.files(".bin").at(0);
                std::filesystem::rename(file, std::filesystem::path(file).replace_extension(".quarantined"));
              }},
    Situation{"others have to go for it",
              [](Workplace& place) {
                for (const char* text : {"two", "three", "four"}) store(place, text);
                std::uint64_t bytes = 0;
                for (const char* extension : {".bin", ".meta"}) {
                  for (const auto& file : place.files(extension)) bytes += std::filesystem::file_size(file);
                }
                place.config.max_disk = bytes + bytes / 6;  // half of what it takes
              },
              11},
    Situation{"it is set aside until persist()", [](Workplace& place) { place.config.auto_save = false; }, 11},
};

// What is wrong with a process that wants the program.
std::string serve(Workplace& place) {
  SyntheticDevice device;
  const auto cache = place.open();
  const auto got = acquire(*cache, "one", device);
  if (!got) return "was not served: " + got.error().text();
  if (text_of(*got) != "one") return "was served another program";
  if (acquire(*cache, "one", device)->tier != Tier::memory) return "was not kept";
  if (!place.config.auto_save) static_cast<void>(cache->persist());  // what fails stays, for the next process
  return device.false_bytes == 0 ? "" : "the driver was given false bytes";
}

// What is wrong with what it left behind.
std::string aftermath(Workplace& place, int call) {
  if (std::string wrong = serve(place); !wrong.empty()) return "the next process " + wrong;
  SyntheticDevice device;
  const auto tier = acquire(*place.open(), "one", device)->tier;
  const bool set_aside = !place.files(".quarantined").empty();
  if (tier != (set_aside ? Tier::built : Tier::disk)) return "the next process did not store it";
  if (call != SYS_unlinkat && !place.files(".tmp").empty()) return "something half-written is left";
  return {};
}

std::string meet(const Situation& situation, int call, int when, const Error& error) {
  Workplace place;
  situation.prepare(place);
  const FaultEnd end = with_fault({call, when, error.number}, [&] { return serve(place); });
  std::string wrong = end.why_not + end.said;
  if (end.signal != 0) wrong = "was killed by signal " + std::to_string(end.signal);
  if (wrong.empty()) wrong = aftermath(place, call);
  if (wrong.empty()) return {};
  return name_of(call) + " number " + std::to_string(when) + " answers " + error.name + ": " + wrong + "\n";
}

// How often each system call is made.
std::map<int, int> calls_made(const Situation& situation, std::string& wrong) {
  Workplace place;
  situation.prepare(place);
  const FaultEnd end = with_fault({}, [&] { return serve(place); });
  if (!end.why_not.empty()) wrong = "skip: " + end.why_not;
  if (end.signal != 0 || !end.said.empty()) wrong = "without a fault: " + end.said;
  std::map<int, int> made;
  for (const int call : end.calls) ++made[call];
  std::erase_if(made, [](const auto& each) { return other_calls.contains(each.first); });
  return made;
}

std::string meet_all(const Situation& situation, std::set<int>& met) {
  std::string wrong;
  const auto made = calls_made(situation, wrong);
  if (!wrong.empty()) return wrong;
  const std::size_t one_of = situation.one_of * (is_sanitized ? 3 : 1);
  std::size_t met_so_far = 0;
  for (const auto& [call, times] : made) {
    met.insert(call);
    for (int when = 1; when <= times; ++when) {
      // In the short form each call fails in one of the ways, by turns.
      const std::size_t turn = met_so_far++ % errors.size();
      if (!is_long() && (met_so_far - 1) % one_of != 0) continue;
      for (std::size_t error = 0; error < errors.size(); ++error) {
        if (is_long() || error == turn) wrong += meet(situation, call, when, errors[error]);
      }
    }
  }
  return wrong;
}

TEST_CASE("cache::fault_matrix: each system call of a put and of a get fails, as an ordinary user", "[unsanitized]") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    std::set<int> met;
    std::string wrong;
    for (const Situation& situation : situations) {
      std::string here = meet_all(situation, met);
      if (here.starts_with("skip: ")) return here;
      if (!here.empty()) wrong += std::string("where ") + situation.name + ":\n" + here;
    }
    for (const auto& [call, name] : known_calls) {
      if (!met.contains(call)) wrong += name + " was never made\n";
    }
    return wrong;
  });
  if (end.said.starts_with("skip: ")) {
    WARN("skipped: " << end.said.substr(6));
    return;
  }
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

}  // namespace
}  // namespace kiln::test
