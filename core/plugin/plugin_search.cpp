#include "plugin/plugin_search.hpp"

#include <kiln/plugin.hpp>

#include <algorithm>

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool plain(char letter) noexcept {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_' || letter == '-';
}

std::string refusal(const fs::path& folder) {
  if (folder.empty()) return "an empty entry, which is refused";
  if (!folder.is_absolute()) return folder.string() + ", which is refused: not an absolute path";
  std::error_code error;
  if (!fs::exists(folder, error)) return folder.string() + ", which does not exist";
  return folder.string();
}

}  // namespace

Result<fs::path> find_plugin(const std::string& name, std::span<const fs::path> folders) {
  constexpr std::size_t most_letters = sizeof(PluginNote::name) - 1;
  if (name.empty() || name.size() > most_letters || !std::ranges::all_of(name, plain)) {
    return invalid_argument("'" + name + "' is no plugin's name: expected 1 to " + std::to_string(most_letters) +
                            " letters, digits, '_' or '-'");
  }
  std::string searched;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / (name + ".so");
    std::error_code error;
    if (folder.is_absolute() && fs::symlink_status(path, error).type() != fs::file_type::not_found) return path;
    searched += (searched.empty() ? "" : "; ") + refusal(folder);
  }
  return not_found("no file " + name + ".so in: " + (searched.empty() ? "no folder at all" : searched));
}

}  // namespace kiln
