#include "driver.hpp"

#include "onednn_module.hpp"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>

namespace kiln::cpu {
namespace {

std::filesystem::path module_path() {
  Dl_info here{};
  // Any address inside this plugin tells where it was loaded from.
  if (dladdr(reinterpret_cast<const void*>(&open_onednn), &here) == 0 || here.dli_fname == nullptr) return {};
  std::error_code error;
  const auto plugin = std::filesystem::absolute(here.dli_fname, error);
  return error ? std::filesystem::path() : plugin.parent_path().parent_path() / "libkiln_onednn.so";
}

std::string linker_message() {
  const char* message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

}  // namespace

Result<std::unique_ptr<Device>> open_onednn(const OpenRequest& request) noexcept try {
  const std::filesystem::path path = module_path();
  if (path.empty()) return unavailable("device 'cpu': path of the cpu plugin is unknown");
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return unavailable("device 'cpu': oneDNN cannot be loaded: " + linker_message());
  const auto create = reinterpret_cast<CreateDeviceFn>(dlsym(module, create_device_symbol));
  if (create == nullptr) return unavailable("device 'cpu': " + linker_message());
  Status failure;
  std::unique_ptr<Device> device(create(request, failure));
  if (device == nullptr) return failure.within("device 'cpu'");
  return device;
} catch (...) {
  return caught();
}

namespace {

constexpr std::string_view device_id = "cpu";

DeviceInfo info_of(const HostFacts& facts) {
  DeviceInfo info;
  info.id = device_id;
  info.kind = DeviceKind::cpu;
  info.name = facts.model + " (" + std::to_string(facts.cores) + (facts.cores == 1 ? " core)" : " cores)");
  info.driver = "oneDNN";
  info.usable = true;
  info.device_identity = {{"model", facts.model}, {"instructions", facts.instructions}};
  info.dialects = {Dialect::library};
  info.shared_resource = "host-cores";
  info.wraps_host_memory = true;
  info.shares_buffers = true;
  info.runs_chains = true;
  info.roof_gflops = facts.roof_gflops;
  return info;
}

template <class T>
T setting(const PluginSettings& settings, const std::string& key, T otherwise) {
  const auto at = settings.find(key);
  if (at == settings.end()) return otherwise;
  const auto* value = std::get_if<T>(&at->second);
  return value == nullptr ? otherwise : *value;
}

}  // namespace

std::vector<ConfigKey> CpuDriver::config_keys() {
  ConfigKey threads;
  threads.name = "threads";
  threads.type = ConfigType::integer;
  threads.fallback = std::int64_t{0};
  threads.help = "threads that work on one job; 0: as many as the process may use cores";
  threads.least = 0;
  threads.most = 4096;
  ConfigKey tuning;
  tuning.name = "tuning_ms";
  tuning.type = ConfigType::integer;
  tuning.fallback = std::int64_t{60};
  tuning.help =
      "milliseconds of computing that a program's first run may spend on timing memory layouts; 0: take the likely "
      "best";
  tuning.least = 0;
  tuning.most = 10000;
  ConfigKey layout;
  layout.name = "layout";
  layout.type = ConfigType::text;
  layout.fallback = std::string("auto");
  layout.help =
      "memory layout in which convolutions run, where oneDNN has it for their shape; auto: the fastest, by timing";
  layout.allowed = {"auto", "nChw16c", "nchw>nChw16c", "nChw8c", "nhwc", "nchw", "product"};
  return {threads, tuning, layout};
}

std::vector<DeviceInfo> CpuDriver::enumerate() { return {info_of(read_host_facts())}; }

Result<std::unique_ptr<Device>> CpuDriver::open(std::string_view id) noexcept try {
  if (id != device_id) {
    return not_found("device '" + std::string(id) + "': not found, expected '" + std::string(device_id) + "'");
  }
  if (Status status = check_memory_left(memory_to_open); !status.ok()) return status.within("device 'cpu'");
  const HostFacts facts = read_host_facts();
  OpenRequest request;
  request.info = info_of(facts);
  request.threads = static_cast<int>(setting(context_.settings, "threads", std::int64_t{0}));
  if (request.threads == 0) request.threads = facts.cores;
  request.tuning = std::chrono::milliseconds(setting(context_.settings, "tuning_ms", std::int64_t{60}));
  request.layout = setting(context_.settings, "layout", std::string("auto"));
  request.log = context_.log;
  request.counters = context_.counters;
  return open_onednn(request);
} catch (...) {
  return caught();
}

namespace {

constexpr std::array<std::string_view, 12> deciding{"sse4_1",      "avx",         "avx2",     "fma",
                                                    "avx512f",     "avx512bw",    "avx512vl", "avx512dq",
                                                    "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8"};

// "model name\t: AMD EPYC" → "AMD EPYC".
std::string value_of(const std::string& line) {
  const auto colon = line.find(": ");
  return colon == std::string::npos ? std::string() : line.substr(colon + 2);
}

std::string deciding_among(const std::string& flags) {
  std::string kept;
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    for (const std::string_view name : deciding) {
      if (word == name) kept += (kept.empty() ? "" : " ") + word;
    }
  }
  return kept;
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts;
  facts.cores = static_cast<int>(host_cores());
  facts.roof_gflops = host_roof_gflops();
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {  // the first processor's paragraph
    if (line.starts_with("model name")) facts.model = value_of(line);
    if (line.starts_with("flags") || line.starts_with("Features")) facts.instructions = deciding_among(value_of(line));
  }
  if (facts.model.empty()) facts.model = "unknown processor";
  return facts;
}

}  // namespace kiln::cpu
