#include <catch2/catch.hpp>

#include <dlfcn.h>

#include <filesystem>

#include "cpu/cpu_under_test.hpp"

namespace kiln::cpu_test {

TEST_CASE("oneDNN enters the process with the first open, not before") {
  shared_cpu();
  CHECK_FALSE(onednn_preceded_open());
  CHECK(is_mapped("libdnnl"));
  CHECK(is_mapped("libkiln_onednn.so"));
}

TEST_CASE("the cpu device says what it is") {
  OpenedCpu& cpu = shared_cpu();
  const std::vector<DeviceInfo> listed = cpu.plugin.driver().enumerate();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].usable);
  CHECK(listed[0].driver == "oneDNN");  // its version is not known before it is loaded
  const DeviceInfo& info = cpu.device->info();
  CHECK(info.id == "cpu");
  CHECK(info.kind == DeviceKind::cpu);
  CHECK(info.name == listed[0].name);
  CHECK(info.device_identity == listed[0].device_identity);
  CHECK_THAT(info.driver, Catch::StartsWith("oneDNN "));
  CHECK(info.driver_identity.size() == 4);
  CHECK(info.dialects == std::vector{Dialect::library});
  CHECK(info.shared_resource == "host-cores");
  CHECK_FALSE(info.serializes);
  CHECK(info.wraps_host_memory);
  CHECK_FALSE(info.shares_memory);
  CHECK(info.roof_gflops == listed[0].roof_gflops);
}

TEST_CASE("an unknown device id is not found") {
  const auto device = shared_cpu().plugin.driver().open("cpu:1");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::not_found);
  CHECK_THAT(device.error().message, Catch::Contains("'cpu:1'"));
}

TEST_CASE("without its module the plugin loads, enumerates, and cannot open") {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "kiln-cpu-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  fs::create_directory(folder + "/plugins");
  const std::string copy = folder + "/plugins/cpu.so";
  fs::copy_file(KILN_PLUGIN_DIR "/cpu.so", copy);
  {
    void* library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded: the contract's rule
    REQUIRE(library != nullptr);
    const auto* entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
    REQUIRE(entry != nullptr);
    Registry registry;
    REQUIRE(entry->register_fn(registry, {entry->note.name, {}}).ok());
    auto driver = registry.drivers().at("cpu").make({});
    REQUIRE(driver.has_value());
    CHECK((*driver)->enumerate().size() == 1);
    const auto device = (*driver)->open("cpu");
    REQUIRE_FALSE(device.has_value());
    CHECK(device.error().code == StatusCode::unavailable);
    CHECK_THAT(device.error().message, Catch::Contains(folder + "/libkiln_onednn.so"));
    CHECK_THAT(device.error().message, Catch::Contains("No such file"));
  }
  fs::remove_all(folder);
}

TEST_CASE("the plugin publishes its settings, and the number of threads enters the identity") {
  OpenedCpu& cpu = shared_cpu();
  const auto& keys = cpu.plugin.registry().config_keys().at("cpu");
  REQUIRE(keys.size() == 3);
  CHECK(keys[0].name == "threads");
  CHECK(keys[1].name == "tuning_ms");
  CHECK(keys[2].name == "layout");
  const OpenedCpu single({{"threads", std::int64_t{1}}});
  const std::pair<std::string, std::string> expected{"threads", "1"};
  CHECK(single.device->info().driver_identity.back() == expected);
}

}  // namespace kiln::cpu_test
