// Descriptors: the file descriptors that stand for sync objects and for fences outside of the device's own handles.
// Each is one end of a socket pair whose other end is kept here: a poll shows a reached fence, and when the last copy
// of a descriptor is closed, the entry goes.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: owns the kept ends; shares what they stand for.
#pragma once

#include <map>
#include <optional>
#include <variant>

#include "simulator/kernel/base/inode.hpp"
#include "simulator/kernel/sync/sync_object.hpp"

namespace kiln::simulator::kernel {

struct SocketPair {
  UniqueFd given;  // goes to the program
  UniqueFd kept;
};

// Nothing where the process may open no more files.
std::optional<SocketPair> socket_pair(int flags);
bool other_end_closed(int kept) noexcept;

class Descriptors {
 public:
  explicit Descriptors(FenceBoard& board) : board_(board) {}

  // The descriptor, which is the caller's; nothing where the process may open no more.
  std::optional<UniqueFd> export_object(const SyncObjectPtr& object);
  std::optional<UniqueFd> export_fences(Fences fences);

  SyncObjectPtr object_behind(int fd) const;  // null: it stands for none
  std::optional<Fences> fences_behind(int fd) const;

 private:
  struct Entry {
    std::shared_ptr<UniqueFd> kept;
    std::variant<SyncObjectPtr, Fences> meaning;
  };

  std::optional<UniqueFd> add(std::variant<SyncObjectPtr, Fences> meaning);
  const Entry* find(int fd) const;

  FenceBoard& board_;
  std::map<Inode, Entry> entries_;
};

}  // namespace kiln::simulator::kernel
