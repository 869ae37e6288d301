// The functions of the C library that the shim stands in front of: by path and by descriptor.
//
// The C library's functions that take a path, with the simulated device's paths led into its tree.
#include <dirent.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "simulator/kernel/device_file.hpp"
#include "simulator/shim/simulation.hpp"

namespace kiln::simulator::shim {
namespace {

// The path that the real function is to be given; lost, with errno, where there is no tree to look in.
class Path {
 public:
  // Out of line: the C library's headers promise that no path is null, and programs break the promise.
  [[gnu::noinline]] explicit Path(const char* path) : path_(path) {
    if (path == nullptr || !is_simulated_path(path)) return;
    is_node_ = path == node_path;
    moved_ = Simulation::of_process().redirect(path);
    path_ = moved_ ? moved_->c_str() : nullptr;
    lost_ = !moved_;
  }

  const char* get() const noexcept { return path_; }
  bool is_node() const noexcept { return is_node_; }
  bool is_lost() const noexcept { return lost_; }

 private:
  const char* path_;
  bool is_node_ = false;
  bool lost_ = false;
  std::optional<std::string> moved_;
};

// The mode is there only where a file may be created.
mode_t mode_of(int flags, va_list arguments) noexcept {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? va_arg(arguments, mode_t) : 0;
}

int open_path(const char* name, const char* path, int flags, mode_t mode) {
  const Path where(path);
  if (where.is_node()) return Simulation::of_process().open_node(flags);
  if (where.is_lost()) return -1;
  const auto real = reinterpret_cast<int (*)(const char*, int, ...)>(next<void()>(name));
  return real(where.get(), flags, mode);
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  const Path where(path);
  if (where.is_node()) return Simulation::of_process().open_node(flags);
  if (where.is_lost()) return -1;
  static const auto real = reinterpret_cast<int (*)(int, const char*, int, ...)>(next<void()>("openat64"));
  return real(folder, where.get(), flags, mode);
}

// A character device instead of the file that stands in the tree.
template <class Stat>
void patch(Stat& facts) noexcept {
  facts.st_mode = S_IFCHR | 0666;
  facts.st_rdev = makedev(node_major, node_minor);
  facts.st_size = 0;
}

template <class Stat>
int stat_path(const char* name, const char* path, Stat* facts) {
  const Path where(path);
  if (where.is_lost()) return -1;
  const int answer = next<int(const char*, Stat*)>(name)(where.get(), facts);
  if (answer == 0 && where.is_node()) patch(*facts);
  return answer;
}

template <class Stat>
int stat_at(const char* name, int folder, const char* path, Stat* facts, int flags) {
  const Path where(path);
  if (where.is_lost()) return -1;
  const int answer = next<int(int, const char*, Stat*, int)>(name)(folder, where.get(), facts, flags);
  if (answer == 0 && where.is_node()) patch(*facts);
  return answer;
}

template <class Stat>
int stat_descriptor(const char* name, int fd, Stat* facts) {
  static auto* const real = next<int(int, Stat*)>(name);  // one name a type
  const int answer = real(fd, facts);
  if (answer != 0 || !S_ISSOCK(facts->st_mode)) return answer;
  Simulation* const simulation = Simulation::with_open_files();
  if (simulation != nullptr && simulation->is_node({facts->st_dev, facts->st_ino})) patch(*facts);
  return answer;
}

FILE* open_stream(const char* name, const char* path, const char* mode) {
  const Path where(path);
  if (where.is_lost()) return nullptr;
  return next<FILE*(const char*, const char*)>(name)(where.get(), mode);
}

template <class Entry>
int scan(const char* name, const char* path, Entry*** list, int (*filter)(const Entry*),
         int (*compare)(const Entry**, const Entry**)) {
  const Path where(path);
  if (where.is_lost()) return -1;
  using Scan = int(const char*, Entry***, int (*)(const Entry*), int (*)(const Entry**, const Entry**));
  return next<Scan>(name)(where.get(), list, filter, compare);
}

}  // namespace
}  // namespace kiln::simulator::shim

