#include "simulator/kernel/sync/fence.hpp"

#include <sys/socket.h>

#include <algorithm>

namespace kiln::simulator::kernel {
namespace {

void wake(const std::weak_ptr<UniqueFd>& end) {
  const char byte = 1;
  // Nobody may be left at the other end; then nobody polls either.
  if (const auto fd = end.lock(); fd != nullptr) ::send(fd->get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

bool all_signaled(const Fences& fences) noexcept {
  return std::all_of(fences.begin(), fences.end(), [](const FencePtr& fence) { return fence->signaled; });
}

void drop_signaled(Fences& fences) {
  std::erase_if(fences, [](const FencePtr& fence) { return fence->signaled; });
}

FencePtr signaled_fence() { return std::make_shared<Fence>(Fence{true, 0}); }

void FenceBoard::signal(Fence& fence, int error) {
  fence.signaled = true;
  fence.error = error;
  std::erase_if(watches_, [](const Watch& watch) {
    if (!all_signaled(watch.fences)) return watch.end.expired();
    wake(watch.end);
    return true;
  });
  changed.notify_all();
}

void FenceBoard::announce(Fences fences, std::shared_ptr<UniqueFd> end) {
  if (all_signaled(fences)) {
    wake(end);
  } else {
    watches_.push_back({std::move(fences), std::move(end)});
  }
}

}  // namespace kiln::simulator::kernel
