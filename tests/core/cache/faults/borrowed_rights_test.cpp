// A process with rights that its user has not keeps programs in memory only. It takes one to see it: this test's own
// file, copied and made setuid, runs the hidden case as an ordinary user.
#include "base/os/process_limits.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace kiln::test {
namespace {

// What the process with borrowed rights says of itself.
TEST_CASE("cache::borrowed_rights: the process itself", "[.borrowed]") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  REQUIRE(acquire(*cache, "one", device));
  const bool in_memory = acquire(*cache, "one", device)->tier == Tier::memory;
  const bool on_disk = std::filesystem::exists(place.config.directory);
  std::printf("borrowed %d memory %d disk %d said %d\n", has_borrowed_rights(), in_memory, on_disk,
              place.log.said("this process has more privileges than its user"));
}

std::string output_of(const std::filesystem::path& program) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl(program.c_str(), program.c_str(), "cache::borrowed_rights: the process itself", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char buffer[1024];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return status == 0 ? output : output + " ended with status " + std::to_string(status);
}

TEST_CASE("cache::borrowed_rights: no disk tier, said once; otherwise as usual") {
  CHECK_FALSE(has_borrowed_rights());
  if (geteuid() != 0) {
    WARN("skipped: only root can lend its rights");
    return;
  }
  const CacheTestFolder folder;
  const auto program = folder.path() / "program";
  std::filesystem::copy_file("/proc/self/exe", program);
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  const ChildEnd end = in_unprivileged_child([&] { return output_of(program); });
  if (end.said.find("borrowed 0") != std::string::npos) {
    WARN("skipped: files there are not setuid");
    return;
  }
  CAPTURE(end.said);
  CHECK(end.said.find("borrowed 1 memory 1 disk 0 said 1\n") != std::string::npos);
}

}  // namespace
}  // namespace kiln::test
