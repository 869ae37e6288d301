#include "simulator/shim/tree_claim.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace kiln::simulator::shim {
namespace {

namespace fs = std::filesystem;

bool is_abandoned(const fs::path& root) {
  struct stat facts {};
  if (::lstat(root.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) return false;
  const kernel::UniqueFd lock(::open((root / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

kernel::UniqueFd claim_tree(const std::string& root) {
  // Under its name only once it is locked: others may look at any time.
  const std::string name = root + "/lock";
  kernel::UniqueFd lock(::open((name + ".new").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0 || std::rename((name + ".new").c_str(), name.c_str()) != 0) return {};
  return lock;
}

void remove_abandoned_trees(const std::string& folder, const std::string& prefix) noexcept {
  try {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const bool named = at->path().filename().string().starts_with(prefix);
      std::error_code ignored;  // another process may be removing it too
      if (named && is_abandoned(at->path())) fs::remove_all(at->path(), ignored);
    }
  } catch (const std::exception&) {
    return;  // no memory: the next process tidies up
  }
}

}  // namespace kiln::simulator::shim
