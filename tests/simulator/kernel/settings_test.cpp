#include <catch2/catch.hpp>
#include <initializer_list>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/kernel/settings.hpp"

namespace kiln::simulator::kernel {
namespace {

struct Environment {
  std::map<std::string, std::string> variables;
  Settings settings;
  std::string reason;

  bool read() {
    return read_settings(
        [this](const char* name) {
          const auto at = variables.find(name);
          return at == variables.end() ? nullptr : at->second.c_str();
        },
        settings, reason);
  }
};

}  // namespace

TEST_CASE("simulated kernel: a plan says which submission goes wrong") {
  FaultPlan plan;
  std::string reason;
  REQUIRE(FaultPlan::parse("hang@3,enomem@5+,enomem_buffer@2", plan, reason));
  CHECK(plan.at_submission(1) == PlannedFault::invalid);
  CHECK(plan.at_submission(2) == PlannedFault::invalid);
  CHECK(plan.at_submission(3) == PlannedFault::hang);
  CHECK(plan.at_submission(4) == PlannedFault::invalid);
  CHECK(plan.at_submission(5) == PlannedFault::enomem);
  CHECK(plan.at_submission(500) == PlannedFault::enomem);
  CHECK(plan.fails_buffer(2));
  CHECK_FALSE(plan.fails_buffer(3));
}

TEST_CASE("simulated kernel: every fault has its name") {
  for (const char* name : {"hang", "vram_lost", "page_fault", "cancelled", "enomem", "einval", "unplugged"}) {
    FaultPlan plan;
    std::string reason;
    REQUIRE(FaultPlan::parse(std::string(name) + "@1", plan, reason));
    CHECK(to_string(plan.at_submission(1)) == name);
  }
}

TEST_CASE("simulated kernel: what is no plan is refused with the word") {
  for (const char* text :
       {"hang", "hang@", "hang@0", "hang@x", "hang@1x", "fire@1", "hang@1,,einval@2", "@1", "hang@-1"}) {
    FaultPlan plan;
    std::string reason;
    CAPTURE(text);
    CHECK_FALSE(FaultPlan::parse(text, plan, reason));
    CHECK_THAT(reason, Catch::Contains("is no fault") && Catch::Contains("unplugged"));
    CHECK(plan.at_submission(1) == PlannedFault::invalid);
  }
}

TEST_CASE("simulated kernel: the environment chooses the device") {
  Environment environment;
  REQUIRE(environment.read());
  CHECK(environment.settings.target->name == "gfx1100");
  CHECK(environment.settings.log_path.empty());
  CHECK_FALSE(environment.settings.trace);
  CHECK(environment.settings.watchdog == std::chrono::seconds(60));
  CHECK_FALSE(environment.settings.schedule_seed);
  CHECK_FALSE(environment.settings.check);
  environment.variables = {{"KILN_SIM_TARGET", "gfx1030"},   {"KILN_SIM_LOG", "/tmp/some.log"},
                           {"KILN_SIM_TRACE", "1"},          {"KILN_SIM_LOCKUP_MS", "7"},
                           {"KILN_SIM_WATCHDOG_MS", "1500"}, {"KILN_SIM_SCHEDULE", "0"},
                           {"KILN_SIM_FAULT", "hang@1"},     {"KILN_SIM_CHECK", "1"}};
  REQUIRE(environment.read());
  CHECK(environment.settings.target->generation == Generation::gfx10_3);
  CHECK(environment.settings.log_path == "/tmp/some.log");
  CHECK(environment.settings.trace);
  CHECK(environment.settings.lockup == std::chrono::milliseconds(7));
  CHECK(environment.settings.watchdog == std::chrono::milliseconds(1500));
  CHECK(environment.settings.schedule_seed == 0U);
  CHECK(environment.settings.check);
  CHECK(environment.settings.faults.at_submission(1) == PlannedFault::hang);
}

TEST_CASE("simulated kernel: a variable that makes no sense is named") {
  const std::map<std::string, std::string> wrong = {
      {"KILN_SIM_TARGET", "gfx906"},  {"KILN_SIM_TRACE", "yes"},     {"KILN_SIM_CAPTURE", "/no/such/folder"},
      {"KILN_SIM_LOCKUP_MS", "soon"}, {"KILN_SIM_WATCHDOG_MS", "0"}, {"KILN_SIM_SCHEDULE", "-1"},
      {"KILN_SIM_FAULT", "hang"},     {"KILN_SIM_CHECK", "on"}};
  for (const auto& [name, value] : wrong) {
    Environment environment;
    environment.variables[name] = value;
    CHECK_FALSE(environment.read());
    CHECK_THAT(environment.reason, Catch::StartsWith(name + ": ") && Catch::Contains("'" + value + "'"));
  }
}

TEST_CASE("simulated kernel: the figures are those of the two cards") {
  const auto figures = [](const DeviceFigures& all) {
    const drm_amdgpu_info_device& one = all.base;
    return std::vector<std::pair<const char*, std::uint64_t>>{
        {"device", one.device_id},
        {"chip revision", one.chip_rev},
        {"external revision", one.external_rev},
        {"revision on the bus", one.pci_rev},
        {"family", one.family},
        {"engines", one.num_shader_engines},
        {"arrays of an engine", one.num_shader_arrays_per_engine},
        {"counter", one.gpu_counter_freq},
        {"engine clock", one.max_engine_clock},
        {"memory clock", one.max_memory_clock},
        {"units", one.cu_active_number},
        {"units always on", one.cu_ao_mask},
        {"render backends", one.enabled_rb_pipes_mask},
        {"number of render backends", one.num_rb_pipes},
        {"graphics contexts", one.num_hw_gfx_contexts},
        {"low addresses", one.virtual_address_offset},
        {"end of low addresses", one.virtual_address_max},
        {"alignment of addresses", one.virtual_address_alignment},
        {"fragment", one.pte_fragment_size},
        {"page", one.gart_page_size},
        {"constant engine memory", one.ce_ram_size},
        {"kind of memory", one.vram_type},
        {"width of memory", one.vram_bit_width},
        {"double off-chip buffers", one.gc_double_offchip_lds_buf},
        {"wave", one.wave_front_size},
        {"registers", one.num_shader_visible_vgprs},
        {"units of an array", one.num_cu_per_sh},
        {"cache channels", one.num_tcc_blocks},
        {"vertex table", one.gs_vgt_table_depth},
        {"primitive buffer", one.gs_prim_buffer_depth},
        {"geometry waves", one.max_gs_waves_per_vgt},
        {"high addresses", one.high_va_offset},
        {"end of high addresses", one.high_va_max},
        {"lowest engine clock", all.min_engine_clock},
        {"lowest memory clock", all.min_memory_clock},
        {"vector cache", all.tcp_cache_kib},
        {"scalar caches", all.num_sqc_per_wgp},
        {"scalar cache", all.sqc_data_cache_kib},
        {"instruction cache", all.sqc_instruction_cache_kib},
        {"L1", all.gl1c_cache_kib},
        {"L2", all.gl2c_cache_kib},
        {"last cache", all.mall_bytes},
    };
  };
  constexpr std::uint64_t navi31[] = {0x744c,
                                      0,
                                      1,
                                      0xc8,
                                      145,
                                      6,
                                      2,
                                      100'000,
                                      2'371'000,
                                      1'249'000,
                                      96,
                                      0,
                                      0xffffff,
                                      24,
                                      8,
                                      0x200000,
                                      1ULL << 47,
                                      4096,
                                      2'097'152,
                                      4096,
                                      0,
                                      AMDGPU_VRAM_TYPE_GDDR6,
                                      384,
                                      1,
                                      32,
                                      1536,
                                      8,
                                      24,
                                      32,
                                      1792,
                                      32,
                                      0xffff'8000'0000'0000,
                                      0xffff'ffff'ffe0'0000,
                                      500'000,
                                      96'000,
                                      32,
                                      1,
                                      16,
                                      32,
                                      256,
                                      6144,
                                      100'663'296};
  constexpr std::uint64_t navi21[] = {0x73bf,
                                      1,
                                      0x29,
                                      0xc3,
                                      143,
                                      4,
                                      2,
                                      100'000,
                                      2'475'000,
                                      1'000'000,
                                      60,
                                      0x3ffff,
                                      0xff0f,
                                      16,
                                      8,
                                      0x200000,
                                      1ULL << 47,
                                      4096,
                                      2'097'152,
                                      4096,
                                      65536,
                                      AMDGPU_VRAM_TYPE_GDDR6,
                                      256,
                                      1,
                                      32,
                                      1024,
                                      10,
                                      16,
                                      32,
                                      1792,
                                      32,
                                      0xffff'8000'0000'0000,
                                      0xffff'ffff'ffe0'0000,
                                      500'000,
                                      96'000,
                                      0,
                                      0,
                                      0,
                                      0,
                                      0,
                                      0,
                                      134'217'728};
  // By row of the kernel's table, four columns each; engines 4 and 5 of six stand beside 0 and 1.
  constexpr std::uint32_t rows31[4][4] = {
      {0xff, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0xff, 0xff, 0, 0}, {0xff, 0xff, 0, 0}};
  constexpr std::uint32_t rows21[4][4] = {
      {0x3ff, 0x3ff, 0, 0}, {0, 0, 0, 0}, {0x3ff, 0x3ff, 0, 0}, {0x3ff, 0x3ff, 0, 0}};
  for (const bool young : {true, false}) {
    const Target* target = find_target(young ? "gfx1100" : "gfx1030");
    REQUIRE(target != nullptr);
    const DeviceFigures& answer = target->figures;
    const auto told = figures(answer);
    REQUIRE(told.size() == std::size(navi31));
    for (std::size_t i = 0; i < told.size(); ++i) {
      INFO(told[i].first);
      CHECK(told[i].second == (young ? navi31 : navi21)[i]);
    }
    for (unsigned engine = 0; engine < 4; ++engine) {
      for (unsigned column = 0; column < 4; ++column) {
        CAPTURE(engine, column);
        CHECK(answer.base.cu_bitmap[engine][column] == (young ? rows31 : rows21)[engine][column]);
        CHECK(answer.base.cu_ao_bitmap[engine][column] == (young ? rows31 : rows21)[engine][column]);
      }
    }
  }
}

TEST_CASE("simulated kernel: variables that are empty are as if they were not set") {
  Environment environment;
  for (const char* name :
       {"KILN_SIM_TARGET", "KILN_SIM_LOG", "KILN_SIM_TRACE", "KILN_SIM_CAPTURE", "KILN_SIM_LOCKUP_MS",
        "KILN_SIM_WATCHDOG_MS", "KILN_SIM_SCHEDULE", "KILN_SIM_FAULT", "KILN_SIM_CHECK"}) {
    environment.variables[name] = "";
  }
  REQUIRE(environment.read());
  CHECK(environment.settings.target->name == "gfx1100");
  CHECK_FALSE(environment.settings.trace);
  CHECK_FALSE(environment.settings.check);
  CHECK(environment.settings.capture_folder.empty());
  CHECK(environment.settings.lockup == std::chrono::milliseconds(200));
  CHECK(environment.settings.watchdog == std::chrono::milliseconds(60'000));
  CHECK_FALSE(environment.settings.schedule_seed);
}

TEST_CASE("simulated kernel: numbers of the environment are whole texts and in range") {
  for (const auto& [name, text, valid] : std::initializer_list<std::tuple<const char*, const char*, bool>>{
           {"KILN_SIM_LOCKUP_MS", "1", true},
           {"KILN_SIM_LOCKUP_MS", "0", false},
           {"KILN_SIM_LOCKUP_MS", "7x", false},
           {"KILN_SIM_LOCKUP_MS", " 7", false},
           {"KILN_SIM_LOCKUP_MS", "2147483647", true},
           {"KILN_SIM_LOCKUP_MS", "2147483648", false},
           {"KILN_SIM_SCHEDULE", "18446744073709551615", true},
           {"KILN_SIM_SCHEDULE", "18446744073709551616", false},
           {"KILN_SIM_SCHEDULE", "1 ", false},
           {"KILN_SIM_TRACE", "0", true},
           {"KILN_SIM_CHECK", "0", true},
           {"KILN_SIM_CAPTURE", "/", true}}) {
    Environment environment;
    environment.variables[name] = text;
    CAPTURE(name, text);
    CHECK(environment.read() == valid);
    CHECK(environment.reason.empty() == valid);
  }
}

TEST_CASE("simulated kernel: a plan of buffers is none of submissions, and what is no fault has no name") {
  FaultPlan plan;
  std::string reason;
  REQUIRE(FaultPlan::parse("enomem_buffer@2+,hang@4", plan, reason));
  CHECK(reason.empty());
  CHECK_FALSE(plan.fails_buffer(1));
  CHECK(plan.fails_buffer(2));
  CHECK(plan.fails_buffer(3));
  CHECK(plan.fails_buffer(4));
  CHECK(plan.at_submission(2) == PlannedFault::invalid);
  CHECK(plan.at_submission(4) == PlannedFault::hang);
  CHECK(to_string(PlannedFault::enomem_buffer) == "enomem_buffer");
  CHECK(to_string(PlannedFault::invalid) == "none");
  REQUIRE(FaultPlan::parse("", plan, reason));
  CHECK(plan.at_submission(4) == PlannedFault::invalid);
}

TEST_CASE("simulated kernel: the figures of a target agree with themselves") {
  for (const Target& target : targets()) {
    CAPTURE(target.name);
    const auto& device = target.figures.base;
    std::uint32_t units = 0;
    for (const auto& row : device.cu_bitmap) {
      for (const std::uint32_t mask : row) units += static_cast<std::uint32_t>(__builtin_popcount(mask));
    }
    CHECK(units == device.cu_active_number);
    CHECK(find_target(target.name) == &target);
    CHECK(device.virtual_address_max > device.virtual_address_offset);
    for (const HardwareBlock& block : target.blocks) CHECK(block.rings > 0);
  }
  CHECK(find_target("gfx1200") == nullptr);
}

}  // namespace kiln::simulator::kernel
