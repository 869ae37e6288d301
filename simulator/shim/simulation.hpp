// A simulated card for a process: the files that it sees, and the card behind them.
//
// The tree of files that shows the simulated device to programs, and the lock that says whose tree it is.
#pragma once

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/kernel/device_file.hpp"
#include "simulator/kernel/file_descriptor.hpp"
#include "simulator/kernel/target.hpp"

#include <dlfcn.h>

namespace kiln::simulator::shim {

// DeviceTree: the files that tell programs of the simulated device where the system would: its node and its PCI facts,
// in a folder of their own, with the links between them as in a real system.
//
// Thread-safety: made once; the rest never changes. Ownership: owns the folder; remove() takes it away, and where a
// process ended without it, the next one does.

constexpr unsigned node_major = 226;
constexpr unsigned node_minor = 128;
constexpr std::string_view node_path = "/dev/dri/renderD128";

// Whether the tree replaces this path. All other paths are those of the system.
bool is_simulated_path(std::string_view path) noexcept;

class DeviceTree {
 public:
  // Nothing, with errno, where the folder cannot be written.
  static std::optional<DeviceTree> create(const kernel::Target& target);

  std::string in_tree(std::string_view path) const { return root_ + std::string(path); }
  // The path as the program knows it, of one in the tree; nothing for others.
  std::optional<std::string> outside(std::string_view path) const;
  void remove() const noexcept;

 private:
  DeviceTree(std::string root, kernel::UniqueFd claim) : root_(std::move(root)), claim_(std::move(claim)) {}

  std::string root_;
  kernel::UniqueFd claim_;  // what others tell a living process's tree by
};

// Who a tree of files belongs to: a process holds a lock on a file in its tree while it lives, however it ends. Trees
// whose lock is free are left over.
//
// Thread-safety: any thread. Ownership: a claim is the caller's.

// Empty, with errno, where the file cannot be made.
kernel::UniqueFd claim_tree(const std::string& root);
// Removes the left-over trees of this user in `folder`, whose names begin with `prefix`.
void remove_abandoned_trees(const std::string& folder, const std::string& prefix) noexcept;

// The simulation of a process, and the C library's own functions that the shim stands in front of.

// Simulation: the one simulated device of a process, its tree of files, and the descriptors that programs opened its
// node under. It is the state that a kernel would hold, so it lives as long as the process does.
//
// Thread-safety: any thread. Ownership: never destroyed: threads of drivers run on while a process ends; the tree is
// removed then. A fork has no device: its copy of the process has none of the threads; what it executes starts anew.

class Simulation {
 public:
  // Made at the first call.
  static Simulation& of_process();
  // Null before a node was opened: then no descriptor can be the simulation's.
  static Simulation* with_open_files() noexcept;

  // The path in the tree; nothing, with errno, where there is no tree.
  std::optional<std::string> redirect(std::string_view path);
  std::optional<std::string> outside(std::string_view path) const;

  int open_node(int flags);                                 // a descriptor, or -1 and errno
  std::shared_ptr<kernel::DeviceFile> file_behind(int fd);  // null: it is none of the node
  bool is_node(const kernel::Inode& inode);
  kernel::Device* device() noexcept { return device_.get(); }

 private:
  struct OpenFile {
    kernel::UniqueFd kept;  // the other end: hung up once every copy of the program's is closed
    std::shared_ptr<kernel::DeviceFile> file;
  };

  Simulation();
  void make_device();
  void remove_tree() const;

  kernel::Settings settings_;
  std::string problem_;  // with the settings; empty: none
  std::optional<DeviceTree> tree_;
  std::shared_ptr<kernel::Device> device_;
  // Never held while something is called that might come back here: what looks at descriptors does.
  std::mutex mutex_;
  std::map<kernel::Inode, OpenFile> files_;
  int process_;
};

// The C library's own functions behind those that this library takes the place of.
//
// Thread-safety: any thread. Ownership: none.

// The next definition after this library's. A C library without it is none that this library was built for.
template <class Function>
Function* next(const char* name) noexcept {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

// The same, looked up once, for a constant-initialised static: no guard stands before it, as a sanitizer's runtime,
// which counts guards, maps memory before it can.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) noexcept : name_(name) {}

  Function* get() noexcept {
    Function* known = found_.load(std::memory_order_relaxed);
    if (known == nullptr) found_.store(known = next<Function>(name_), std::memory_order_relaxed);
    return known;
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

}  // namespace kiln::simulator::shim
