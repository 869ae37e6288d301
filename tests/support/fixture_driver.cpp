#include "support/fixture_driver.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kiln::support {
namespace {

template <class T>
T setting(const DriverContext& context, const char* name, T otherwise) {
  const auto at = context.settings.find(name);
  if (at == context.settings.end()) return otherwise;
  const T* value = std::get_if<T>(&at->second);
  return value != nullptr ? *value : otherwise;
}

ConfigKey integer(const char* name, std::int64_t fallback, double most, const char* help) {
  return {name, ConfigType::integer, fallback, help, 0, most, {}};
}

ConfigKey boolean(const char* name, bool fallback, const char* help) {
  return {name, ConfigType::boolean, fallback, help, {}, {}, {}};
}

// As Mesa: a file in the folder that the environment names.
Status write_own_cache() {
  const char* const folder = std::getenv("MESA_SHADER_CACHE_DIR");
  if (folder == nullptr) return internal_error("fixture driver: MESA_SHADER_CACHE_DIR is not set");
  std::ofstream file(std::filesystem::path(folder) / "code");
  file << "machine code";
  return file.flush() ? Status() : io_error("fixture driver: no file can be written in " + std::string(folder));
}

}  // namespace

std::vector<ConfigKey> fixture_config_keys() {
  return {
      integer("devices", 1, 16, "how many devices there are"),
      integer("build_ms", 0, 60000, "how long a build takes"),
      integer("run_ms", 0, 60000, "how long a submission takes"),
      boolean("fail_build", false, "every build fails"),
      boolean("refuse_load", false, "every stored binary is refused"),
      boolean("serializes", true, "programs can be stored"),
      integer("roof_mflops", 0, 1e9, "the roof that the device tells, in MFLOP/s; 0: none"),
      integer("fail_at", 0, 1e9, "the submission that fails, counted from 1; 0: none"),
      integer("wrong_at", 0, 1e9, "the submission with a wrong result, counted from 1; 0: none"),
      integer("idle_at", 0, 1e9, "the submission that writes nothing, counted from 1; 0: none"),
      integer("lose_at", 0, 1e9, "the submission that loses the device, counted from 1; 0: none"),
      boolean("hang", false, "submissions never finish"),
      boolean("opencl_c", false, "users' kernels in OpenCL C are taken, each the name of a fixture program"),
      {"driver_cache",
       ConfigType::text,
       std::string("none"),
       "whether the driver has a cache of its own, to which each build writes a file",
       {},
       {},
       {"none", "adopted"}},
  };
}

FixtureDriver::FixtureDriver(std::vector<FixtureOptions> devices) : devices_(std::move(devices)) {}

FixtureDriver::FixtureDriver(const DriverContext& context) {
  const auto devices = setting<std::int64_t>(context, "devices", 1);
  for (std::int64_t i = 0; i < devices; ++i) {
    FixtureOptions options;
    options.info = fixture_info("fixture:" + std::to_string(i));
    options.info.serializes = setting(context, "serializes", true);
    if (setting(context, "opencl_c", false)) options.info.dialects.push_back(Dialect::opencl_c);
    options.info.roof_gflops = static_cast<double>(setting<std::int64_t>(context, "roof_mflops", 0)) / 1e3;
    options.build_time = std::chrono::milliseconds(setting<std::int64_t>(context, "build_ms", 0));
    options.run_time = std::chrono::milliseconds(setting<std::int64_t>(context, "run_ms", 0));
    options.info.driver_cache = setting<std::string>(context, "driver_cache", "none");
    if (options.info.driver_cache == "adopted") options.on_build = write_own_cache;
    options.counters = context.counters;
    options.controls->fail_build = setting(context, "fail_build", false);
    options.controls->refuse_load = setting(context, "refuse_load", false);
    options.controls->fail_at = static_cast<std::uint64_t>(setting<std::int64_t>(context, "fail_at", 0));
    options.controls->wrong_at = static_cast<std::uint64_t>(setting<std::int64_t>(context, "wrong_at", 0));
    options.controls->idle_at = static_cast<std::uint64_t>(setting<std::int64_t>(context, "idle_at", 0));
    options.controls->lose_at = static_cast<std::uint64_t>(setting<std::int64_t>(context, "lose_at", 0));
    if (setting(context, "hang", false)) options.controls->run.close();
    devices_.push_back(std::move(options));
  }
}

std::vector<DeviceInfo> FixtureDriver::enumerate() noexcept {
  std::vector<DeviceInfo> infos;
  for (const FixtureOptions& device : devices_) infos.push_back(device.info);
  return infos;
}

Result<std::unique_ptr<Device>> FixtureDriver::open(std::string_view id) noexcept {
  for (const FixtureOptions& device : devices_) {
    if (device.info.id != id) continue;
    if (!device.info.usable) return unavailable(device.info.id + ": " + device.info.why_not);
    return std::unique_ptr<Device>(new FixtureDevice(device));
  }
  return not_found("device '" + std::string(id) + "': the fixture driver has no such device");
}

}  // namespace kiln::support
