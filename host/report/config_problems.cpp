#include "report/config_problems.hpp"

#include "console.hpp"

namespace kiln::host {

Json config_problems_json(std::span<const ConfigProblem> problems) {
  Json json = Json::array();
  for (const auto& [place, message] : problems) {
    json.push_back({{"file", place.file.empty() ? Json(nullptr) : Json(place.file)},
                    {"line", place.line == 0 ? Json(nullptr) : Json(place.line)},
                    {"column", place.line == 0 ? Json(nullptr) : Json(place.column)},
                    {"message", message}});
  }
  return json;
}

bool report_reading(const ConfigReading& reading) {
  ConsoleLog console;
  const Log log{&console, reading.config.log_level};
  for (const ConfigProblem& warning : reading.warnings) log.write(LogLevel::warning, "config", warning.text());
  for (const ConfigProblem& problem : reading.problems) complain(problem.text());
  return reading.problems.empty();
}

}  // namespace kiln::host
