// What a program does that uses an AMD device through libdrm_amdgpu, in a few words on its output. It is linked with
// nothing of the simulator and runs on it because the shim is preloaded.
//   facts    what the device says of itself
//   write    a packet writes a value to memory that the host then reads, on the compute and on the graphics ring
//   stray    a packet writes where nothing is mapped; then what became of the context
//   abandon  the process ends without tidying up
//   share    a buffer goes to a second opening of the node by descriptor
//   files    what the C library's functions for files say of the device's tree
//   edges    the rest of the tree, and what programs do to the node that makes no sense
//   lost     what the C library's functions for files say where there is no tree
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// What went wrong first ends the program.
void need(int answer, const char* what) {
  if (answer == 0) return;
  std::printf("%s: %s\n", what, std::strerror(answer < 0 ? -answer : answer));
  std::exit(1);
}

struct Node {
  int fd = -1;
  amdgpu_device_handle device = nullptr;

  Node() {
    std::array<drmDevicePtr, 8> all{};
    const int count = drmGetDevices2(0, all.data(), static_cast<int>(all.size()));
    need(count == 1 ? 0 : ENODEV, "one device");
    fd = ::open(all[0]->nodes[DRM_NODE_RENDER], O_RDWR | O_CLOEXEC);
    need(fd < 0 ? errno : 0, "open");
    drmFreeDevices(all.data(), count);
    std::uint32_t major = 0, minor = 0;
    need(amdgpu_device_initialize(fd, &major, &minor, &device), "amdgpu_device_initialize");
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    amdgpu_device_deinitialize(device);
    ::close(fd);
  }
};

struct Memory {
  amdgpu_bo_handle buffer = nullptr;
  amdgpu_va_handle range = nullptr;
  std::uint64_t address = 0;
  std::uint32_t* words = nullptr;

  explicit Memory(amdgpu_device_handle device) {
    amdgpu_bo_alloc_request request{};
    request.alloc_size = 4096;
    request.preferred_heap = AMDGPU_GEM_DOMAIN_GTT;
    need(amdgpu_bo_alloc(device, &request, &buffer), "amdgpu_bo_alloc");
    need(amdgpu_va_range_alloc(device, amdgpu_gpu_va_range_general, 4096, 4096, 0, &address, &range,
                               AMDGPU_VA_RANGE_HIGH),
         "amdgpu_va_range_alloc");
    need(amdgpu_bo_va_op(buffer, 0, 4096, address, 0, AMDGPU_VA_OP_MAP), "amdgpu_bo_va_op");
    void* at = nullptr;
    need(amdgpu_bo_cpu_map(buffer, &at), "amdgpu_bo_cpu_map");
    words = static_cast<std::uint32_t*>(at);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    amdgpu_bo_cpu_unmap(buffer);
    amdgpu_bo_va_op(buffer, 0, 4096, address, 0, AMDGPU_VA_OP_UNMAP);
    amdgpu_va_range_free(range);
    amdgpu_bo_free(buffer);
  }
};

// One WRITE_DATA packet to memory, filled up to eight words.
void write_packet(Memory& commands, std::uint64_t address, std::uint32_t value) {
  const std::array<std::uint32_t, 8> words = {0xC0033702,
                                              5u << 8 | 1u << 20,
                                              static_cast<std::uint32_t>(address),
                                              static_cast<std::uint32_t>(address >> 32 & 0xffff),
                                              value,
                                              0xFFFF1000,
                                              0xFFFF1000,
                                              0xFFFF1000};
  std::memcpy(commands.words, words.data(), sizeof words);
}

