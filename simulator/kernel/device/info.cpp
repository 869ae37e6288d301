#include "simulator/kernel/device/info.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kiln::simulator::kernel {
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

}  // namespace kiln::simulator::kernel
