// TakenCore: a process that does nothing but keep one core busy, for as long as the object lives; and the cores that
// there are to take.
//
// Thread-safety: the constructor sets the calling thread's affinity and restores it. Ownership: ends its process.
// Throws std::runtime_error where the core cannot be taken.
#pragma once

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::support {

inline std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

class TakenCore {
 public:
  explicit TakenCore(int core) {
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_getaffinity(0, sizeof before, &before) != 0 || sched_setaffinity(0, sizeof one, &one) != 0) {
      throw std::runtime_error("core " + std::to_string(core) + " cannot be taken: this process may not run on it");
    }
    std::string shell = "sh", option = "-c", loop = "while :; do :; done";
    char* const words[] = {shell.data(), option.data(), loop.data(), nullptr};
    const int failed =
        posix_spawnp(&pid_, "sh", nullptr, nullptr, words, environ);  // a child has its parent's affinity
    sched_setaffinity(0, sizeof before, &before);
    if (failed != 0)
      throw std::runtime_error("core " + std::to_string(core) + " cannot be taken: no shell was started");
  }
  TakenCore(const TakenCore&) = delete;
  TakenCore& operator=(const TakenCore&) = delete;
  ~TakenCore() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace kiln::support