int submit_and_wait(amdgpu_device_handle device, amdgpu_context_handle context, Memory& commands, Memory& data,
                    std::uint32_t ip) {
  std::array<amdgpu_bo_handle, 2> buffers = {commands.buffer, data.buffer};
  amdgpu_bo_list_handle list = nullptr;
  need(amdgpu_bo_list_create(device, buffers.size(), buffers.data(), nullptr, &list), "amdgpu_bo_list_create");
  amdgpu_cs_ib_info ib{};
  ib.ib_mc_address = commands.address;
  ib.size = 8;
  amdgpu_cs_request request{};
  request.ip_type = ip;
  request.resources = list;
  request.number_of_ibs = 1;
  request.ibs = &ib;
  int error = amdgpu_cs_submit(context, 0, &request, 1);
  if (error == 0) {
    amdgpu_cs_fence fence{};
    fence.context = context;
    fence.ip_type = ip;
    fence.fence = request.seq_no;
    std::uint32_t expired = 0;
    error = amdgpu_cs_query_fence_status(&fence, 10'000'000'000, 0, &expired);
    if (error == 0 && expired == 0) error = -ETIME;
  }
  amdgpu_bo_list_destroy(list);
  return error;
}

void show_facts() {
  Node node;
  drmVersionPtr version = drmGetVersion(node.fd);
  std::printf("version %s %d.%d %s\n", version->name, version->version_major, version->version_minor, version->desc);
  drmFreeVersion(version);
  amdgpu_gpu_info info{};
  need(amdgpu_query_gpu_info(node.device, &info), "amdgpu_query_gpu_info");
  std::printf("device %04x family %u units %u\n", info.asic_id, info.family_id, info.cu_active_number);
  struct stat facts {};
  need(::fstat(node.fd, &facts), "fstat");
  std::printf("node %d %u:%u\n", S_ISCHR(facts.st_mode) ? 1 : 0, major(facts.st_rdev), minor(facts.st_rdev));
  drmDevicePtr device = nullptr;
  need(drmGetDevice2(node.fd, DRM_DEVICE_GET_PCI_REVISION, &device), "drmGetDevice2");
  std::printf("bus %04x:%02x:%02x.%x %04x:%04x revision %02x\n", device->businfo.pci->domain, device->businfo.pci->bus,
              device->businfo.pci->dev, device->businfo.pci->func, device->deviceinfo.pci->vendor_id,
              device->deviceinfo.pci->device_id, device->deviceinfo.pci->revision_id);
  drmFreeDevice(&device);
  std::array<char, 4096> path{};
  std::printf("path %s\n", ::realpath("/sys/dev/char/226:128/device", path.data()));
}

void write_and_read() {
  Node node;
  Memory commands(node.device), data(node.device);
  amdgpu_context_handle context = nullptr;
  need(amdgpu_cs_ctx_create(node.device, &context), "amdgpu_cs_ctx_create");
  for (const std::uint32_t ip : {AMDGPU_HW_IP_COMPUTE, AMDGPU_HW_IP_GFX}) {
    write_packet(commands, data.address + 4 * ip, 0xcafe0000 + ip);
    need(submit_and_wait(node.device, context, commands, data, ip), "job");
    std::printf("read %x\n", data.words[ip]);
  }
  amdgpu_cs_ctx_free(context);
}

using LastFault = std::size_t(char*, std::size_t);
LastFault* last_fault_function() {
  auto* const found = reinterpret_cast<LastFault*>(::dlsym(RTLD_DEFAULT, "kiln_amdgpu_sim_last_fault"));
  need(found == nullptr ? ENOENT : 0, "kiln_amdgpu_sim_last_fault");
  return found;
}

void stray() {
  Node node;
  Memory commands(node.device), data(node.device);
  amdgpu_context_handle context = nullptr;
  need(amdgpu_cs_ctx_create(node.device, &context), "amdgpu_cs_ctx_create");
  write_packet(commands, 0xffff900000000000, 1);
  std::printf("job %s\n",
              strerrorname_np(-submit_and_wait(node.device, context, commands, data, AMDGPU_HW_IP_COMPUTE)));
  std::uint64_t flags = 0;
  need(amdgpu_cs_query_reset_state2(context, &flags), "amdgpu_cs_query_reset_state2");
  std::printf("flags %x\n", static_cast<unsigned>(flags));
  auto* const last_fault = last_fault_function();
  std::array<char, 512> text{};
  const std::size_t whole = last_fault(text.data(), text.size());
  std::printf("fault %s\nlength %d\n", text.data(), whole == std::strlen(text.data()));
  const std::string all = text.data();
  text[0] = '!';
  std::printf("no room %d %c\n", last_fault(text.data(), 0) == whole, text[0]);
  for (const std::size_t room : {std::size_t{1}, std::size_t{6}}) {
    text.fill('!');
    const std::size_t told = last_fault(text.data(), room);
    std::printf("room %d %d %c\n", told == whole, all.substr(0, room - 1) == text.data(), text[room]);
  }
  amdgpu_cs_ctx_free(context);
}

void share() {
  Node node;
  Memory data(node.device);
  data.words[3] = 77;
  std::uint32_t shared = 0;
  need(amdgpu_bo_export(data.buffer, amdgpu_bo_handle_type_dma_buf_fd, &shared), "amdgpu_bo_export");
  const int other = ::open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  std::uint32_t handle = 0;
  need(drmPrimeFDToHandle(other, static_cast<int>(shared), &handle), "drmPrimeFDToHandle");
  union drm_amdgpu_gem_mmap map {};
  map.in.handle = handle;
  need(drmIoctl(other, DRM_IOCTL_AMDGPU_GEM_MMAP, &map), "GEM_MMAP");
  void* const at =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other, static_cast<off_t>(map.out.addr_ptr));
  need(at == MAP_FAILED ? errno : 0, "mmap");
  std::printf("shared %u\n", static_cast<std::uint32_t*>(at)[3]);
  ::munmap(at, 4096);
  ::close(static_cast<int>(shared));
  ::close(other);
}

