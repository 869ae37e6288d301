// An application that embeds Kiln and stays: what [generator] background does for it. Runs the jobs of a file once,
// waits until their shapes are tuned, and runs them again; or ends in the middle of a measurement; or runs them forty
// times with pauses between, in which something is measured, and tells what each run took.
//
// usage: kiln_test_embedder FILE CACHE tuned|middle|paced      one JSON object on standard output
#include <kiln/config_reader.hpp>
#include <kiln/data.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace kiln;
using Json = nlohmann::json;

constexpr std::chrono::seconds patience{240};

struct StandardError final : LogSink {
  void write(LogLevel, std::string_view component, std::string_view message) noexcept override {
    std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(component.size()), component.data(),
                 static_cast<int>(message.size()), message.data());
  }
};

// Processes that this one has started and that are not gone.
int children() {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::ifstream in(entry.path() / "stat");
    std::string text;
    if (!std::getline(in, text)) continue;
    const std::size_t at = text.rfind(')');
    if (at == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    if (std::sscanf(text.c_str() + at + 1, " %c %d", &state, &parent) == 2 && parent == getpid()) ++count;
  }
  return count;
}

Json run(Runtime& runtime, const Config& config) {
  Json jobs = Json::array();
  for (const JobConfig& job : config.jobs) {
    auto request = data::make_request(job);
    if (!request) return {{"error", request.error().text()}};
    request->verify = true;
    const RunReport report = runtime.run(*request);
    jobs.push_back({{"status", report.status.text()},
                    {"variant", report.variant},
                    {"verified", report.verified.value_or(false)},
                    {"tier", to_string(report.tier)},
                    {"wall_ms", static_cast<double>(report.median.wall_ns) / 1e6}});
  }
  return jobs;
}

template <class Condition>
bool wait_until(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

int embed(const std::string& file, const std::string& cache, std::string_view how) {
  ConfigSources sources;
  sources.file = file;
  sources.environment = configuration_environment(environ);
  sources.cache_directory = cache;
  const ConfigReading reading = read_config(sources);
  for (const ConfigProblem& problem : reading.problems) std::fprintf(stderr, "%s\n", problem.text().c_str());
  if (!reading.problems.empty()) return 2;
  const Config& config = reading.config;
  for (const auto& [name, value] : driver_environment(config)) {
    if (name == "MESA_SHADER_CACHE_DIR" && !prepare_driver_cache(value).ok()) return 3;
    setenv(name.c_str(), value.c_str(), 1);
  }
  StandardError sink;
  const Log log{&sink, LogLevel::info};
  Registry registry;
  if (!register_core(registry).ok()) return 4;
  PluginLoader loader;
  PluginLoaderOptions options;
  options.log = log;
  loader.load(config.plugins.load, config.plugins.required, registry, options);
  auto made = Runtime::create(config, registry, log);
  if (!made) return 5;
  std::optional<std::unique_ptr<Runtime>> runtime(std::move(*made));
  Runtime& serving = **runtime;

  Json told;
  told["before"] = run(serving, config);
  if (how == "paced") {
    told["runs"] = Json::array();
    for (int i = 0; i < 40; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1600));
      const Json jobs = run(serving, config);
      told["runs"].push_back({jobs[0]["wall_ms"], children()});
    }
  } else if (how == "middle") {
    told["measured"] = wait_until([&] { return children() > 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  } else {
    const std::size_t jobs = config.jobs.size();
    told["tuned"] = wait_until([&] { return serving.background_tuning().tuned == jobs; });
    told["spent_ms"] = static_cast<double>(serving.background_tuning().spent_ns) / 1e6;
    const auto builds = serving.counters().builds.load();
    told["after"] = run(serving, config);
    told["builds_after"] = serving.counters().builds.load() - builds;
  }
  const auto begun = std::chrono::steady_clock::now();
  runtime.reset();
  told["end_ms"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
  told["children"] = children();
  std::printf("%s\n", told.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  return embed(argv[1], argv[2], argv[3]);
}
