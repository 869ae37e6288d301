#include "simulator/shim/device_tree.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

}  // namespace kiln::simulator::shim