// The first line behind a descriptor, which is closed.
void show_line(const char* how, int fd) {
  std::array<char, 256> text{};
  const ssize_t count = fd < 0 ? -1 : ::read(fd, text.data(), text.size() - 1);
  text[count < 0 ? 0 : static_cast<std::size_t>(count)] = '\0';
  text[std::strcspn(text.data(), "\n")] = '\0';
  std::printf("%s %s\n", how, fd < 0 ? std::strerror(errno) : text.data());
  if (fd >= 0) ::close(fd);
}

void show_link(const char* path) {
  std::array<char, 256> one{}, other{};
  const ssize_t count = ::readlink(path, one.data(), one.size() - 1);
  const ssize_t at = ::readlinkat(AT_FDCWD, path, other.data(), other.size() - 1);
  std::printf("link %s %d\n", one.data(), count > 0 && count == at && one == other);
}

template <class Stat>
void show_kind(const char* how, int answer, const Stat& facts) {
  std::printf("%s %d %s %u:%u\n", how, answer,
              S_ISCHR(facts.st_mode)   ? "node"
              : S_ISLNK(facts.st_mode) ? "link"
                                       : "other",
              major(facts.st_rdev), minor(facts.st_rdev));
}

void show_files() {
  constexpr const char* node = "/dev/dri/renderD128";
  constexpr const char* in_class = "/sys/class/drm/renderD128";
  const std::string device = "/sys/bus/pci/devices/0000:03:00.0", slot = "/sys/devices/pci0000:00/0000:03:00.0";
  show_line("open64", ::open64((device + "/vendor").c_str(), O_RDONLY));
  show_line("openat", ::openat(AT_FDCWD, (device + "/device").c_str(), O_RDONLY));
  show_line("openat64", ::openat64(AT_FDCWD, (device + "/subsystem_vendor").c_str(), O_RDONLY));
  using Open = int(const char*, int);
  using OpenAt = int(int, const char*, int);
  for (const char* name : {"__open_2", "__open64_2"}) {
    show_line(name, reinterpret_cast<Open*>(::dlsym(RTLD_DEFAULT, name))((device + "/class").c_str(), O_RDONLY));
  }
  for (const char* name : {"__openat_2", "__openat64_2"}) {
    const auto open = reinterpret_cast<OpenAt*>(::dlsym(RTLD_DEFAULT, name));
    show_line(name, open(AT_FDCWD, (device + "/revision").c_str(), O_RDONLY));
  }
  for (FILE* const file :
       {::fopen((device + "/subsystem_device").c_str(), "r"), ::fopen64((slot + "/drm/renderD128/dev").c_str(), "r")}) {
    std::array<char, 32> text{};
    std::printf("fopen %s", file == nullptr ? "none\n" : std::fgets(text.data(), 32, file));
    if (file != nullptr) std::fclose(file);
  }
  show_line("uevent", ::open((device + "/uevent").c_str(), O_RDONLY));
  show_line("none", ::open64((device + "/nothing").c_str(), O_RDONLY));
  for (const std::string& path :
       {device, device + "/subsystem", device + "/driver", slot + "/drm/renderD128/device",
        slot + "/drm/renderD128/subsystem", std::string("/sys/dev/char/226:128"), std::string(in_class)}) {
    show_link(path.c_str());
  }
  std::array<char, PATH_MAX> resolved{};
  std::printf("real %s\n", ::realpath(in_class, resolved.data()) == nullptr ? "none" : resolved.data());
  std::printf("real %s\n", ::realpath("/usr/..", resolved.data()) == nullptr ? "none" : resolved.data());
  dirent** names = nullptr;
  dirent64** names64 = nullptr;
  std::printf("scan %d %d\n", ::scandir("/sys/class/drm", &names, nullptr, ::alphasort),
              ::scandir64("/sys/class/drm", &names64, nullptr, ::alphasort64));
  std::printf("names %s %s\n", names[2]->d_name, names64[2]->d_name);
  std::printf("access %d %d %d %d\n", ::access(node, F_OK), ::access("/dev/dri/card9", F_OK),
              ::faccessat(AT_FDCWD, node, R_OK, 0), ::faccessat(AT_FDCWD, "/dev/dri/card9", F_OK, 0));
  struct stat one {};
  struct stat64 wide {};
  show_kind("stat", ::stat(node, &one), one);
  show_kind("stat64", ::stat64(node, &wide), wide);
  show_kind("lstat", ::lstat(in_class, &one), one);
  show_kind("lstat64", ::lstat64(node, &wide), wide);
  show_kind("fstatat", ::fstatat(AT_FDCWD, node, &one, 0), one);
  show_kind("fstatat", ::fstatat(AT_FDCWD, in_class, &one, AT_SYMLINK_NOFOLLOW), one);
  show_kind("fstatat64", ::fstatat64(AT_FDCWD, node, &wide, 0), wide);
  const int fd = ::openat(AT_FDCWD, node, O_RDWR | O_CLOEXEC);
  one = {};
  wide = {};
  show_kind("fstat", ::fstat(fd, &one), one);
  show_kind("fstat64", ::fstat64(fd, &wide), wide);
  one = {};
  wide = {};
  show_kind("fstatat", ::fstatat(fd, "", &one, AT_EMPTY_PATH), one);
  show_kind("fstatat64", ::fstatat64(fd, "", &wide, AT_EMPTY_PATH), wide);
  show_kind("stat", ::stat("/", &one), one);
  show_kind("fstat", ::fstat(STDOUT_FILENO, &one), one);
  using Old = int(int, const char*, struct stat*);
  using OldOf = int(int, int, struct stat*);
  for (const char* name : {"__xstat", "__xstat64", "__lxstat", "__lxstat64"}) {
    one = {};
    show_kind(name, reinterpret_cast<Old*>(::dlsym(RTLD_DEFAULT, name))(1, node, &one), one);
  }
  for (const char* name : {"__fxstat", "__fxstat64"}) {
    one = {};
    show_kind(name, reinterpret_cast<OldOf*>(::dlsym(RTLD_DEFAULT, name))(1, fd, &one), one);
  }
  ::close(fd);
}

