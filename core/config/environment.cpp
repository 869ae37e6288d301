#include <kiln/config_reader.hpp>

namespace kiln {

std::map<std::string, std::string> configuration_environment(const char* const* environment) {
  std::map<std::string, std::string> kept;
  for (; *environment != nullptr; ++environment) {
    const std::string_view text(*environment);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == "HOME" || name.starts_with("XDG_") || name.starts_with("KILN_")) {
      kept.emplace(name, text.substr(equals + 1));
    }
  }
  return kept;
}

}  // namespace kiln
