#include "simulator/kernel/fence.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

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

std::optional<Fences> SyncObject::find(std::uint64_t point) const {
  if (links_.empty()) return std::nullopt;
  if (point > 0 && links_.back().value < point) return std::nullopt;
  Fences fences;
  for (const Link& link : links_) {
    fences.insert(fences.end(), link.fences.begin(), link.fences.end());
    if (point > 0 && link.value >= point) break;
  }
  return fences;
}

void SyncObject::replace(FencePtr fence) {
  links_.clear();
  if (fence != nullptr) links_.push_back({0, {std::move(fence)}});
}

void SyncObject::replace(Fences fences) {
  links_.clear();
  links_.push_back({0, std::move(fences)});
}

void SyncObject::add_point(std::uint64_t point, Fences fences) {
  forget_reached();
  const std::uint64_t last = links_.empty() ? 0 : links_.back().value;
  links_.push_back({std::max(point, last), std::move(fences)});
}

std::uint64_t SyncObject::reached_point() const noexcept {
  std::uint64_t point = 0;
  for (const Link& link : links_) {
    if (!all_signaled(link.fences)) break;
    point = link.value;
  }
  return is_timeline() ? point : 0;
}

std::uint64_t SyncObject::submitted_point() const noexcept { return links_.empty() ? 0 : links_.back().value; }

void SyncObject::forget_reached() {
  const auto waiting =
      std::find_if(links_.begin(), links_.end(), [](const Link& link) { return !all_signaled(link.fences); });
  if (waiting - links_.begin() > 1) links_.erase(links_.begin(), waiting - 1);
}

std::optional<SocketPair> socket_pair(int flags) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends.data()) != 0) return std::nullopt;
  SocketPair pair;
  pair.given = UniqueFd(ends[0]);
  pair.kept = UniqueFd(ends[1]);
  return pair;
}

bool other_end_closed(int kept) noexcept {
  pollfd asked{kept, 0, 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLHUP | POLLERR)) != 0;
}

std::optional<UniqueFd> Descriptors::export_object(const SyncObjectPtr& object) { return add(object); }

std::optional<UniqueFd> Descriptors::export_fences(Fences fences) { return add(std::move(fences)); }

std::optional<UniqueFd> Descriptors::add(std::variant<SyncObjectPtr, Fences> meaning) {
  std::erase_if(entries_, [](const auto& entry) { return other_end_closed(entry.second.kept->get()); });
  auto pair = socket_pair(SOCK_CLOEXEC);
  if (!pair) return std::nullopt;
  const auto inode = inode_of(pair->given.get());
  if (!inode) return std::nullopt;
  const auto kept = std::make_shared<UniqueFd>(std::move(pair->kept));
  if (const auto* fences = std::get_if<Fences>(&meaning)) board_.announce(*fences, kept);
  entries_[*inode] = {kept, std::move(meaning)};
  return std::move(pair->given);
}

const Descriptors::Entry* Descriptors::find(int fd) const {
  const auto inode = inode_of(fd);
  const auto at = inode ? entries_.find(*inode) : entries_.end();
  return at == entries_.end() ? nullptr : &at->second;
}

SyncObjectPtr Descriptors::object_behind(int fd) const {
  const Entry* entry = find(fd);
  const auto* object = entry == nullptr ? nullptr : std::get_if<SyncObjectPtr>(&entry->meaning);
  return object == nullptr ? nullptr : *object;
}

std::optional<Fences> Descriptors::fences_behind(int fd) const {
  const Entry* entry = find(fd);
  const auto* fences = entry == nullptr ? nullptr : std::get_if<Fences>(&entry->meaning);
  if (fences == nullptr) return std::nullopt;
  return *fences;
}

}  // namespace kiln::simulator::kernel
