#include "support/in_child.hpp"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <stdexcept>

namespace kiln::test {
namespace {

constexpr uid_t nobody = 65534;

std::string answer_of(const std::function<std::string()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

}  // namespace

Child::Child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("no child process");
  if (pid_ == 0) {
    close(ends[0]);
    const std::string said = answer_of(work);
    const bool told = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(told ? 0 : 1);  // not exit(): the parent's test framework is no business of the child's
  }
  close(ends[1]);
  said_ = ends[0];
}

void Child::kill(int signal) { ::kill(pid_, signal); }

bool Child::is_stopped() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

ChildEnd Child::wait() {
  ChildEnd end;
  char buffer[4096];
  for (ssize_t got; (got = read(said_, buffer, sizeof buffer)) > 0;)
    end.said.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && end.said.empty()) end.said = "the child ended with an error";
  return end;
}

Child::~Child() {
  close(said_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

ChildEnd in_unprivileged_child(const std::function<std::string()>& work) {
  return in_child([&]() -> std::string {
    if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setresgid(nobody, nobody, nobody) != 0 ||
                           setresuid(nobody, nobody, nobody) != 0)) {
      return "cannot become an ordinary user";
    }
    return work();
  });
}

}  // namespace kiln::test
