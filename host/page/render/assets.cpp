#include "page/render/assets.hpp"

#include <kiln/regular_file.hpp>

namespace kiln::host::page {
namespace {

constexpr std::uint64_t most_asset_bytes = std::uint64_t{8} << 20;
constexpr const char* library_file = "chart.min.js";
constexpr const char* script_files[] = {library_file, "palette.js", "marks.js", "charts.js", "page.js"};

Result<std::string> read_asset(const std::filesystem::path& file) {
  auto text = read_whole_file(file, most_asset_bytes);
  if (!text) {
    const bool library = file.filename() == library_file;
    return unavailable("report: " + text.error().message +
                       (library ? "; it is Chart.js, which Debian's libjs-chart.js brings when Kiln is built"
                                : "; it is installed with this command"));
  }
  // Inlined, it would end its element.
  if (text->find("</script") != std::string::npos || text->find("</style") != std::string::npos) {
    return corrupt("report: file " + file.string() + ": holds the end of an element, expected what can be inlined");
  }
  return text;
}

}  // namespace

std::filesystem::path assets_folder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path().parent_path() / "share/kiln/report";
}

Result<Assets> read_assets(const std::filesystem::path& folder) {
  Assets assets;
  auto style = read_asset(folder / "page.css");
  if (!style) return style.error();
  assets.style = std::move(*style);
  for (const char* name : script_files) {
    auto script = read_asset(folder / name);
    if (!script) return script.error();
    assets.scripts.push_back(std::move(*script));
  }
  return assets;
}

}  // namespace kiln::host::page
