#include "cache/driver_scratch.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "cache/entry_format.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/clock.hpp>
#include <kiln/driver_cache.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <thread>

namespace kiln {
namespace {

constexpr std::size_t setting_digits = 64, random_digits = 16;
constexpr int levels_below = 8;              // Mesa's own have three
constexpr std::time_t unlocked_s = 60;       // what a process takes at most from making its folder to locking it
constexpr std::time_t unused_s = 24 * 3600;  // of a folder of an older version, whose processes lock nothing
constexpr std::string_view index_name = "index";
// Mesa's index begins with the number of bytes that Mesa wrote to this folder.
constexpr const char* counting_file = "mesa_shader_cache/index";
constexpr std::string_view counted_folder = "mesa_shader_cache/";

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

UniqueFd open_inner(int parent, const std::string& name) {
  return UniqueFd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Calls file(folder, name, path) for what is no folder, and emptied(folder, name) for each folder afterwards.
template <class OnFile, class OnFolder>
void walk(int folder, const std::string& prefix, int levels, const OnFile& file, const OnFolder& emptied) {
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(at.st_mode)) {
      file(folder, name, prefix + name, at);
      continue;
    }
    if (const UniqueFd inner = levels > 0 ? open_inner(folder, name) : UniqueFd()) {
      walk(inner.get(), prefix + name + "/", levels - 1, file, emptied);
    }
    emptied(folder, name);
  }
}

ClearedDriverFolders remove_all_in(int folder) {
  ClearedDriverFolders cleared;
  const auto remove = [&](int in, const std::string& name, int flags) {
    if (unlinkat(in, name.c_str(), flags) == 0) return true;
    if (errno != ENOENT && cleared.failure.ok()) {
      cleared.failure = system_error((flags == 0 ? "file " : "folder ") + name, "cannot be removed", errno);
    }
    return false;
  };
  walk(
      folder, "", levels_below,
      [&](int in, const std::string& name, const std::string&, const struct stat& at) {
        if (!remove(in, name, 0) || !S_ISREG(at.st_mode)) return;
        // Mesa's index may be a sparse file.
        cleared.bytes +=
            std::min(static_cast<std::uint64_t>(at.st_size), static_cast<std::uint64_t>(at.st_blocks) * 512);
      },
      [&](int in, const std::string& name) { remove(in, name, AT_REMOVEDIR); });
  return cleared;
}

// Whether the thread sleeps until another one has work for it: in a futex or a poll.
bool is_waiting(const std::filesystem::path& task) {
  std::ifstream in(task / "syscall");
  long call = 0;
  if (!(in >> call)) return false;  // it runs, or is gone
#if defined(__x86_64__)
  constexpr long calls[] = {202, 7, 271};  // futex, poll, ppoll
#else
  constexpr long calls[] = {98, 73};  // futex, ppoll
#endif
  return std::ranges::find(calls, call) != std::end(calls);
}

// Mesa names the threads that write its files "…:disk$0", and those that compile "…:sh0".
bool is_of_driver(const std::filesystem::path& task) {
  std::ifstream in(task / "comm");
  std::string name;
  std::getline(in, name);
  return name.find("disk$") != std::string::npos || name.find(":sh") != std::string::npos;
}

Status check_amount(std::size_t files, std::uint64_t bytes) {
  if (files <= most_driver_files && bytes <= most_driver_file_bytes) return {};
  return unsupported("the driver wrote " + std::to_string(files) + " files with " + std::to_string(bytes) +
                     " bytes in total, expected at most " + std::to_string(most_driver_files) + " files and " +
                     std::to_string(most_driver_file_bytes) + " bytes");
}

bool is_index(std::string_view path) { return path.substr(path.rfind('/') + 1) == index_name; }

}  // namespace

std::string DriverScratch::new_name(std::string_view setting) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) random = now_ns();
  char end[64];
  std::snprintf(end, sizeof end, ".%ld.%016llx", static_cast<long>(getpid()), static_cast<unsigned long long>(random));
  return std::string(setting) + end;
}

