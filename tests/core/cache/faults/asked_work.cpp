#include "core/cache/faults/asked_work.hpp"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

namespace kiln::test {
namespace {

// Outlives the work: the process makes calls until it ends.
struct Answering {
  std::atomic<int> listener{0};  // 0: not known yet
  OnCall on_call;
};

void answer_all(int listener, const OnCall& on_call) {
  for (;;) {
    seccomp_notif asked{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;
      return;
    }
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    on_call(asked.data, answer);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

constexpr unsigned low_half_of(unsigned argument) {
  return static_cast<unsigned>(offsetof(seccomp_data, args)) + argument * static_cast<unsigned>(sizeof(std::uint64_t));
}

}  // namespace

CallFilter::CallFilter() : filter_{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))} {}

void CallFilter::on(long call, unsigned answer) {
  filter_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
  filter_.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
}

CallFilter& CallFilter::ask(long call) {
  on(call, SECCOMP_RET_USER_NOTIF);
  return *this;
}

CallFilter& CallFilter::make(long call) {
  on(call, SECCOMP_RET_ALLOW);
  return *this;
}

CallFilter& CallFilter::ask_where(long call, unsigned argument, unsigned any_of) {
  filter_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4));
  filter_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half_of(argument)));
  filter_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, any_of, 0, 1));
  filter_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  filter_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return *this;
}

int CallFilter::install(OtherCalls others) const {
  std::vector<sock_filter> filter = filter_;
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, others == OtherCalls::asked ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

AskedEnd asked_work(const CallFilter& filter, OtherCalls others, OnCall on_call,
                    const std::function<std::string()>& work) {
  const auto answering = std::make_shared<Answering>();
  answering->on_call = std::move(on_call);
  std::thread([answering] {
    while (answering->listener == 0) std::this_thread::yield();
    answer_all(answering->listener, answering->on_call);
  }).detach();
  const int made = filter.install(others);  // a wake-up would be asked about already, so the other thread spins
  answering->listener = made;
  if (made < 0) return {std::string("seccomp: ") + std::strerror(errno), {}};
  try {
    return {{}, work()};
  } catch (const std::exception& error) {
    return {{}, std::string("threw: ") + error.what()};
  }
}

}  // namespace kiln::test
