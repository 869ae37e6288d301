// The configuration's readers on foreign bytes: as a TOML file, as a table of jobs, as a --set argument, as a quantity.
// Whatever they hold, the answer is a Config and problems of one line each, the same every time.
#include <kiln/config_reader.hpp>

#include "config/job_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

void check_problems(const std::vector<kiln::ConfigProblem>& problems) {
  for (const kiln::ConfigProblem& problem : problems) {
    demand(!problem.message.empty());
    demand(problem.text().find('\n') == std::string::npos);
  }
}

std::map<std::string, std::vector<kiln::ConfigKey>> published() {
  const kiln::ConfigKey threads{"threads", kiln::ConfigType::integer, std::int64_t{1}, "", 1.0, 8.0, {}};
  const kiln::ConfigKey mode{"mode", kiln::ConfigType::text, std::string("safe"), "", {}, {}, {"safe", "fast"}};
  return {{"cpu", {threads, mode}}, {"opengl", {}}};
}

void check_config(const kiln::Config& config) {
  const auto keys = published();
  check_problems(kiln::check_plugin_sections(config, keys));
  demand(kiln::plugin_settings(config, "cpu", keys.at("cpu")).size() == 2);
  demand(!kiln::show_config(config, keys).empty());
  demand(!kiln::show_config_json(config, keys).empty());
  for (const kiln::JobConfig& job : config.jobs) {
    demand(!job.name.empty());
    if (job.op == "kernel") continue;
    demand(kiln::validate(job.spec).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kiln::ConfigSources sources;
  sources.environment = {{"HOME", "/home/person"}};

  const kiln::ConfigReading reading = kiln::read_config_text(text, "/nowhere/fuzz.toml", sources);
  check_problems(reading.problems);
  check_config(reading.config);

  check_problems(kiln::config::parse_job_table(text, "fuzz.csv").problems);

  sources.set = {std::string(text)};
  const kiln::ConfigReading with_set = kiln::read_config_text("", "fuzz.toml", sources);
  check_problems(with_set.problems);
  check_config(with_set.config);

  if (const auto bytes = kiln::parse_size(text)) demand(*bytes <= INT64_MAX);
  if (const auto wait = kiln::parse_duration(text)) demand(wait->count() >= 0);
  return 0;
}
