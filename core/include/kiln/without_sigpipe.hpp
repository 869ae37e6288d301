// WithoutSigpipe: a scope in which a write of this thread to a closed pipe or socket fails with EPIPE. Without the scope,
// SIGPIPE ends the application.
//
// Thread-safety: create and destroy it on one thread. Ownership: a scope. Errors: none; if signals cannot be blocked, the
// scope has no effect.
//
//   const kiln::WithoutSigpipe quiet;
//   if (std::fputs("a line\n", stdout) < 0 && errno == EPIPE) std::cerr << "the reader is gone\n";
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace [[gnu::visibility("default")]] kiln {

class WithoutSigpipe {
 public:
  WithoutSigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

}  // namespace kiln
