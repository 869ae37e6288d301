#include "simulator/shim/simulation.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "simulator/kernel/engine.hpp"

namespace kiln::simulator::shim {
namespace {

std::atomic<Simulation*>& opened() {
  static std::atomic<Simulation*> simulation{nullptr};
  return simulation;
}

// Every buffer is a file; those of a real device take no descriptors from the program.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 1 << 20));
  ::setrlimit(RLIMIT_NOFILE, &limit);  // with the old limit there is room for fewer buffers
}

}  // namespace

Simulation& Simulation::of_process() {
  static Simulation* const simulation = new Simulation;  // never freed: see the header
  return *simulation;
}

Simulation* Simulation::with_open_files() noexcept { return opened().load(std::memory_order_acquire); }

Simulation::Simulation() : process_(::getpid()) {
  if (!kernel::read_settings([](const char* name) { return std::getenv(name); }, settings_, problem_)) {
    kernel::Journal(settings_.log_path).write(problem_);
    settings_.target = &kernel::targets().front();  // the node is there, and refuses to be opened
  }
  tree_ = DeviceTree::create(*settings_.target);
  if (!tree_) return;
  std::atexit([] { of_process().remove_tree(); });
}

void Simulation::remove_tree() const {
  if (::getpid() == process_) tree_->remove();  // a fork of the process leaves it to the process
}

std::optional<std::string> Simulation::redirect(std::string_view path) {
  if (tree_) return tree_->in_tree(path);
  errno = EIO;
  return std::nullopt;
}

std::optional<std::string> Simulation::outside(std::string_view path) const {
  return tree_ ? tree_->outside(path) : std::nullopt;
}

void Simulation::make_device() {
  if (device_ != nullptr) return;
  allow_many_files();
  ComputeLimits limits;
  limits.watchdog = settings_.watchdog;
  limits.schedule_seed = settings_.schedule_seed;
  limits.check_hazards = settings_.check;
  device_ =
      std::make_shared<kernel::Device>(settings_, std::make_unique<kernel::ProcessorEngine>(*settings_.target, limits));
}

int Simulation::open_node(int flags) {
  if (!problem_.empty()) {
    errno = EINVAL;
    return -1;
  }
  auto pair = kernel::socket_pair((flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0);
  if (!pair || ::fcntl(pair->kept.get(), F_SETFD, FD_CLOEXEC) != 0) return -1;
  const auto inode = kernel::inode_of(pair->given.get());
  if (!inode) return -1;
  std::vector<OpenFile> forgotten;  // dies after the lock
  const std::scoped_lock lock(mutex_);
  make_device();
  for (auto at = files_.begin(); at != files_.end();) {
    const bool closed = kernel::other_end_closed(at->second.kept.get());
    if (closed) forgotten.push_back(std::move(at->second));
    at = closed ? files_.erase(at) : std::next(at);
  }
  files_[*inode] = {std::move(pair->kept), std::make_shared<kernel::DeviceFile>(device_)};
  opened().store(this, std::memory_order_release);
  return pair->given.release();
}

std::shared_ptr<kernel::DeviceFile> Simulation::file_behind(int fd) {
  const auto inode = kernel::inode_of(fd);
  if (!inode) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto at = files_.find(*inode);
  return at == files_.end() ? nullptr : at->second.file;
}

bool Simulation::is_node(const kernel::Inode& inode) {
  const std::scoped_lock lock(mutex_);
  return files_.contains(inode);
}

}  // namespace kiln::simulator::shim
