#include "simulator/kernel/sync/descriptors.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace kiln::simulator::kernel {

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
