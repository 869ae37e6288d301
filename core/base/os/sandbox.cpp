#include "base/os/sandbox.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kiln/buffer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace kiln {
namespace {

namespace fs = std::filesystem;

std::string reason_of(int error) { return std::generic_category().message(error); }

// ---- files: Landlock

constexpr long create_ruleset_call = 444, add_rule_call = 445, restrict_self_call = 446;
// Newer than the headers of Debian 12.
constexpr std::uint64_t truncate_right = 1ULL << 14, ioctl_right = 1ULL << 15;
constexpr std::uint64_t tcp_rights = 3, scope_rights = 3;  // bind and connect; abstract sockets and signals

struct Ruleset {  // struct landlock_ruleset_attr
  std::uint64_t files = 0, network = 0, scopes = 0;
};

constexpr std::uint64_t read_rights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t device_rights = read_rights | LANDLOCK_ACCESS_FS_WRITE_FILE | ioctl_right;
constexpr std::uint64_t first_rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // version 1 of Landlock
constexpr std::uint64_t file_rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                      LANDLOCK_ACCESS_FS_READ_FILE | truncate_right | ioctl_right;

// Where drivers, their libraries and their data are installed. Of /etc no more than they read: it may hold a key.
constexpr const char* system_folders[] = {"/usr",           "/lib",          "/lib32",           "/lib64",
                                          "/opt",           "/nix/store",    "/gnu/store",       "/run/opengl-driver",
                                          "/proc/cpuinfo",  "/proc/devices", "/proc/driver",     "/proc/filesystems",
                                          "/proc/meminfo",  "/proc/modules", "/proc/stat",       "/proc/sys",
                                          "/proc/version",  "/sys",          "/etc/ld.so.cache", "/etc/ld.so.preload",
                                          "/etc/localtime", "/etc/drirc",    "/etc/egl",         "/etc/glvnd",
                                          "/etc/vulkan",    "/etc/OpenCL"};
constexpr const char* system_devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                          "/dev/urandom", "/dev/dri",  "/dev/kfd",  "/dev/dxg"};
constexpr std::string_view device_prefixes[] = {"nvidia", "mali", "kgsl"};

// Whether `path` is `folder` or below it. Both are canonical.
bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

class FileRules {
 public:
  FileRules(int ruleset, std::uint64_t handled, const std::vector<fs::path>& hidden)
      : ruleset_(ruleset), handled_(handled) {
    for (const fs::path& path : hidden) {
      std::error_code error;
      fs::path canonical = fs::weakly_canonical(path, error);
      if (!error && canonical.is_absolute()) hidden_.push_back(std::move(canonical));
    }
  }

  void allow(const fs::path& path, std::uint64_t rights) const {
    const UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0) return;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights & handled_ & (S_ISDIR(found.st_mode) ? ~std::uint64_t{0} : file_rights);
    rule.parent_fd = file.get();
    (void)::syscall(add_rule_call, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }

  // A rule covers all that is below a folder: one that holds hidden paths is allowed entry by entry.
  void allow_but_hidden(const fs::path& path) const {
    std::error_code error;
    const fs::path canonical = fs::canonical(path, error);
    if (error) return;
    const auto is_inside = [&](const fs::path& hidden) { return hidden != canonical && is_below(hidden, canonical); };
    if (std::ranges::none_of(hidden_, is_inside)) return allow(canonical, read_rights);
    for (fs::directory_iterator at(canonical, error), end; !error && at != end; at.increment(error)) {
      if (!at->is_symlink() && std::ranges::find(hidden_, at->path()) == hidden_.end()) allow_but_hidden(at->path());
    }
  }

 private:
  int ruleset_;
  std::uint64_t handled_;
  std::vector<fs::path> hidden_;
};

// Of /proc the folder of this process alone: those of others show their environment and their memory maps. The
// descriptor stays open, because a rule ends when the system drops the folder from its caches.
void allow_own_process(const FileRules& rules) {
  rules.allow("/proc/self", read_rights);
  (void)::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void allow_devices(const FileRules& rules) {
  for (const char* device : system_devices) rules.allow(device, device_rights);
  std::error_code error;
  for (fs::directory_iterator at("/dev", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (std::ranges::any_of(device_prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); }))
      rules.allow(at->path(), device_rights);
  }
}

// Returns why files are not protected; empty: they are.
std::string restrict_files(const SandboxRules& rules) {
  const long version = ::syscall(create_ruleset_call, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return "the kernel does not support Landlock (" + reason_of(errno) + ")";
  Ruleset wanted;
  wanted.files = first_rights;
  if (version >= 2) wanted.files |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) wanted.files |= truncate_right;
  if (version >= 5) wanted.files |= ioctl_right;
  if (version >= 4) wanted.network = tcp_rights;
  if (version >= 6) wanted.scopes = scope_rights;
  const std::size_t bytes = version >= 6 ? sizeof wanted : version >= 4 ? 16 : 8;
  const UniqueFd ruleset(static_cast<int>(::syscall(create_ruleset_call, &wanted, bytes, 0)));
  if (!ruleset) return "Landlock rejects the rules: " + reason_of(errno);
  const FileRules files(ruleset.get(), wanted.files, rules.hidden);
  for (const char* folder : system_folders) files.allow_but_hidden(folder);
  allow_own_process(files);
  allow_devices(files);
  for (const fs::path& path : rules.readable) files.allow(path, read_rights);
  // All but what runs programs.
  for (const fs::path& path : rules.writable) files.allow(path, ~std::uint64_t{LANDLOCK_ACCESS_FS_EXECUTE});
  if (::syscall(restrict_self_call, ruleset.get(), 0) == 0) return {};
  return "Landlock rejects the rules: " + reason_of(errno);
}

