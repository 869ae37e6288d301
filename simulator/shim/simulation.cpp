#include "simulator/shim/simulation.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "simulator/kernel/engine.hpp"

namespace kiln::simulator::shim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view slot = "0000:03:00.0";
constexpr std::string_view slot_path = "/sys/devices/pci0000:00/0000:03:00.0";
constexpr std::uint32_t vendor = 0x1002;
constexpr std::array<std::string_view, 5> prefixes = {"/dev/dri", "/sys/dev/char/226:128", "/sys/class/drm",
                                                      "/sys/bus/pci/devices/0000:03:00.0", slot_path};

template <class... Values>
std::string print(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

bool write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  return !file.fail();
}

// The first 64 bytes of the configuration space: identity, class, subsystem.
std::string configuration(const kernel::Target& target) {
  std::string bytes(64, '\0');
  const auto put = [&bytes](std::size_t at, std::uint32_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0x00, vendor, 2);
  put(0x02, target.figures.base.device_id, 2);
  put(0x08, target.figures.base.pci_rev, 1);
  put(0x09, 0x030000, 3);
  put(0x2c, target.subsystem_vendor, 2);
  put(0x2e, target.subsystem_device, 2);
  return bytes;
}

bool write_facts(const fs::path& folder, const kernel::Target& target) {
  const auto& device = target.figures.base;
  const std::string event =
      print("DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\n", vendor,
            device.device_id, target.subsystem_vendor, target.subsystem_device, std::string(slot).c_str());
  return write_file(folder / "vendor", print("0x%04x\n", vendor)) &&
         write_file(folder / "device", print("0x%04x\n", device.device_id)) &&
         write_file(folder / "subsystem_vendor", print("0x%04x\n", target.subsystem_vendor)) &&
         write_file(folder / "subsystem_device", print("0x%04x\n", target.subsystem_device)) &&
         write_file(folder / "revision", print("0x%02x\n", device.pci_rev)) &&
         write_file(folder / "class", "0x030000\n") && write_file(folder / "config", configuration(target)) &&
         write_file(folder / "uevent", event);
}

bool write_node(const fs::path& folder) {
  return write_file(folder / "dev", print("%u:%u\n", node_major, node_minor)) &&
         write_file(folder / "uevent",
                    print("MAJOR=%u\nMINOR=%u\nDEVNAME=dri/renderD128\nDEVTYPE=drm_minor\n", node_major, node_minor));
}

bool build(const fs::path& root, const kernel::Target& target) {
  std::error_code error;
  const auto folder = [&](std::string_view path) {
    return fs::create_directories(root.string() + std::string(path), error);
  };
  const auto link = [&](std::string_view to, std::string_view path) {
    fs::create_symlink(fs::path(to), root.string() + std::string(path), error);
    return !error;
  };
  const std::string device(slot_path);
  const std::string node = device + "/drm/renderD128";
  return folder("/dev/dri") && folder("/sys/dev/char") && folder("/sys/class/drm") && folder("/sys/bus/pci/devices") &&
         folder("/sys/bus/pci/drivers/amdgpu") && folder(node) &&
         write_file(root.string() + std::string(node_path), "") && write_facts(root.string() + device, target) &&
         write_node(root.string() + node) && link("../../../bus/pci", device + "/subsystem") &&
         link("../../../bus/pci/drivers/amdgpu", device + "/driver") &&
         link("../../../0000:03:00.0", node + "/device") && link("../../../../../class/drm", node + "/subsystem") &&
         link("../../devices/pci0000:00/0000:03:00.0/drm/renderD128", "/sys/dev/char/226:128") &&
         link("../../devices/pci0000:00/0000:03:00.0/drm/renderD128", "/sys/class/drm/renderD128") &&
         link("../../../devices/pci0000:00/0000:03:00.0", "/sys/bus/pci/devices/0000:03:00.0");
}

}  // namespace

bool is_simulated_path(std::string_view path) noexcept {
  for (const std::string_view prefix : prefixes) {
    if (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/')) return true;
  }
  return false;
}

std::optional<DeviceTree> DeviceTree::create(const kernel::Target& target) {
  const char* where = std::getenv("TMPDIR");
  const std::string folder = where == nullptr || *where == '\0' ? "/tmp" : where;
  remove_abandoned_trees(folder, "kiln-sim-");
  std::string root = folder + "/kiln-sim-XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) return std::nullopt;
  DeviceTree tree(fs::canonical(root).string(), claim_tree(root));
  if (!tree.claim_ || !build(tree.root_, target)) {
    tree.remove();
    errno = EIO;
    return std::nullopt;
  }
  return tree;
}

std::optional<std::string> DeviceTree::outside(std::string_view path) const {
  if (!path.starts_with(root_) || path.size() == root_.size() || path[root_.size()] != '/') return std::nullopt;
  return std::string(path.substr(root_.size()));
}

void DeviceTree::remove() const noexcept {
  std::error_code ignored;  // at the end of the process there is nobody to tell
  fs::remove_all(root_, ignored);
}

namespace {

namespace fs = std::filesystem;

bool is_abandoned(const fs::path& root) {
  struct stat facts {};
  if (::lstat(root.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) return false;
  const kernel::UniqueFd lock(::open((root / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

kernel::UniqueFd claim_tree(const std::string& root) {
  // Under its name only once it is locked: others may look at any time.
  const std::string name = root + "/lock";
  kernel::UniqueFd lock(::open((name + ".new").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0 || std::rename((name + ".new").c_str(), name.c_str()) != 0) return {};
  return lock;
}

void remove_abandoned_trees(const std::string& folder, const std::string& prefix) noexcept {
  try {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const bool named = at->path().filename().string().starts_with(prefix);
      std::error_code ignored;  // another process may be removing it too
      if (named && is_abandoned(at->path())) fs::remove_all(at->path(), ignored);
    }
  } catch (const std::exception&) {
    return;  // no memory: the next process tidies up
  }
}

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
