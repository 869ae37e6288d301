// Simulation: the one simulated device of a process, its tree of files, and the descriptors that programs opened its
// node under. It is the state that a kernel would hold, so it lives as long as the process does.
//
// Thread-safety: any thread. Ownership: never destroyed: threads of drivers run on while a process ends; the tree is
// removed then. A fork has no device: its copy of the process has none of the threads; what it executes starts anew.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "simulator/kernel/device_file.hpp"
#include "simulator/shim/device_tree.hpp"

namespace kiln::simulator::shim {

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

}  // namespace kiln::simulator::shim
