#include "support/simulated/sim_driver.hpp"

#include <cstdlib>

namespace kiln::support {
namespace {

ConfigKey integer(const char* name, std::int64_t fallback, double most, const char* help) {
  return {name, ConfigType::integer, fallback, help, 0, most, {}};
}

ConfigKey number(const char* name, double fallback, const char* help) {
  return {name, ConfigType::number, fallback, help, 0, 1e15, {}};
}

ConfigKey boolean(const char* name, bool fallback, const char* help) {
  return {name, ConfigType::boolean, fallback, help, {}, {}, {}};
}

class Settings {
 public:
  explicit Settings(const PluginSettings& settings) : settings_(settings) {}

  double number(const std::string& name, double otherwise) const { return get(name, otherwise); }
  bool boolean(const char* name, bool otherwise) const { return get(std::string(name), otherwise); }
  std::string text(const char* name, std::string otherwise) const {
    return get(std::string(name), std::move(otherwise));
  }
  std::vector<std::string> texts(const char* name) const { return get(std::string(name), std::vector<std::string>()); }
  std::uint64_t count(const char* name, std::int64_t otherwise) const {
    return static_cast<std::uint64_t>(get(std::string(name), otherwise));
  }
  StageCost cost(const std::string& stage) const {
    return {number(stage + "_fixed_ns", 0), number(stage + "_byte_ns", 0), number(stage + "_flop_ns", 0)};
  }

 private:
  template <class T>
  T get(const std::string& name, T otherwise) const {
    const auto at = settings_.find(name);
    if (at == settings_.end()) return otherwise;
    const T* value = std::get_if<T>(&at->second);
    return value != nullptr ? *value : otherwise;
  }

  const PluginSettings& settings_;
};

StageCost times(StageCost cost, double factor) {
  return {cost.fixed_ns * factor, cost.byte_ns * factor, cost.flop_ns * factor};
}

}  // namespace

std::vector<ConfigKey> sim_config_keys() {
  ConfigKey clock{"clock",
                  ConfigType::text,
                  std::string("virtual"),
                  "virtual: time passes at once, and only where a device works; real: what takes time is waited for",
                  {},
                  {},
                  {"virtual", "real"}};
  ConfigKey slower{"slower",
                   ConfigType::text_list,
                   std::vector<std::string>(),
                   "how many times slower each device is than the costs say, in order; none: 1",
                   {},
                   {},
                   {}};
  return {
      integer("devices", 1, 16, "how many devices there are"),
      slower,
      clock,
      number("upload_fixed_ns", 0, "cost of an upload"),
      number("upload_byte_ns", 0, "cost of each byte of an upload"),
      number("device_fixed_ns", 0, "cost of a pass"),
      number("device_byte_ns", 0, "cost of each byte that a pass binds"),
      number("device_flop_ns", 0, "cost of each floating-point operation of a pass"),
      number("readback_fixed_ns", 0, "cost of a readback"),
      number("readback_byte_ns", 0, "cost of each byte of a readback"),
      number("build_ns", 0, "cost of a build"),
      number("first_use_ns", 0, "cost of a program's first dispatch, beside its own"),
      number("noise", 0, "standard deviation of the logarithm of each cost"),
      integer("seed", 1, 1e15, "of the noise"),
      integer("slow_from", 0, 1e15, "the submission from which on the device is slower, from 1; 0: never"),
      integer("slow_until", 0, 1e15, "the first submission that is as before again; 0: none"),
      number("slow_factor", 3, "how many times slower"),
      integer("hang_at", 0, 1e15, "the submission that never ends, from 1; 0: none"),
      integer("lose_at", 0, 1e15, "the submission that loses the device, from 1; 0: none"),
      integer("fail_at", 0, 1e15, "the submission that fails, from 1; 0: none"),
      integer("wrong_at", 0, 1e15, "the submission whose result has a wrong bit, from 1; 0: none"),
      integer("memory_bytes", 0, 1e15, "what buffers may take together; 0: anything"),
      boolean("maps", false, "buffers show their memory to the host"),
      boolean("serializes", true, "programs can be stored"),
  };
}

SimDriver::SimDriver(std::vector<SimOptions> devices, Pace pace)
    : devices_(std::move(devices)), clock_(std::make_shared<SimClock>(pace)) {}

Result<std::unique_ptr<Driver>> SimDriver::create(const DriverContext& context) {
  const Settings settings(context.settings);
  const auto slower = settings.texts("slower");
  std::vector<SimOptions> devices;
  for (std::size_t i = 0; i < settings.count("devices", 1); ++i) {
    double factor = 1;
    if (i < slower.size()) {
      char* end = nullptr;
      factor = std::strtod(slower[i].c_str(), &end);
      if (end == slower[i].c_str() || *end != '\0' || !(factor > 0)) {
        return invalid_argument("[plugin.simulated] slower: '" + slower[i] + "', expected a number above 0");
      }
    }
    SimOptions options;
    options.info = sim_info("simulated:" + std::to_string(i));
    options.info.serializes = settings.boolean("serializes", true);
    options.maps = settings.boolean("maps", false);
    options.counters = context.counters;
    SimModel& model = options.model;
    model.upload = times(settings.cost("upload"), factor);
    model.device = times(settings.cost("device"), factor);
    model.readback = times(settings.cost("readback"), factor);
    model.build_ns = settings.number("build_ns", 0);
    model.first_use_ns = settings.number("first_use_ns", 0);
    model.noise = settings.number("noise", 0);
    model.seed = settings.count("seed", 1) + i;
    model.script.slow_from = settings.count("slow_from", 0);
    model.script.slow_until = settings.count("slow_until", 0);
    model.script.slow_factor = settings.number("slow_factor", 3);
    model.script.hang_at = settings.count("hang_at", 0);
    model.script.lose_at = settings.count("lose_at", 0);
    model.script.fail_at = settings.count("fail_at", 0);
    model.script.wrong_at = settings.count("wrong_at", 0);
    model.script.memory_bytes = settings.count("memory_bytes", 0);
    devices.push_back(std::move(options));
  }
  const Pace pace = settings.text("clock", "virtual") == "real" ? Pace::real : Pace::virtual_time;
  return std::unique_ptr<Driver>(std::make_unique<SimDriver>(std::move(devices), pace));
}

std::vector<DeviceInfo> SimDriver::enumerate() noexcept {
  std::vector<DeviceInfo> infos;
  for (const SimOptions& device : devices_) infos.push_back(device.info);
  return infos;
}

Result<std::unique_ptr<Device>> SimDriver::open(std::string_view id) noexcept {
  for (const SimOptions& device : devices_) {
    if (device.info.id == id) return std::unique_ptr<Device>(std::make_unique<SimDevice>(device, clock_));
  }
  return not_found("device '" + std::string(id) + "': the simulated driver has no such device");
}

}  // namespace kiln::support
