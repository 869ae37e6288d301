// What a program does that uses an AMD device through libdrm_amdgpu, in a few words on its output. It is linked with
// nothing of the simulator and runs on it because the shim is preloaded.
//   facts    what the device says of itself
//   write    a packet writes a value to memory that the host then reads, on the compute and on the graphics ring
//   stray    a packet writes where nothing is mapped; then what became of the context
//   abandon  the process ends without tidying up
//   share    a buffer goes to a second opening of the node by descriptor
//   files    what the C library's functions for files say of the device's tree
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>

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
  using LastFault = std::size_t(char*, std::size_t);
  auto* const last_fault = reinterpret_cast<LastFault*>(::dlsym(RTLD_DEFAULT, "kiln_amdgpu_sim_last_fault"));
  need(last_fault == nullptr ? ENOENT : 0, "kiln_amdgpu_sim_last_fault");
  std::array<char, 512> text{};
  last_fault(text.data(), text.size());
  std::printf("fault %s\n", text.data());
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

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "facts") show_facts();
  if (what == "write") write_and_read();
  if (what == "stray") stray();
  if (what == "share") share();
  if (what == "files") show_files();
  if (what == "abandon") {
    Node node;
    ::_exit(0);
  }
  return 0;
}