std::string DriverScratch::setting_of(std::string_view name) {
  const std::size_t first = name.find('.'), last = name.rfind('.');
  if (first != setting_digits || last <= first + 1 || name.size() - last - 1 != random_digits) return {};
  const std::string_view pid = name.substr(first + 1, last - first - 1);
  if (!is_hex(name.substr(0, first)) || !is_hex(name.substr(last + 1)) ||
      !std::ranges::all_of(pid, [](char c) { return c >= '0' && c <= '9'; })) {
    return {};
  }
  return std::string(name.substr(0, first));
}

std::shared_ptr<DriverScratch> DriverScratch::of_process() {
  const char* told = std::getenv("MESA_SHADER_CACHE_DIR");
  if (told == nullptr) return nullptr;
  std::filesystem::path path = told;
  static std::mutex mutex;
  static auto& last = *new std::weak_ptr<DriverScratch>;  // never destroyed: another thread may open a cache at exit
  const std::lock_guard guard(mutex);
  if (auto held = last.lock(); held && held->path_ == path) return held;
  std::string setting = driver_setting_of(path);
  if (setting.empty() || !check_private_folder(path).ok()) return nullptr;
  UniqueFd folder = open_inner(AT_FDCWD, path.string());
  if (!folder || try_lock(folder.get(), LockMode::shared) != LockAnswer::taken) return nullptr;
  std::shared_ptr<DriverScratch> made(new DriverScratch(std::move(path), std::move(setting), std::move(folder)));
  last = made;
  return made;
}

// Without reading the folders that hold them.
void DriverScratch::remove_known() {
  std::string_view last;
  const auto remove_last = [&] {
    if (!last.empty()) unlinkat(folder_.get(), std::string(last).c_str(), AT_REMOVEDIR);
  };
  for (const std::string& name : known_) {  // sorted, so that the files of one folder follow one another
    unlinkat(folder_.get(), name.c_str(), 0);
    const std::string_view inner = std::string_view(name).substr(0, std::min(name.rfind('/'), name.size()));
    if (inner.size() == name.size() || inner == last) continue;
    remove_last();
    last = inner;
  }
  remove_last();
}

DriverScratch::~DriverScratch() {
  // Refused where another cache of this process, or a child, uses the folder.
  if (try_lock(folder_.get()) != LockAnswer::taken) return;
  try {
    // A thread of Mesa that finds no folder says so on the standard error stream.
    await_threads(Threads::of_drivers, 1);
    remove_known();
    remove_all_in(folder_.get());
  } catch (const std::bad_alloc&) {  // another process sweeps what is left
  }
  rmdir(path_.c_str());
}

Status DriverScratch::place(const ProgramBinary& program) {
  if (program.driver_setting != setting_) return {};
  for (const DriverFile& file : program.driver_files) {
    // Whoever shares the file waits for the lock, so nobody asks the driver for one that is half written.
    const std::lock_guard lock(mutex_);
    if (known_.contains(file.name)) continue;
    if (Status status = write_driver_file(folder_.get(), file); !status.ok()) return status.within(path_.string());
    known_.insert(file.name);
  }
  return {};
}

std::set<std::string> DriverScratch::files() const {
  std::set<std::string> names;
  walk(
      folder_.get(), "", levels_below,
      [&](int, const std::string&, const std::string& whole, const struct stat&) { names.insert(whole); },
      [](int, const std::string&) {});
  return names;
}

Status DriverScratch::collect(const std::set<std::string>& before, ProgramBinary& program) {
  await_threads(Threads::of_drivers);
  return collect_except(before, program);
}

Status DriverScratch::collect_except(const std::set<std::string>& before, ProgramBinary& program) {
  auto files = read_driver_files(path_, before);
  if (!files) return std::move(files).error();
  const std::lock_guard lock(mutex_);
  for (const DriverFile& file : *files) known_.insert(file.name);
  program.driver_files = std::move(*files);
  program.driver_setting = setting_;
  return {};
}

