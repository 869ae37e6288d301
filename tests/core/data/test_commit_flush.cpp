// Commits whose content cannot be flushed to the disk.
#include "core/data/commit_folders.hpp"
#include "support/syscall_killer.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <system_error>

using namespace kiln;
using namespace kiln::test;

namespace {

// Commits in a child in which each flush fails. "ok", "skipped", or the text of the last unit that failed.
std::string outcome_where_flush_fails(const Folders& folders, const std::vector<Unit>& units, int error) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string text = "skipped";
    if (refuse_flush(error)) {
      text.clear();
      for (const Status& status : commit(folders.state(), units)) {
        if (text.empty() || !status.ok()) text = status.text();
      }
    }
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int state = 0;
  REQUIRE(::waitpid(child, &state, 0) == child);
  return text;
}

}  // namespace

TEST_CASE("commit: what cannot be flushed takes no name, unless its file system has no flush of single files") {
  for (const int error : {EIO, ENOSPC, EINVAL, EROFS}) {
    for (const bool together : {false, true}) {
      CAPTURE(error, together);
      const Folders folders;
      const Unit before{{folders.one("a"), "old a"}, {folders.one("b"), "old b"}};
      const Unit both{{folders.one("a"), "new a"}, {folders.one("b"), "new b"}};
      set(before);
      const std::vector<Unit> units = together ? std::vector<Unit>{both} : std::vector<Unit>{{both[0]}, {both[1]}};
      const std::string outcome = outcome_where_flush_fails(folders, units, error);
      if (outcome == "skipped") {
        WARN("skipped: a filter of system calls is not permitted here");
        return;
      }
      const bool without = !together && (error == EINVAL || error == EROFS);
      CHECK(folders.contents() == as_contents(without ? both : before));
      if (without) {
        CHECK(outcome == "ok");
      } else {
        CHECK_THAT(outcome, Catch::StartsWith("io: file ") &&
                                Catch::EndsWith(": cannot flush: " + std::generic_category().message(error)));
      }
    }
  }
}
