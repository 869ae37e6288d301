#include "report/config_problems.hpp"

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

}  // namespace kiln::host