Status DriverScratch::collect_new(ProgramBinary& program) {
  await_threads(Threads::of_drivers);
  const auto now = written();
  std::unique_lock lock(mutex_);
  if (now && now == all_known_at_) return {};
  const std::set<std::string> known = known_;
  lock.unlock();
  Status status = collect_except(known, program);
  // Another driver, or another release of this one, may keep files that this index does not count.
  const bool counts = status.ok() && std::ranges::all_of(program.driver_files, [](const DriverFile& file) {
                        return file.name.starts_with(counted_folder);
                      });
  lock.lock();
  all_known_at_ = counts ? now : std::nullopt;
  return status;
}

std::optional<std::uint64_t> DriverScratch::written() const {
  const UniqueFd index(openat(folder_.get(), counting_file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::uint64_t bytes = 0;
  if (!index || pread(index.get(), &bytes, sizeof bytes, 0) != sizeof bytes) return std::nullopt;
  return bytes;
}

void await_threads(Threads which, int samples) {
  constexpr std::chrono::seconds most_wait{4};  // a thread that sleeps for a time of its own never counts as idle
  const Deadline deadline = Deadline::after(most_wait);
  const std::string own = std::to_string(gettid());
  std::vector<std::filesystem::path> tasks;
  for (int idle = 0; idle < samples && !deadline.passed();) {
    // While all are idle their names need not be read again.
    if (idle == 0) {
      tasks.clear();
      std::error_code error;
      for (std::filesystem::directory_iterator at("/proc/self/task", error), end; !error && at != end;
           at.increment(error)) {
        if (at->path().filename() == own || (which == Threads::of_drivers && !is_of_driver(at->path()))) continue;
        tasks.push_back(at->path());
      }
      if (tasks.empty()) return;
    }
    idle = std::ranges::all_of(tasks, is_waiting) ? idle + 1 : 0;
    if (idle < samples) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Status write_driver_file(int folder, const DriverFile& file) {
  const std::string who = "driver file " + file.name;
  if (!is_driver_file_name(file.name)) return invalid_argument("driver file '" + file.name + "': invalid name");
  const auto create = [&] {
    return UniqueFd(openat(folder, file.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  };
  UniqueFd out = create();
  if (!out && errno == ENOENT) {
    // Outwards to a folder that can be made, then inwards. Most often only the innermost is missing.
    bool inwards = false;
    for (std::size_t slash = file.name.rfind('/'); slash != std::string::npos;) {
      const std::string inner = file.name.substr(0, slash);
      const bool made = mkdirat(folder, inner.c_str(), 0700) == 0 || errno == EEXIST;
      if (!made && (inwards || errno != ENOENT)) {
        return system_error(who, "folder " + inner + " cannot be created", errno);
      }
      inwards = made;
      slash = made ? file.name.find('/', slash + 1) : inner.rfind('/');
    }
    out = create();
  }
  if (!out) return errno == EEXIST ? Status() : system_error(who, "cannot be created", errno);
  for (std::span<const std::byte> left = file.bytes; !left.empty();) {
    const ssize_t count = write(out.get(), left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count < 0 ? errno : ENOSPC;
      unlinkat(folder, file.name.c_str(), 0);
      return system_error(who, "cannot be written", error);
    }
    left = left.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Status dispatch_nothing(Device& device, const Program& program, std::chrono::nanoseconds patience) {
  const PassLaunch launch{&program, {}, PassLaunch::nothing};
  const auto value = device.submit({std::span(&launch, 1)});
  if (!value) return value.error();
  const auto fence = device.wait(*value, Deadline::after(patience));
  return fence ? ok_status() : fence.error();
}

Result<std::vector<DriverFile>> read_driver_files(const std::filesystem::path& path,
                                                  const std::set<std::string>& except) {
  const UniqueFd folder = open_inner(AT_FDCWD, path.string());
  if (!folder) return system_error("folder " + path.string(), "cannot be opened", errno);
  std::vector<DriverFile> files;
  std::uint64_t bytes = 0;
  walk(
      folder.get(), "", levels_below,
      [&](int in, const std::string& name, const std::string& whole, const struct stat&) {
        if (is_index(whole) || except.contains(whole) || name.ends_with(".tmp") || !is_driver_file_name(whole)) return;
        FileContents contents = read_file(in, name, most_driver_file_bytes);
        if (contents.state != FileState::read) return;
        bytes += contents.bytes.size();
        files.push_back({whole, std::move(contents.bytes)});
      },
      [](int, const std::string&) {});
  if (Status status = check_amount(files.size(), bytes); !status.ok()) return status;
  std::ranges::sort(files, {}, &DriverFile::name);
  return files;
}

Status add_driver_files(ProgramBinary more, ProgramBinary& program) {
  if (more.driver_setting != program.driver_setting) program.driver_files.clear();
  program.driver_setting = more.driver_setting;
  for (DriverFile& file : more.driver_files) {
    if (std::ranges::find(program.driver_files, file.name, &DriverFile::name) == program.driver_files.end()) {
      program.driver_files.push_back(std::move(file));
    }
  }
  std::ranges::sort(program.driver_files, {}, &DriverFile::name);
  std::uint64_t bytes = 0;
  for (const DriverFile& file : program.driver_files) bytes += file.bytes.size();
  return check_amount(program.driver_files.size(), bytes);
}

void empty_driver_folder(const std::filesystem::path& path) {
  const UniqueFd folder = open_inner(AT_FDCWD, path.string());
  if (!folder) return;
  walk(
      folder.get(), "", levels_below,
      [](int in, const std::string& name, const std::string& whole, const struct stat&) {
        if (!is_index(whole)) unlinkat(in, name.c_str(), 0);
      },
      [](int in, const std::string& name) { unlinkat(in, name.c_str(), AT_REMOVEDIR); });
}

namespace {

// The folder of an older version, which all processes of one driver shared.
bool is_shared_folder_name(std::string_view name) { return name.size() == setting_digits && is_hex(name); }

// The latest time at which the folder was marked as used, or a file in it was written or read.
std::time_t last_use(int folder, std::time_t marked) {
  std::time_t latest = marked;
  walk(
      folder, "", levels_below,
      [&](int, const std::string&, const std::string&, const struct stat& at) {
        latest = std::max({latest, at.st_mtim.tv_sec, at.st_atim.tv_sec});
      },
      [](int, const std::string&) {});
  return latest;
}

enum class Age : std::uint8_t { invalid = 0, left, any };

// Whether nobody can be using the folder of this name that was marked as used at `marked`.
bool is_left(const std::string& name, int folder, std::time_t marked) {
  const std::time_t now = std::time(nullptr);
  // Far in the future, where the clock was set back.
  const auto since = [now](std::time_t then) { return std::abs(now - then); };
  if (!is_shared_folder_name(name)) return since(marked) >= unlocked_s;
  return since(marked) >= unused_s && since(last_use(folder, marked)) >= unused_s;
}

ClearedDriverFolders remove_folders(int root, Age age) {
  ClearedDriverFolders cleared;
  const UniqueFd all = existing_subfolder(root, driver_caches_name);
  if (!all) return cleared;
  for (const std::string& name : names_in(all.get())) {
    if (!is_shared_folder_name(name) && DriverScratch::setting_of(name).empty()) continue;
    const UniqueFd folder = existing_subfolder(all.get(), name);
    struct stat at {};
    if (!folder || fstat(folder.get(), &at) != 0) continue;
    if (age == Age::left && !is_left(name, folder.get(), at.st_mtime)) continue;
    if (try_lock(folder.get()) != LockAnswer::taken) continue;
    ClearedDriverFolders one = remove_all_in(folder.get());
    if (unlinkat(all.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && one.failure.ok()) {
      one.failure = system_error("folder " + name, "cannot be removed", errno);
    }
    cleared.bytes += one.bytes;
    if (cleared.failure.ok() && !one.failure.ok()) {
      cleared.failure = one.failure.within(std::string("folder ") + driver_caches_name + "/" + name);
    }
  }
  return cleared;
}

}  // namespace

void sweep_driver_folders(int root) { remove_folders(root, Age::left); }

ClearedDriverFolders clear_driver_folders(int root) {
  ClearedDriverFolders cleared = remove_folders(root, Age::any);
  unlinkat(root, driver_caches_name, AT_REMOVEDIR);  // stays where something is in it
  return cleared;
}

}  // namespace kiln
