#include "cache/admin/selection.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::size_t least_digits = 4;
constexpr std::size_t most_digits = 64;
constexpr std::size_t most_listed = 8;
constexpr std::size_t shown_digits = 12;

}  // namespace

bool may_be_key(std::string_view which) noexcept {
  return which.size() >= least_digits && which.size() <= most_digits &&
         std::ranges::all_of(which, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_label_of(std::string_view which, std::string_view label) noexcept {
  return !which.empty() && label.starts_with(which) && (label.size() == which.size() || label[which.size()] == '/');
}

bool is_named(std::string_view which, const SelectedProgram& program) noexcept {
  return is_label_of(which, program.description.label) ||
         (may_be_key(which) && program.entry.digest.hex().starts_with(which));
}

std::vector<SelectedProgram> select_programs(const CacheRoot& root, std::string_view which) {
  std::vector<SelectedProgram> selected;
  for (const Area area : areas) {
    const Survey found = root.survey(area);
    for (const StoredEntry& entry : found.entries) {
      if (!entry.program) continue;
      const std::string& folder = found.folders[entry.folder];
      SelectedProgram program{area, folder, entry, root.describe(area, folder, entry)};
      if (is_named(which, program)) selected.push_back(std::move(program));
    }
  }
  return selected;
}

std::vector<AsideProgram> select_aside(const CacheRoot& root, std::string_view which) {
  std::vector<AsideProgram> selected = root.aside(root.survey(Area::stored));
  std::erase_if(selected, [&](const AsideProgram& program) {
    return !is_label_of(which, program.label) && !(may_be_key(which) && program.key.hex().starts_with(which));
  });
  return selected;
}

std::string list_of(const std::vector<SelectedProgram>& programs) {
  std::string list = std::to_string(programs.size()) + " programs: ";
  for (std::size_t i = 0; i < std::min(programs.size(), most_listed); ++i) {
    const SelectedProgram& program = programs[i];
    if (i != 0) list += ", ";
    list += program.entry.digest.hex().substr(0, shown_digits);
    list += " (" + (program.description.label.empty() ? "no label" : program.description.label) + ", in ";
    list += program.folder + (program.area == Area::pending ? ", pending)" : ")");
  }
  return programs.size() > most_listed ? list + ", …" : list;
}

}  // namespace kiln
