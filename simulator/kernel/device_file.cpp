#include "simulator/kernel/device_file.hpp"

#include <linux/sync_file.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/rings.hpp"
#include "simulator/kernel/submission.hpp"

namespace kiln::simulator::kernel {
namespace {

constexpr std::size_t largest_argument = 512;

// The system header names these unions, and C++ takes the names as they are.
template <class T>
T& as(void* argument) {
  return *static_cast<T*>(argument);
}

Answer copy_field(char* to, __kernel_size_t& length, std::string_view text) {
  if (to != nullptr) std::memcpy(to, text.data(), std::min<std::size_t>(length, text.size()));
  length = text.size();
  return {};
}

}  // namespace

DeviceFile::DeviceFile(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      buffers_(*device_, pages_),
      addresses_(device_->target, buffers_, pages_),
      contexts_(*device_),
      sync_objects_(*device_) {}

struct DeviceFile::Entry {
  unsigned number = 0;  // in the interface: of DRM itself, or 0x40 and the driver's own
  const char* name = "";
  std::size_t bytes = 0;
  Answer (*run)(DeviceFile&, void*, Lock&) = nullptr;
};

// Aligned for every argument; as the kernel does, it is copied in, filled up with zeros, and copied back.
struct alignas(16) Argument {
  std::array<std::byte, largest_argument> bytes{};
};

const DeviceFile::Entry* DeviceFile::find_entry(unsigned number) noexcept {
  using F = DeviceFile;
  constexpr unsigned own = DRM_COMMAND_BASE;
  static constexpr Entry entries[] = {
      {0x00, "VERSION", sizeof(drm_version), [](F& f, void* a, Lock&) { return f.version(as<drm_version>(a)); }},
      {0x09, "GEM_CLOSE", sizeof(drm_gem_close),
       [](F& f, void* a, Lock&) { return f.buffers_.close(as<drm_gem_close>(a)); }},
      {0x0c, "GET_CAP", sizeof(drm_get_cap), [](F& f, void* a, Lock&) { return f.capability(as<drm_get_cap>(a)); }},
      {0x2d, "PRIME_HANDLE_TO_FD", sizeof(drm_prime_handle),
       [](F& f, void* a, Lock&) { return f.buffers_.export_to(as<drm_prime_handle>(a)); }},
      {0x2e, "PRIME_FD_TO_HANDLE", sizeof(drm_prime_handle),
       [](F& f, void* a, Lock&) { return f.buffers_.import_from(as<drm_prime_handle>(a)); }},
      {0xbf, "SYNCOBJ_CREATE", sizeof(drm_syncobj_create),
       [](F& f, void* a, Lock&) { return f.sync_objects_.create(as<drm_syncobj_create>(a)); }},
      {0xc0, "SYNCOBJ_DESTROY", sizeof(drm_syncobj_destroy),
       [](F& f, void* a, Lock&) { return f.sync_objects_.destroy(as<drm_syncobj_destroy>(a)); }},
      {0xc1, "SYNCOBJ_HANDLE_TO_FD", sizeof(drm_syncobj_handle),
       [](F& f, void* a, Lock&) { return f.sync_objects_.export_to(as<drm_syncobj_handle>(a)); }},
      {0xc2, "SYNCOBJ_FD_TO_HANDLE", sizeof(drm_syncobj_handle),
       [](F& f, void* a, Lock&) { return f.sync_objects_.import_from(as<drm_syncobj_handle>(a)); }},
      {0xc3, "SYNCOBJ_WAIT", sizeof(drm_syncobj_wait),
       [](F& f, void* a, Lock& l) { return f.sync_objects_.wait(as<drm_syncobj_wait>(a), l); }},
      {0xc4, "SYNCOBJ_RESET", sizeof(drm_syncobj_array),
       [](F& f, void* a, Lock&) { return f.sync_objects_.reset(as<drm_syncobj_array>(a)); }},
      {0xc5, "SYNCOBJ_SIGNAL", sizeof(drm_syncobj_array),
       [](F& f, void* a, Lock&) { return f.sync_objects_.signal(as<drm_syncobj_array>(a)); }},
      {0xca, "SYNCOBJ_TIMELINE_WAIT", sizeof(drm_syncobj_timeline_wait),
       [](F& f, void* a, Lock& l) { return f.sync_objects_.wait_timeline(as<drm_syncobj_timeline_wait>(a), l); }},
      {0xcb, "SYNCOBJ_QUERY", sizeof(drm_syncobj_timeline_array),
       [](F& f, void* a, Lock&) { return f.sync_objects_.query(as<drm_syncobj_timeline_array>(a)); }},
      {0xcc, "SYNCOBJ_TRANSFER", sizeof(drm_syncobj_transfer),
       [](F& f, void* a, Lock& l) { return f.sync_objects_.transfer(as<drm_syncobj_transfer>(a), l); }},
      {0xcd, "SYNCOBJ_TIMELINE_SIGNAL", sizeof(drm_syncobj_timeline_array),
       [](F& f, void* a, Lock&) { return f.sync_objects_.signal_timeline(as<drm_syncobj_timeline_array>(a)); }},
      {own + DRM_AMDGPU_GEM_CREATE, "GEM_CREATE", sizeof(union drm_amdgpu_gem_create),
       [](F& f, void* a, Lock&) { return f.buffers_.create(as<union drm_amdgpu_gem_create>(a)); }},
      {own + DRM_AMDGPU_GEM_MMAP, "GEM_MMAP", sizeof(union drm_amdgpu_gem_mmap),
       [](F& f, void* a, Lock&) { return f.buffers_.map_offset(as<union drm_amdgpu_gem_mmap>(a)); }},
      {own + DRM_AMDGPU_CTX, "CTX", sizeof(union drm_amdgpu_ctx),
       [](F& f, void* a, Lock&) { return f.contexts_.operate(as<union drm_amdgpu_ctx>(a)); }},
      {own + DRM_AMDGPU_BO_LIST, "BO_LIST", sizeof(union drm_amdgpu_bo_list),
       [](F& f, void* a, Lock&) { return f.lists_.operate(as<union drm_amdgpu_bo_list>(a), f.buffers_); }},
      {own + DRM_AMDGPU_CS, "CS", sizeof(union drm_amdgpu_cs),
       [](F& f, void* a, Lock& l) { return f.submit(as<union drm_amdgpu_cs>(a), l); }},
      {own + DRM_AMDGPU_INFO, "INFO", sizeof(drm_amdgpu_info),
       [](F& f, void* a, Lock&) { return answer_info(*f.device_, as<drm_amdgpu_info>(a)); }},
      {own + DRM_AMDGPU_GEM_METADATA, "GEM_METADATA", sizeof(drm_amdgpu_gem_metadata),
       [](F& f, void* a, Lock&) { return f.buffers_.metadata(as<drm_amdgpu_gem_metadata>(a)); }},
      {own + DRM_AMDGPU_GEM_WAIT_IDLE, "GEM_WAIT_IDLE", sizeof(union drm_amdgpu_gem_wait_idle),
       [](F& f, void* a, Lock& l) { return f.wait_idle(as<union drm_amdgpu_gem_wait_idle>(a), l); }},
      {own + DRM_AMDGPU_GEM_VA, "GEM_VA", sizeof(drm_amdgpu_gem_va),
       [](F& f, void* a, Lock&) { return f.addresses_.operate(as<drm_amdgpu_gem_va>(a)); }},
      {own + DRM_AMDGPU_WAIT_CS, "WAIT_CS", sizeof(union drm_amdgpu_wait_cs),
       [](F& f, void* a, Lock& l) { return f.contexts_.wait(as<union drm_amdgpu_wait_cs>(a), l); }},
      {own + DRM_AMDGPU_GEM_OP, "GEM_OP", sizeof(drm_amdgpu_gem_op),
       [](F& f, void* a, Lock&) { return f.buffers_.operate(as<drm_amdgpu_gem_op>(a)); }},
      {own + DRM_AMDGPU_GEM_USERPTR, "GEM_USERPTR", sizeof(drm_amdgpu_gem_userptr),
       [](F& f, void* a, Lock&) { return f.buffers_.create_of_program(as<drm_amdgpu_gem_userptr>(a)); }},
      {own + DRM_AMDGPU_WAIT_FENCES, "WAIT_FENCES", sizeof(union drm_amdgpu_wait_fences),
       [](F& f, void* a, Lock& l) { return f.contexts_.wait_for_many(as<union drm_amdgpu_wait_fences>(a), l); }},
      {own + DRM_AMDGPU_VM, "VM", sizeof(union drm_amdgpu_vm),
       [](F& f, void* a, Lock&) { return f.reserve(as<union drm_amdgpu_vm>(a)); }},
      {own + DRM_AMDGPU_FENCE_TO_HANDLE, "FENCE_TO_HANDLE", sizeof(union drm_amdgpu_fence_to_handle),
       [](F& f, void* a, Lock&) { return f.fence_to_handle(as<union drm_amdgpu_fence_to_handle>(a)); }},
      {own + DRM_AMDGPU_SCHED, "SCHED", sizeof(union drm_amdgpu_sched),
       [](F&, void*, Lock&) { return refuse(EACCES, "a render node overrides no priorities"); }},
  };
  const auto at = std::find_if(std::begin(entries), std::end(entries),
                               [number](const Entry& entry) { return entry.number == number; });
  return at == std::end(entries) ? nullptr : at;
}

int DeviceFile::control(unsigned long request, void* argument) {
  Journal& journal = device_->journal;
  const Entry* entry = _IOC_TYPE(request) == DRM_IOCTL_BASE ? find_entry(_IOC_NR(request)) : nullptr;
  if (entry == nullptr) {
    journal.write("ioctl " + hex(request) + " is not known");
    return EINVAL;
  }
  if (argument == nullptr) return EFAULT;
  const std::size_t given = _IOC_SIZE(request);
  Argument copy;
  std::memcpy(copy.bytes.data(), argument, std::min(given, entry->bytes));
  Lock lock(device_->mutex);
  Answer answer = device_->unplugged ? refuse(ENODEV) : entry->run(*this, copy.bytes.data(), lock);
  lock.unlock();
  // Outputs of a refused ioctl are of no meaning; a wait that ran out says there which one was ready.
  if ((_IOC_DIR(request) & _IOC_READ) != 0) std::memcpy(argument, copy.bytes.data(), std::min(given, entry->bytes));
  if (answer && !answer->reason.empty()) {
    journal.write(std::string(entry->name) + " refused with errno " + std::to_string(answer->error) + ": " +
                  answer->reason);
  } else if (device_->settings.trace) {
    journal.write(std::string(entry->name) + (answer ? ": errno " + std::to_string(answer->error) : ""));
  }
  return answer ? answer->error : 0;
}

int DeviceFile::find_backing(std::uint64_t offset, std::uint64_t bytes, Backing& backing) {
  const Lock lock(device_->mutex);
  if (device_->unplugged) return ENODEV;
  const BufferPtr buffer = buffers_.at_offset(offset, bytes, backing.offset);
  if (buffer == nullptr) {
    device_->journal.write("mapping of the device at " + hex(offset) + " of " + hex(bytes) +
                           " bytes: no buffer lies there");
    return EINVAL;
  }
  backing.fd = buffer->fd();
  return 0;
}

Answer DeviceFile::version(drm_version& version) const {
  version.version_major = 3;
  version.version_minor = 54;
  version.version_patchlevel = 0;
  const std::string description = "AMD GPU (kiln-simulated " + std::string(device_->target.name) + ")";
  copy_field(version.name, version.name_len, "amdgpu");
  copy_field(version.date, version.date_len, "20150101");
  return copy_field(version.desc, version.desc_len, description);
}

Answer DeviceFile::capability(drm_get_cap& capability) const {
  switch (capability.capability) {
    case DRM_CAP_PRIME:
      capability.value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
      return {};
    case DRM_CAP_TIMESTAMP_MONOTONIC:
    case DRM_CAP_SYNCOBJ:
    case DRM_CAP_SYNCOBJ_TIMELINE:
      capability.value = 1;
      return {};
    default:  // the others are of displays, which the device has none of
      return refuse(capability.capability <= DRM_CAP_SYNCOBJ_TIMELINE ? EOPNOTSUPP : EINVAL);
  }
}

Answer DeviceFile::submit(drm_amdgpu_cs& cs, Lock& lock) {
  drop_signaled(jobs_);
  FencePtr finished;
  Submission submission({*device_, this, pages_, buffers_, lists_, contexts_, sync_objects_}, lock);
  if (Answer refusal = submission.submit(cs, finished)) return refusal;
  jobs_.push_back(std::move(finished));
  return {};
}

Answer DeviceFile::wait_idle(drm_amdgpu_gem_wait_idle& wait, Lock& lock) {
  if (Answer refusal = buffers_.wait_idle(wait, jobs_, lock)) return refusal;
  return device_->unplugged ? refuse(ENODEV) : Answer();
}

// A number for the file's address space alone: the simulated device never shares them, so there is nothing to do.
Answer DeviceFile::reserve(drm_amdgpu_vm& vm) {
  if (vm.in.flags != 0) return refuse(EINVAL, "address space operation with flags " + hex(vm.in.flags));
  if (vm.in.op != AMDGPU_VM_OP_RESERVE_VMID && vm.in.op != AMDGPU_VM_OP_UNRESERVE_VMID) {
    return refuse(EINVAL, "address space operation " + std::to_string(vm.in.op));
  }
  vm = {};
  return {};
}

Answer DeviceFile::fence_to_handle(drm_amdgpu_fence_to_handle& convert) {
  const std::uint32_t what = convert.in.what;
  if (what > AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD || convert.in.pad != 0) {
    return refuse(EINVAL, "fence turned into " + std::to_string(what));
  }
  JobFences job;
  if (Answer refusal = contexts_.find_job(convert.in.fence, job)) return refusal;
  const FencePtr fence = job.finished == nullptr ? signaled_fence() : job.finished;
  auto object = std::make_shared<SyncObject>();
  object->replace(fence);
  convert = {};
  if (what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ) {
    convert.out.handle = sync_objects_.add(std::move(object));
    return {};
  }
  auto fd = what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD ? device_->descriptors.export_object(object)
                                                          : device_->descriptors.export_fences({fence});
  if (!fd) return refuse(EMFILE, "export of a fence: no descriptor is left");
  convert.out.handle = static_cast<std::uint32_t>(fd->release());
  return {};
}

namespace {

constexpr std::uint32_t query_max_buffers = 0x22;  // younger than the system header

// As much of the value as the caller has room for.
template <class T>
Answer give(const drm_amdgpu_info& query, const T& value) {
  // NOLINTNEXTLINE: an address that the program gives as a number
  std::memcpy(reinterpret_cast<void*>(query.return_pointer), &value,
              std::min<std::size_t>(query.return_size, sizeof value));
  return {};
}

const HardwareBlock* find_block(const Device& device, std::uint32_t type) {
  const auto& blocks = device.target.blocks;
  const auto at = std::find_if(blocks.begin(), blocks.end(), [type](const auto& block) { return block.type == type; });
  return at == blocks.end() ? nullptr : &*at;
}

// A block that the device lacks has no rings, as the kernel says it of blocks that are switched off.
Answer give_block(const Device& device, const drm_amdgpu_info& query) {
  const auto& asked = query.query_hw_ip;
  if (asked.type >= AMDGPU_HW_IP_NUM || asked.ip_instance >= AMDGPU_HW_IP_INSTANCE_MAX_COUNT) {
    return refuse(EINVAL,
                  "facts of block " + std::to_string(asked.type) + ", instance " + std::to_string(asked.ip_instance));
  }
  drm_amdgpu_info_hw_ip facts{};
  if (const HardwareBlock* block = find_block(device, asked.type)) {
    facts.hw_ip_version_major = block->major;
    facts.hw_ip_version_minor = block->minor;
    facts.ib_start_alignment = block->start_alignment;
    facts.ib_size_alignment = block->size_alignment;
    facts.available_rings = (1u << block->rings) - 1;
    facts._pad = block->discovery;  // what later headers call ip_discovery_version
  }
  return give(query, facts);
}

Answer give_firmware(const Device& device, const drm_amdgpu_info& query) {
  const auto& asked = query.query_fw;
  if (asked.fw_type == 0 || asked.fw_type > AMDGPU_INFO_FW_TOC || asked.ip_instance != 0) {
    return refuse(EINVAL, "version of firmware " + std::to_string(asked.fw_type) + ", instance " +
                              std::to_string(asked.ip_instance));
  }
  const auto& all = device.target.firmware;
  const auto at = std::find_if(all.begin(), all.end(), [&](const Firmware& one) { return one.type == asked.fw_type; });
  drm_amdgpu_info_firmware facts{};  // 0: it has none of that kind
  if (at != all.end()) facts = {at->version, at->feature};
  return give(query, facts);
}

Answer give_register(const Device& device, const drm_amdgpu_info& query) {
  const auto& asked = query.read_mmr_reg;
  const Register& known = device.target.address_configuration;
  if (asked.count != 1 || asked.dword_offset != known.dword || asked.flags != 0) {
    return refuse(EINVAL, "read of " + std::to_string(asked.count) + " registers at dword " + hex(asked.dword_offset) +
                              ": " + hex(known.dword) + " alone may be read");
  }
  return give(query, known.value);
}

drm_amdgpu_heap_info heap(std::uint64_t bytes, std::uint64_t used) { return {bytes, bytes, used, bytes / 4 * 3}; }

Answer give_memory(const Device& device, const drm_amdgpu_info& query) {
  const drm_amdgpu_heap_info vram = heap(device.target.vram_bytes, device.heap_use->vram);
  return give(query, drm_amdgpu_memory_info{vram, vram, heap(device.target.gtt_bytes, device.heap_use->gtt)});
}

Answer give_max_buffers(const Device& device, const drm_amdgpu_info& query) {
  std::array<std::uint32_t, AMDGPU_HW_IP_NUM> most{};
  for (const HardwareBlock& block : device.target.blocks) most[block.type] = block.buffers;
  return give(query, most);
}

}  // namespace

Answer answer_info(const Device& device, const drm_amdgpu_info& query) {
  if (query.return_pointer == 0 || query.return_size == 0)
    return refuse(EINVAL, "query " + hex(query.query) + " without room for its answer");
  const Target& target = device.target;
  const auto counter = [&query](std::uint64_t value) { return give(query, value); };
  switch (query.query) {
    case AMDGPU_INFO_ACCEL_WORKING:
      return give(query, std::uint32_t{1});
    case AMDGPU_INFO_HW_IP_INFO:
      return give_block(device, query);
    case AMDGPU_INFO_HW_IP_COUNT:
      if (query.query_hw_ip.type >= AMDGPU_HW_IP_NUM)
        return refuse(EINVAL, "count of block " + std::to_string(query.query_hw_ip.type));
      return give(query, std::uint32_t{find_block(device, query.query_hw_ip.type) == nullptr ? 0u : 1u});
    case AMDGPU_INFO_TIMESTAMP:
      return counter(device.clock_ticks());
    case AMDGPU_INFO_FW_VERSION:
      return give_firmware(device, query);
    case AMDGPU_INFO_VRAM_USAGE:
    case AMDGPU_INFO_VIS_VRAM_USAGE:
      return counter(device.heap_use->vram);
    case AMDGPU_INFO_GTT_USAGE:
      return counter(device.heap_use->gtt);
    case AMDGPU_INFO_NUM_BYTES_MOVED:  // nothing is ever moved or evicted
    case AMDGPU_INFO_NUM_EVICTIONS:
    case AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS:
    case AMDGPU_INFO_RAS_ENABLED_FEATURES:
      return counter(0);
    case AMDGPU_INFO_GDS_CONFIG:  // no on-chip memory is simulated
      return give(query, drm_amdgpu_info_gds{});
    case AMDGPU_INFO_VRAM_GTT:
      return give(query, drm_amdgpu_info_vram_gtt{target.vram_bytes, target.vram_bytes, target.gtt_bytes});
    case AMDGPU_INFO_READ_MMR_REG:
      return give_register(device, query);
    case AMDGPU_INFO_DEV_INFO:
      return give(query, target.figures);
    case AMDGPU_INFO_MEMORY:
      return give_memory(device, query);
    case AMDGPU_INFO_VRAM_LOST_COUNTER:
      return give(query, device.counters.vram_losses);
    case AMDGPU_INFO_VIDEO_CAPS:  // no codec
      if (query.video_cap.type > AMDGPU_INFO_VIDEO_CAPS_ENCODE)
        return refuse(EINVAL, "video abilities " + std::to_string(query.video_cap.type));
      return give(query, drm_amdgpu_info_video_caps{});
    case query_max_buffers:
      return give_max_buffers(device, query);
    default:
      return refuse(EINVAL, "query " + hex(query.query) + ", which is not known");
  }
}

namespace {

int merge(Device& device, const Fences& first, sync_merge_data& data) {
  const auto second = device.descriptors.fences_behind(data.fd2);
  if (!second || data.flags != 0 || data.pad != 0) return second ? EINVAL : ENOENT;
  Fences both = first;
  both.insert(both.end(), second->begin(), second->end());
  auto fd = device.descriptors.export_fences(std::move(both));
  if (!fd) return EMFILE;
  data.fence = fd->release();
  return 0;
}

// 1: reached, 0: not yet, below: the error of a job.
std::int32_t status_of(const Fence& fence) { return fence.signaled ? (fence.error == 0 ? 1 : -fence.error) : 0; }

int describe(const Fences& fences, ::sync_file_info& info) {
  if (info.flags != 0 || info.pad != 0) return EINVAL;
  const std::uint32_t room = info.num_fences;
  info.status = 1;
  for (const FencePtr& fence : fences) info.status = std::min(info.status, status_of(*fence));
  std::snprintf(info.name, sizeof info.name, "kiln-sim");
  info.num_fences = static_cast<std::uint32_t>(fences.size());
  if (room == 0) return 0;
  if (room < fences.size() || info.sync_fence_info == 0) return EINVAL;
  for (std::size_t i = 0; i < fences.size(); ++i) {
    ::sync_fence_info one{};
    std::snprintf(one.obj_name, sizeof one.obj_name, "job");
    std::snprintf(one.driver_name, sizeof one.driver_name, "amdgpu");
    one.status = status_of(*fences[i]);
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(reinterpret_cast<std::byte*>(info.sync_fence_info) + i * sizeof one, &one, sizeof one);
  }
  return 0;
}

}  // namespace

bool is_sync_file(Device& device, int fd) {
  const std::scoped_lock lock(device.mutex);
  return device.descriptors.fences_behind(fd).has_value();
}

int control_sync_file(Device& device, int fd, unsigned long request, void* argument) {
  const std::scoped_lock lock(device.mutex);
  const auto fences = device.descriptors.fences_behind(fd);
  if (!fences) return EBADF;
  if (argument == nullptr) return EFAULT;
  if (request == SYNC_IOC_MERGE) return merge(device, *fences, *static_cast<sync_merge_data*>(argument));
  if (request == SYNC_IOC_FILE_INFO) return describe(*fences, *static_cast<::sync_file_info*>(argument));
  device.journal.write("ioctl " + hex(request) + " of a fence's descriptor is not known");
  return ENOTTY;
}

}  // namespace kiln::simulator::kernel