// ---- network, other processes and the system: a filter of system calls

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif

// Numbers that all architectures share, for headers that do not name them yet.
constexpr std::uint32_t io_uring_setup_call = 425, pidfd_open_call = 434, clone3_call = 435, openat2_call = 437,
                        pidfd_getfd_call = 438, process_madvise_call = 440, mount_setattr_call = 442,
                        process_mrelease_call = 448, fchmodat2_call = 452, setxattrat_call = 463,
                        removexattrat_call = 466;

// Calls that no compiler needs.
constexpr std::uint32_t refused_calls[] = {
    // network, and objects that processes share
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_shmget, SYS_shmat, SYS_semget,
    SYS_msgget, SYS_mq_open, SYS_keyctl, SYS_add_key, SYS_request_key,
    // other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
    SYS_tkill, SYS_pidfd_send_signal, pidfd_open_call, pidfd_getfd_call, process_madvise_call, process_mrelease_call,
    SYS_perf_event_open, SYS_move_pages, SYS_migrate_pages, SYS_execve, SYS_execveat, SYS_setsid, SYS_setpgid,
    // owner, mode and attributes of files, which Landlock does not cover; with version 1 and 2 the length
    SYS_truncate, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat, setxattrat_call, removexattrat_call,
    SYS_open_by_handle_at,
#if defined(__x86_64__)
    SYS_fork, SYS_vfork, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_iopl, SYS_ioperm,
#endif
    // the system
    SYS_bpf, SYS_userfaultfd, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns,
    mount_setattr_call, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon,
    SYS_swapoff, SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
    SYS_adjtimex, SYS_acct, SYS_quotactl, SYS_syslog, SYS_vhangup};
// Libraries use an older call where the system has not got these.
constexpr std::uint32_t absent_calls[] = {clone3_call, openat2_call, fchmodat2_call, io_uring_setup_call};

class CallFilter {
 public:
  CallFilter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
    answer(EPERM);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // the calls of x32
    answer(EPERM);
#endif
  }

  void refuse(std::uint32_t call, int error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    answer(error);
  }

  // Refuses the call unless (argument & mask) is one of two values.
  void refuse_unless(std::uint32_t call, unsigned argument, std::uint32_t mask, std::uint32_t one, std::uint32_t two) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 6);
    load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument));  // little endian: the lower half
    add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, two, 1, 0);
    answer(EPERM);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
  }

  // Refuses the call if (argument & mask) is `value`.
  void refuse_if(std::uint32_t call, unsigned argument, std::uint32_t mask, std::uint32_t value) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5);
    load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument));
    add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(EPERM);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
  }

  // All threads of the process.
  bool install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    const sock_fprog program{static_cast<unsigned short>(steps_.size()), steps_.data()};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  void add(int code, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
    steps_.push_back({static_cast<std::uint16_t>(code), if_true, if_false, value});
  }
  void load(std::uint32_t at) { add(BPF_LD | BPF_W | BPF_ABS, at, 0, 0); }
  void answer(int error) { add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error), 0, 0); }

  std::vector<sock_filter> steps_;
};

std::string restrict_calls() {
  if (architecture == 0) return "no system call filter for this processor";
  CallFilter filter;
  for (const std::uint32_t call : refused_calls) filter.refuse(call, EPERM);
  for (const std::uint32_t call : absent_calls) filter.refuse(call, ENOSYS);
  const auto own = static_cast<std::uint32_t>(::getpid());
  constexpr std::uint32_t all = ~std::uint32_t{0};
  filter.refuse_unless(SYS_kill, 0, all, own, 0);
  filter.refuse_unless(SYS_tgkill, 0, all, own, own);
  filter.refuse_unless(SYS_prlimit64, 0, all, own, 0);
  filter.refuse_unless(SYS_clone, 0, CLONE_THREAD, CLONE_THREAD, CLONE_THREAD);
  // Opening for reading with O_TRUNC truncates, which versions 1 and 2 of Landlock do not see.
  filter.refuse_if(SYS_openat, 2, O_ACCMODE | O_TRUNC, O_TRUNC);
#if defined(__x86_64__)
  filter.refuse_if(SYS_open, 1, O_ACCMODE | O_TRUNC, O_TRUNC);
#endif
  return filter.install() ? std::string() : "the kernel rejects the system call filter: " + reason_of(errno);
}

}  // namespace

std::vector<std::string> enter_sandbox(const SandboxRules& rules) {
  std::vector<std::string> gaps;
  const auto note = [&](const char* what, const std::string& why) {
    if (!why.empty()) gaps.push_back(std::string(what) + ": " + why);
  };
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    note("files, network and other processes", "PR_SET_NO_NEW_PRIVS failed: " + reason_of(errno));
    return gaps;
  }
  note("the user's files", restrict_files(rules));
  note("network and other processes", restrict_calls());
  return gaps;
}

}  // namespace kiln