std::string whole_file(const std::string& path) {
  std::string text;
  std::array<char, 512> part{};
  FILE* const file = ::fopen(path.c_str(), "r");
  while (file != nullptr) {
    const std::size_t count = std::fread(part.data(), 1, part.size(), file);
    if (count == 0) break;
    text.append(part.data(), count);
  }
  if (file != nullptr) std::fclose(file);
  return text;
}

unsigned created_mode(int fd) {
  struct stat facts {};
  need(fd < 0 || ::fstat(fd, &facts) != 0 ? errno : 0, "create");
  ::close(fd);
  return facts.st_mode;
}

void show_edges(const std::string& folder) {
  constexpr const char* node = "/dev/dri/renderD128";
  std::array<char, 8> text = {'!'};
  auto* const last_fault = last_fault_function();
  std::printf("no fault %zu %zu %d\n", last_fault(text.data(), 0), last_fault(text.data(), 4), text[0]);
  std::printf("config ");
  for (const char byte : whole_file("/sys/devices/pci0000:00/0000:03:00.0/config")) {
    std::printf("%02x", static_cast<unsigned char>(byte));
  }
  std::printf("\n%s%s", whole_file("/sys/bus/pci/devices/0000:03:00.0/uevent").c_str(),
              whole_file("/sys/class/drm/renderD128/uevent").c_str());
  ::umask(0);
  std::printf("created %o %o %o %o\n", created_mode(::open((folder + "/1").c_str(), O_CREAT | O_WRONLY, 0640)),
              created_mode(::open64((folder + "/2").c_str(), O_CREAT | O_WRONLY, 0604)),
              created_mode(::openat(AT_FDCWD, (folder + "/3").c_str(), O_CREAT | O_WRONLY, 0620)),
              created_mode(::openat64(AT_FDCWD, (folder + "/4").c_str(), O_CREAT | O_WRONLY, 0602)));
  const char* volatile nothing = nullptr;
  const int none = ::open(nothing, O_RDONLY);
  std::printf("no path %d %s\n", none, strerrorname_np(errno));
  const int fd = ::open(node, O_RDWR), closing = ::open(node, O_RDWR | O_CLOEXEC);
  std::printf("kept %d %d\n", ::fcntl(fd, F_GETFD), ::fcntl(closing, F_GETFD));
  struct stat facts {};
  ::fstat(fd, &facts);
  std::printf("node %o %d", facts.st_mode & 0777, static_cast<int>(facts.st_size));
  ::stat(node, &facts);
  std::printf(" %o %d\n", facts.st_mode & 0777, static_cast<int>(facts.st_size));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  std::printf("many files %d\n", limit.rlim_cur == std::min<rlim_t>(limit.rlim_max, 1 << 20));
  std::printf("mmap %d", ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
  std::printf(" %s %d\n", strerrorname_np(errno),
              ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, fd, 0) == MAP_FAILED);
  const int file = ::open((folder + "/1").c_str(), O_RDWR);
  sync_file_info info{};
  for (const int of : {fd, file}) {
    for (const unsigned long request :
         {DRM_IOCTL_VERSION + 0x99, SYNC_IOC_FILE_INFO, static_cast<unsigned long>(TCGETS)}) {
      const int answer = ::ioctl(of, request, &info);
      std::printf("ioctl %d %s\n", answer, strerrorname_np(errno));
    }
  }
  drm_syncobj_create object{};
  drm_syncobj_handle exported{};
  need(drmIoctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &object), "SYNCOBJ_CREATE");
  drm_syncobj_array signaled{reinterpret_cast<std::uint64_t>(&object.handle), 1, 0};
  need(drmIoctl(fd, DRM_IOCTL_SYNCOBJ_SIGNAL, &signaled), "SYNCOBJ_SIGNAL");
  exported.handle = object.handle;
  exported.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
  need(drmIoctl(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &exported), "SYNCOBJ_HANDLE_TO_FD");
  const int told = ::ioctl(exported.fd, SYNC_IOC_FILE_INFO, &info);
  std::printf("fence %d %d\n", told, info.status);
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = -1;
  ::waitpid(child, &status, 0);
  std::printf("after a fork %d %d\n", status, ::access(node, F_OK));
}

