#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "support.hpp"

namespace kiln::simulator::kernel::test {
namespace {

template <class T>
int ask(TestFile& file, drm_amdgpu_info query, T& answer) {
  query.return_pointer = reinterpret_cast<std::uint64_t>(&answer);
  query.return_size = sizeof answer;
  return file.control(DRM_IOCTL_AMDGPU_INFO, query);
}

drm_amdgpu_info query_of(std::uint32_t number) {
  drm_amdgpu_info query{};
  query.query = number;
  return query;
}

drm_amdgpu_info block_query(std::uint32_t number, std::uint32_t type) {
  drm_amdgpu_info query = query_of(number);
  query.query_hw_ip.type = type;
  return query;
}

}  // namespace

TEST_CASE("simulated kernel: the version says that it is simulated") {
  TestDevice device("", "gfx1030");
  TestFile file(device);
  drm_version lengths{};
  REQUIRE(file.control(DRM_IOCTL_VERSION, lengths) == 0);
  std::string name(lengths.name_len, ' '), description(lengths.desc_len, ' ');
  drm_version version{};
  version.name = name.data();
  version.name_len = name.size();
  version.desc = description.data();
  version.desc_len = description.size();
  REQUIRE(file.control(DRM_IOCTL_VERSION, version) == 0);
  CHECK(name == "amdgpu");
  CHECK(description == "AMD GPU (kiln-simulated gfx1030)");
  CHECK(version.version_major == 3);
}

TEST_CASE("simulated kernel: the device tells its figures, as much as there is room for") {
  TestDevice device;
  TestFile file(device);
  drm_amdgpu_info_device facts{};
  REQUIRE(ask(file, query_of(AMDGPU_INFO_DEV_INFO), facts) == 0);
  CHECK(facts.device_id == 0x744c);
  CHECK(facts.family == 145);
  CHECK(facts.cu_active_number == 96);
  std::uint32_t id = 0;
  REQUIRE(ask(file, query_of(AMDGPU_INFO_DEV_INFO), id) == 0);
  CHECK(id == 0x744c);
  DeviceFigures all;
  REQUIRE(ask(file, query_of(AMDGPU_INFO_DEV_INFO), all) == 0);
  CHECK(all.gl2c_cache_kib == 6144);
}

TEST_CASE("simulated kernel: blocks, firmware, registers, limits") {
  TestDevice device;
  TestFile file(device);
  drm_amdgpu_info_hw_ip block{};
  REQUIRE(ask(file, block_query(AMDGPU_INFO_HW_IP_INFO, AMDGPU_HW_IP_COMPUTE), block) == 0);
  CHECK(block.available_rings == 0xf);
  CHECK(block.hw_ip_version_major == 11);
  CHECK(block._pad == 0x0b0000);
  REQUIRE(ask(file, block_query(AMDGPU_INFO_HW_IP_INFO, AMDGPU_HW_IP_DMA), block) == 0);
  CHECK(block.available_rings == 0);
  CHECK(ask(file, block_query(AMDGPU_INFO_HW_IP_INFO, AMDGPU_HW_IP_NUM), block) == EINVAL);
  std::uint32_t count = 9;
  REQUIRE(ask(file, block_query(AMDGPU_INFO_HW_IP_COUNT, AMDGPU_HW_IP_GFX), count) == 0);
  CHECK(count == 1);

  drm_amdgpu_info query = query_of(AMDGPU_INFO_FW_VERSION);
  query.query_fw.fw_type = AMDGPU_INFO_FW_GFX_MEC;
  drm_amdgpu_info_firmware firmware{};
  REQUIRE(ask(file, query, firmware) == 0);
  CHECK(firmware.ver == 494);
  query.query_fw.fw_type = 0x7f;
  CHECK(ask(file, query, firmware) == EINVAL);

  query = query_of(AMDGPU_INFO_READ_MMR_REG);
  query.read_mmr_reg = {0x263e, 1, ~0u, 0};
  std::uint32_t value = 0;
  REQUIRE(ask(file, query, value) == 0);
  CHECK(value == 0x545);
  query.read_mmr_reg.dword_offset = 0x2000;
  CHECK(ask(file, query, value) == EINVAL);

  std::array<std::uint32_t, AMDGPU_HW_IP_NUM> most{};
  REQUIRE(ask(file, query_of(0x22), most) == 0);
  CHECK(most[AMDGPU_HW_IP_COMPUTE] == 125);
}

TEST_CASE("simulated kernel: memory in use rises with buffers and falls with them") {
  TestDevice device;
  TestFile file(device);
  drm_amdgpu_memory_info memory{};
  REQUIRE(ask(file, query_of(AMDGPU_INFO_MEMORY), memory) == 0);
  CHECK(memory.vram.heap_usage == 0);
  CHECK(memory.cpu_accessible_vram.total_heap_size == memory.vram.total_heap_size);
  const std::uint32_t vram = file.buffer(1 << 20);
  const std::uint32_t gtt = file.buffer(5000, AMDGPU_GEM_DOMAIN_GTT);
  REQUIRE(ask(file, query_of(AMDGPU_INFO_MEMORY), memory) == 0);
  CHECK(memory.vram.heap_usage == 1 << 20);
  CHECK(memory.gtt.heap_usage == 8192);
  CHECK(file.close(vram) == 0);
  CHECK(file.close(gtt) == 0);
  std::uint64_t used = 1;
  REQUIRE(ask(file, query_of(AMDGPU_INFO_GTT_USAGE), used) == 0);
  CHECK(used == 0);
}

TEST_CASE("simulated kernel: the clock of the device runs with its frequency") {
  TestDevice device;
  TestFile file(device);
  std::uint64_t first = 0, second = 0;
  const std::int64_t began = in_ms(0);
  REQUIRE(ask(file, query_of(AMDGPU_INFO_TIMESTAMP), first) == 0);
  while (in_ms(0) < began + 5'000'000) {
  }
  REQUIRE(ask(file, query_of(AMDGPU_INFO_TIMESTAMP), second) == 0);
  const std::int64_t ended = in_ms(0);
  CHECK(second > first);
  CHECK(second - first <= static_cast<std::uint64_t>((ended - began) / 10 + 1));  // 100 MHz
  CHECK(second - first >= 400'000);
  for (unsigned i = 0; i < 50; ++i) {  // in ticks of the host's own clock, of 10 ns
    const std::int64_t before = in_ms(0) / 10;
    REQUIRE(ask(file, query_of(AMDGPU_INFO_TIMESTAMP), first) == 0);
    CHECK(first >= static_cast<std::uint64_t>(before));
    CHECK(first <= static_cast<std::uint64_t>(in_ms(0) / 10));
  }
}

TEST_CASE("simulated kernel: what is not known is refused, and the journal says what it was") {
  TestDevice device;
  TestFile file(device);
  std::uint64_t answer = 0;
  CHECK(ask(file, query_of(0x77), answer) == EINVAL);
  CHECK_THAT(device.journal(), Catch::Contains("INFO refused with errno 22: query 0x77"));
  drm_amdgpu_info empty = query_of(AMDGPU_INFO_ACCEL_WORKING);
  CHECK(file.control(DRM_IOCTL_AMDGPU_INFO, empty) == EINVAL);
  CHECK(file.control(DRM_IOCTL_MODE_GETRESOURCES, answer) == EINVAL);
  CHECK(file.control(_IOWR('x', 0, int), answer) == EINVAL);
  CHECK_THAT(device.journal(), Catch::Contains("is not known"));
  CHECK(file.file.control(DRM_IOCTL_VERSION, nullptr) == EFAULT);
  union drm_amdgpu_sched schedule {};
  CHECK(file.control(DRM_IOCTL_AMDGPU_SCHED, schedule) == EACCES);
  union drm_amdgpu_vm vm {};
  vm.in.op = AMDGPU_VM_OP_RESERVE_VMID;
  CHECK(file.control(DRM_IOCTL_AMDGPU_VM, vm) == 0);
  vm.in = {7, 0};
  CHECK(file.control(DRM_IOCTL_AMDGPU_VM, vm) == EINVAL);
}

TEST_CASE("simulated kernel: abilities are those of a device without a display") {
  TestDevice device;
  TestFile file(device);
  for (const std::uint64_t one : {DRM_CAP_SYNCOBJ, DRM_CAP_SYNCOBJ_TIMELINE, DRM_CAP_TIMESTAMP_MONOTONIC}) {
    drm_get_cap capability{one, 0};
    CHECK(file.control(DRM_IOCTL_GET_CAP, capability) == 0);
    CHECK(capability.value == 1);
  }
  drm_get_cap prime{DRM_CAP_PRIME, 0};
  CHECK(file.control(DRM_IOCTL_GET_CAP, prime) == 0);
  CHECK(prime.value == 3);
  drm_get_cap display{DRM_CAP_ADDFB2_MODIFIERS, 0};
  CHECK(file.control(DRM_IOCTL_GET_CAP, display) == EOPNOTSUPP);
  drm_get_cap unknown{0x99, 0};
  CHECK(file.control(DRM_IOCTL_GET_CAP, unknown) == EINVAL);
}

TEST_CASE("simulated kernel: an argument of another size is cut or filled with zeros") {
  TestDevice device;
  TestFile file(device);
  struct Longer {
    drm_syncobj_create create{0, 0};
    std::uint64_t more = 77;
  } longer;
  CHECK(file.control(_IOC(_IOC_READ | _IOC_WRITE, 'd', 0xbf, sizeof longer), longer) == 0);
  CHECK(longer.create.handle != 0);
  CHECK(longer.more == 77);
  drm_syncobj_create shorter{0, 0xFFFF};  // the flags are not part of it
  CHECK(file.control(_IOC(_IOC_READ | _IOC_WRITE, 'd', 0xbf, 4), shorter) == 0);
  CHECK(shorter.handle == longer.create.handle + 1);
  CHECK(shorter.flags == 0xFFFF);
  drm_syncobj_create unread{0, 0};
  CHECK(file.control(_IOC(_IOC_WRITE, 'd', 0xbf, sizeof unread), unread) == 0);
  CHECK(unread.handle == 0);
  drm_syncobj_create unwritten{0, 0};
  CHECK(file.control(_IOC(_IOC_READ, 'd', 0xbf, sizeof unwritten), unwritten) == 0);
  CHECK(unwritten.handle == longer.create.handle + 3);
  CHECK(file.control(_IOC(_IOC_READ | _IOC_WRITE, 'e', 0xbf, sizeof unread), unread) == EINVAL);
  drm_amdgpu_gem_create_in whole{};  // other than the interface's own argument
  CHECK(file.control(_IOC(_IOC_READ | _IOC_WRITE, 'd', 0x3f, sizeof whole), whole) == EINVAL);
}

TEST_CASE("simulated kernel: blocks and firmware of either card, and no others") {
  struct Card {
    const char* name;
    std::uint32_t major, discovery, register_value;
    std::uint32_t firmware[3][2];
    std::uint64_t vram;
  };
  const Card cards[] = {{"gfx1100", 11, 0x0b0000, 0x545, {{1486, 29}, {1525, 29}, {494, 29}}, 25'753'026'560},
                        {"gfx1030", 10, 0x0a0300, 0x444, {{64, 42}, {95, 42}, {104, 42}}, 17'163'091'968}};
  for (const Card& card : cards) {
    CAPTURE(card.name);
    TestDevice device("", card.name);
    TestFile file(device);
    for (std::uint32_t type = 0; type < AMDGPU_HW_IP_NUM; ++type) {
      CAPTURE(type);
      const bool compute = type == AMDGPU_HW_IP_COMPUTE, there = compute || type == AMDGPU_HW_IP_GFX;
      drm_amdgpu_info_hw_ip block{};
      REQUIRE(ask(file, block_query(AMDGPU_INFO_HW_IP_INFO, type), block) == 0);
      CHECK(block.hw_ip_version_major == (there ? card.major : 0));
      CHECK(block.hw_ip_version_minor == 0);
      CHECK(block.ib_start_alignment == (there ? 32 : 0));
      CHECK(block.ib_size_alignment == (there ? 32 : 0));
      CHECK(block.available_rings == (compute ? 0xf : there ? 1 : 0));
      CHECK(block._pad == (there ? card.discovery : 0));
      std::uint32_t count = 9;
      REQUIRE(ask(file, block_query(AMDGPU_INFO_HW_IP_COUNT, type), count) == 0);
      CHECK(count == (there ? 1 : 0));
    }
    std::uint32_t count = 9;
    CHECK(ask(file, block_query(AMDGPU_INFO_HW_IP_COUNT, AMDGPU_HW_IP_NUM), count) == EINVAL);
    drm_amdgpu_info query = block_query(AMDGPU_INFO_HW_IP_INFO, AMDGPU_HW_IP_GFX);
    query.query_hw_ip.ip_instance = 1;
    CHECK(ask(file, query, count) == EINVAL);
    std::array<std::uint32_t, AMDGPU_HW_IP_NUM> most{};
    REQUIRE(ask(file, query_of(0x22), most) == 0);
    CHECK(most == std::array<std::uint32_t, AMDGPU_HW_IP_NUM>{192, 125});

    query = query_of(AMDGPU_INFO_FW_VERSION);
    constexpr std::uint32_t kinds[] = {AMDGPU_INFO_FW_GFX_ME, AMDGPU_INFO_FW_GFX_PFP, AMDGPU_INFO_FW_GFX_MEC};
    for (std::uint32_t type = 0; type < AMDGPU_INFO_FW_TOC + 2; ++type) {
      CAPTURE(type);
      drm_amdgpu_info_firmware firmware{77, 77};
      query.query_fw.fw_type = type;
      const bool known = type != 0 && type <= AMDGPU_INFO_FW_TOC;
      REQUIRE(ask(file, query, firmware) == (known ? 0 : EINVAL));
      if (!known) continue;
      const auto at = static_cast<std::size_t>(std::find(kinds, kinds + 3, type) - kinds);
      CHECK(firmware.ver == (at < 3 ? card.firmware[at][0] : 0));
      CHECK(firmware.feature == (at < 3 ? card.firmware[at][1] : 0));
    }
    drm_amdgpu_info_firmware firmware{};
    query.query_fw = {AMDGPU_INFO_FW_GFX_ME, 1, 0, 0};
    CHECK(ask(file, query, firmware) == EINVAL);

    query = query_of(AMDGPU_INFO_READ_MMR_REG);
    query.read_mmr_reg = {0x263e, 1, ~0u, 0};
    std::uint32_t value = 0;
    REQUIRE(ask(file, query, value) == 0);
    CHECK(value == card.register_value);
    query.read_mmr_reg = {0x263e, 2, ~0u, 0};
    CHECK(ask(file, query, value) == EINVAL);
    query.read_mmr_reg = {0x263e, 1, ~0u, 1};
    CHECK(ask(file, query, value) == EINVAL);

    drm_amdgpu_info_vram_gtt sizes{};
    REQUIRE(ask(file, query_of(AMDGPU_INFO_VRAM_GTT), sizes) == 0);
    CHECK(sizes.vram_size == card.vram);
    CHECK(sizes.vram_cpu_accessible_size == card.vram);
    CHECK(sizes.gtt_size == 16'746'784'768);
    drm_amdgpu_memory_info memory{};
    REQUIRE(ask(file, query_of(AMDGPU_INFO_MEMORY), memory) == 0);
    for (const auto& heap : {memory.vram, memory.cpu_accessible_vram}) {
      CHECK(heap.total_heap_size == card.vram);
      CHECK(heap.usable_heap_size == card.vram);
      CHECK(heap.max_allocation == card.vram / 4 * 3);
    }
    CHECK(memory.gtt.total_heap_size == 16'746'784'768);
    CHECK(memory.gtt.max_allocation == 12'560'088'576);
  }
}

TEST_CASE("simulated kernel: queries of state that never changes, and of room that is not there") {
  TestDevice device;
  TestFile file(device);
  std::uint32_t works = 0;
  CHECK(ask(file, query_of(AMDGPU_INFO_ACCEL_WORKING), works) == 0);
  CHECK(works == 1);
  for (const std::uint32_t number : {AMDGPU_INFO_NUM_BYTES_MOVED, AMDGPU_INFO_NUM_EVICTIONS,
                                     AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS, AMDGPU_INFO_RAS_ENABLED_FEATURES}) {
    std::uint64_t count = 9;
    CHECK(ask(file, query_of(number), count) == 0);
    CHECK(count == 0);
  }
  drm_amdgpu_info_gds memory;
  std::memset(&memory, 7, sizeof memory);
  CHECK(ask(file, query_of(AMDGPU_INFO_GDS_CONFIG), memory) == 0);
  CHECK(memory.gds_total_size == 0);
  for (const std::uint32_t type : {0U, 1U, 2U}) {
    drm_amdgpu_info query = query_of(AMDGPU_INFO_VIDEO_CAPS);
    query.video_cap.type = type;
    drm_amdgpu_info_video_caps abilities;
    std::memset(&abilities, 7, sizeof abilities);
    CHECK(ask(file, query, abilities) == (type < 2 ? 0 : EINVAL));
    CHECK(abilities.codec_info[7].valid == (type < 2 ? 0 : 0x0707'0707));
  }
  static_cast<void>(file.buffer(1 << 20));
  static_cast<void>(file.buffer(4096, AMDGPU_GEM_DOMAIN_GTT));
  for (const std::uint32_t number : {AMDGPU_INFO_VRAM_USAGE, AMDGPU_INFO_VIS_VRAM_USAGE, AMDGPU_INFO_GTT_USAGE}) {
    std::uint64_t used = 0;
    CHECK(ask(file, query_of(number), used) == 0);
    CHECK(used == (number == AMDGPU_INFO_GTT_USAGE ? 4096 : 1 << 20));
  }
  drm_amdgpu_info query = query_of(AMDGPU_INFO_ACCEL_WORKING);
  query.return_pointer = reinterpret_cast<std::uint64_t>(&works);
  CHECK(file.control(DRM_IOCTL_AMDGPU_INFO, query) == EINVAL);  // no bytes of room
  query = query_of(AMDGPU_INFO_ACCEL_WORKING);
  query.return_size = 4;
  CHECK(file.control(DRM_IOCTL_AMDGPU_INFO, query) == EINVAL);  // room at address 0
}

TEST_CASE("simulated kernel: texts of the version are cut to the room there is") {
  TestDevice device;
  TestFile file(device);
  char name[6] = "-----", date[] = "--------";
  drm_version version{};
  version.name = name;
  version.name_len = 3;
  version.date = date;
  version.date_len = 8;
  REQUIRE(file.control(DRM_IOCTL_VERSION, version) == 0);
  CHECK(std::string(name) == "amd--");
  CHECK(std::string(date) == "20150101");
  CHECK(version.name_len == 6);
  CHECK(version.date_len == 8);
  CHECK(version.desc_len == std::strlen("AMD GPU (kiln-simulated gfx1100)"));
  CHECK(version.version_minor == 54);
  CHECK(version.version_patchlevel == 0);
}

TEST_CASE("simulated kernel: a number for the address space is given and taken back") {
  TestDevice device;
  TestFile file(device);
  union drm_amdgpu_vm vm {};
  for (const auto& [operation, flags, error] : {std::tuple(AMDGPU_VM_OP_RESERVE_VMID, 0, 0),
                                                {AMDGPU_VM_OP_UNRESERVE_VMID, 0, 0},
                                                {0, 0, EINVAL},
                                                {3, 0, EINVAL},
                                                {AMDGPU_VM_OP_RESERVE_VMID, 1, EINVAL}}) {
    vm.in = {static_cast<std::uint32_t>(operation), static_cast<std::uint32_t>(flags)};
    CHECK(file.control(DRM_IOCTL_AMDGPU_VM, vm) == error);
  }
}

TEST_CASE("simulated kernel: on demand every ioctl is told of") {
  TestDevice device;
  Settings settings = device.device->settings;
  settings.trace = true;
  const auto traced = std::make_shared<Device>(settings, std::make_unique<TestEngine>());
  DeviceFile file(traced);
  drm_get_cap capability{DRM_CAP_SYNCOBJ, 0};
  CHECK(file.control(DRM_IOCTL_GET_CAP, &capability) == 0);
  drm_get_cap display{DRM_CAP_ADDFB2_MODIFIERS, 0};
  CHECK(file.control(DRM_IOCTL_GET_CAP, &display) == EOPNOTSUPP);
  CHECK_THAT(device.journal(), Catch::Contains("]: GET_CAP\n") && Catch::Contains("]: GET_CAP: errno 95\n"));
  TestFile quiet(device);
  const std::string before = device.journal();
  CHECK(quiet.control(DRM_IOCTL_GET_CAP, capability) == 0);
  CHECK(device.journal() == before);
}

}  // namespace kiln::simulator::kernel::test