using kiln::simulator::shim::next;
using kiln::simulator::shim::Path;
namespace shim = kiln::simulator::shim;

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = shim::mode_of(flags, arguments);
  va_end(arguments);
  return shim::open_path("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = shim::mode_of(flags, arguments);
  va_end(arguments);
  return shim::open_path("open64", path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = shim::mode_of(flags, arguments);
  va_end(arguments);
  return shim::open_at(folder, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = shim::mode_of(flags, arguments);
  va_end(arguments);
  return shim::open_at(folder, path, flags, mode);
}

// What fortified callers call; they never create files.
int __open_2(const char* path, int flags) { return shim::open_path("open64", path, flags, 0); }
int __open64_2(const char* path, int flags) { return shim::open_path("open64", path, flags, 0); }
int __openat_2(int folder, const char* path, int flags) { return shim::open_at(folder, path, flags, 0); }
int __openat64_2(int folder, const char* path, int flags) { return shim::open_at(folder, path, flags, 0); }

FILE* fopen(const char* path, const char* mode) { return shim::open_stream("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return shim::open_stream("fopen64", path, mode); }

DIR* opendir(const char* path) {
  const Path where(path);
  if (where.is_lost()) return nullptr;
  return next<DIR*(const char*)>("opendir")(where.get());
}

int scandir(const char* path, dirent*** list, int (*filter)(const dirent*),
            int (*compare)(const dirent**, const dirent**)) {
  return shim::scan("scandir", path, list, filter, compare);
}

int scandir64(const char* path, dirent64*** list, int (*filter)(const dirent64*),
              int (*compare)(const dirent64**, const dirent64**)) {
  return shim::scan("scandir64", path, list, filter, compare);
}

ssize_t readlink(const char* path, char* text, size_t size) noexcept {
  const Path where(path);
  if (where.is_lost()) return -1;
  return next<ssize_t(const char*, char*, size_t)>("readlink")(where.get(), text, size);
}

ssize_t __readlink_chk(const char* path, char* text, size_t size, size_t room) {
  if (size > room) std::abort();  // as the C library does
  return readlink(path, text, size);
}

ssize_t readlinkat(int folder, const char* path, char* text, size_t size) noexcept {
  const Path where(path);
  if (where.is_lost()) return -1;
  return next<ssize_t(int, const char*, char*, size_t)>("readlinkat")(folder, where.get(), text, size);
}

// What lies in the tree is shown as the program would find it on a real system.
char* realpath(const char* path, char* resolved) noexcept {
  const Path where(path);
  if (where.is_lost()) return nullptr;
  static const auto real =
      reinterpret_cast<char* (*)(const char*, char*)>(::dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3"));
  char* const found = real(where.get(), resolved);
  if (found == nullptr || where.get() == path) return found;
  if (const auto outside = shim::Simulation::of_process().outside(found)) {
    std::copy(outside->begin(), outside->end(), found);  // shorter than what stands there
    found[outside->size()] = '\0';
  }
  return found;
}

char* __realpath_chk(const char* path, char* resolved, size_t room) {
  if (room < PATH_MAX) std::abort();  // as the C library does
  return realpath(path, resolved);
}

int access(const char* path, int mode) noexcept {
  const Path where(path);
  if (where.is_lost()) return -1;
  return next<int(const char*, int)>("access")(where.get(), mode);
}

int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  const Path where(path);
  if (where.is_lost()) return -1;
  return next<int(int, const char*, int, int)>("faccessat")(folder, where.get(), mode, flags);
}

int stat(const char* path, struct stat* facts) noexcept { return shim::stat_path("stat", path, facts); }
int stat64(const char* path, struct stat64* facts) noexcept { return shim::stat_path("stat64", path, facts); }
int lstat(const char* path, struct stat* facts) noexcept { return shim::stat_path("lstat", path, facts); }
int lstat64(const char* path, struct stat64* facts) noexcept { return shim::stat_path("lstat64", path, facts); }
int fstat(int fd, struct stat* facts) noexcept { return shim::stat_descriptor("fstat", fd, facts); }
int fstat64(int fd, struct stat64* facts) noexcept { return shim::stat_descriptor("fstat64", fd, facts); }

int fstatat(int folder, const char* path, struct stat* facts, int flags) noexcept {
  if ((flags & AT_EMPTY_PATH) != 0 && *path == '\0') return fstat(folder, facts);
  return shim::stat_at("fstatat", folder, path, facts, flags);
}

int fstatat64(int folder, const char* path, struct stat64* facts, int flags) noexcept {
  if ((flags & AT_EMPTY_PATH) != 0 && *path == '\0') return fstat64(folder, facts);
  return shim::stat_at("fstatat64", folder, path, facts, flags);
}

// Programs linked with a C library before 2.33 call these.
int __xstat(int, const char* path, struct stat* facts) { return stat(path, facts); }
int __xstat64(int, const char* path, struct stat64* facts) { return stat64(path, facts); }
int __lxstat(int, const char* path, struct stat* facts) { return lstat(path, facts); }
int __lxstat64(int, const char* path, struct stat64* facts) { return lstat64(path, facts); }
int __fxstat(int, int fd, struct stat* facts) { return fstat(fd, facts); }
int __fxstat64(int, int fd, struct stat64* facts) { return fstat64(fd, facts); }

}  // extern "C"
#pragma GCC visibility pop

// The C library's functions that take a descriptor, with those of the simulated node answered by the simulation; and
// what tests ask it.

namespace kiln::simulator::shim {
namespace {

constexpr unsigned drm_type = 'd';
constexpr unsigned sync_file_type = '>';

int answer(int error) noexcept {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

using Control = int(int, unsigned long, ...);

int control(int fd, unsigned long request, void* argument) {
  Simulation* const simulation = Simulation::with_open_files();
  if (simulation != nullptr && _IOC_TYPE(request) == drm_type) {
    if (const auto file = simulation->file_behind(fd)) return answer(file->control(request, argument));
  }
  if (simulation != nullptr && _IOC_TYPE(request) == sync_file_type &&
      kernel::is_sync_file(*simulation->device(), fd)) {
    return answer(kernel::control_sync_file(*simulation->device(), fd, request, argument));
  }
  static constinit Next<Control> real("ioctl");
  return real.get()(fd, request, argument);
}

void* map(void* address, std::size_t bytes, int protection, int flags, int fd, off64_t offset) {
  using Map = void*(void*, std::size_t, int, int, int, off64_t);
  static constinit Next<Map> real("mmap64");
  Simulation* const simulation = (flags & MAP_ANONYMOUS) == 0 ? Simulation::with_open_files() : nullptr;
  const auto file = simulation == nullptr ? nullptr : simulation->file_behind(fd);
  if (file == nullptr) return real.get()(address, bytes, protection, flags, fd, offset);
  kernel::DeviceFile::Backing backing;
  const int error = file->find_backing(static_cast<std::uint64_t>(offset), bytes, backing);
  if (error != 0) {
    errno = error;
    return MAP_FAILED;
  }
  return real.get()(address, bytes, protection, flags, backing.fd, static_cast<off64_t>(backing.offset));
}

}  // namespace
}  // namespace kiln::simulator::shim

namespace shim = kiln::simulator::shim;

#pragma GCC visibility push(default)
extern "C" {

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return shim::control(fd, request, argument);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return shim::map(address, bytes, protection, flags, fd, offset);
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  return shim::map(address, bytes, protection, flags, fd, offset);
}

// The text of the last fault of the process's simulated device, cut to `room` with its closing zero; its whole length.
// 0: there was none.
size_t kiln_amdgpu_sim_last_fault(char* text, size_t room) {
  shim::Simulation* const simulation = shim::Simulation::with_open_files();
  const std::string fault = simulation == nullptr ? std::string() : simulation->device()->journal.last_fault();
  if (room == 0) return fault.size();
  const size_t count = std::min(fault.size(), room - 1);
  std::memcpy(text, fault.data(), count);
  text[count] = '\0';
  return fault.size();
}

}  // extern "C"
#pragma GCC visibility pop