void show_lost() {
  constexpr const char* path = "/sys/class/drm/renderD128";
  std::array<char, PATH_MAX> text{};
  dirent** names = nullptr;
  dirent64** names64 = nullptr;
  struct stat one {};
  struct stat64 wide {};
  const auto show = [](bool failed) {
    std::printf(" %s", failed ? strerrorname_np(errno) : "none");
    errno = 0;
  };
  std::printf("lost");
  show(::open(path, O_RDONLY) < 0);
  show(::openat(AT_FDCWD, path, O_RDONLY) < 0);
  show(::fopen(path, "r") == nullptr);
  show(::opendir(path) == nullptr);
  show(::scandir(path, &names, nullptr, nullptr) < 0);
  show(::scandir64(path, &names64, nullptr, nullptr) < 0);
  show(::readlink(path, text.data(), text.size()) < 0);
  show(::readlinkat(AT_FDCWD, path, text.data(), text.size()) < 0);
  show(::realpath(path, text.data()) == nullptr);
  show(::access(path, F_OK) < 0);
  show(::faccessat(AT_FDCWD, path, F_OK, 0) < 0);
  show(::stat(path, &one) < 0);
  show(::lstat64(path, &wide) < 0);
  show(::fstatat(AT_FDCWD, path, &one, 0) < 0);
  show(::fstatat64(AT_FDCWD, path, &wide, 0) < 0);
  std::printf("\nothers %d %d\n", ::access("/", F_OK), ::stat("/", &one));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "facts") show_facts();
  if (what == "write") write_and_read();
  if (what == "stray") stray();
  if (what == "share") share();
  if (what == "files") show_files();
  if (what == "edges") show_edges(argv[2]);
  if (what == "lost") show_lost();
  if (what == "abandon") {
    Node node;
    ::_exit(0);
  }
  return 0;
}
