#include "config/sections.hpp"

#include "config/jobs/job_reader.hpp"
#include "config/remotes.hpp"

#include <kiln/config_text.hpp>

#include <string_view>
#include <vector>

namespace kiln::config {
namespace {

void read_fixed_section(Draft& draft, const TomlMember& section, const FileContext& file) {
  if (section.value.kind != TomlKind::table) {
    return draft.problem(file.place(section.at), section.key + ": found " + describe(section.value) +
                                                     ", expected a section: [" + section.key + "]");
  }
  for (const TomlMember& member : section.value.members) {
    const std::string dotted = section.key + "." + member.key;
    if (dotted == "cache.remote") {
      read_remotes(draft, member, file);
      continue;
    }
    const KeyEntry* key = find_key(dotted);
    if (key == nullptr) {
      draft.problem(file.place(member.at), section.key + "." + toml_key(member.key) +
                                               ": unknown key; nearest: " + std::string(nearest_key(dotted)));
    } else if (key->place == KeyPlace::outside_file) {
      draft.problem(file.place(member.at),
                    dotted + ": found in a file, expected on the command line or in the environment only");
    } else {
      // Wrong types and values are told where the value stands, the origin is where the key does.
      ValueSource source = file.source(member.at);
      source.place = file.place(member.value.at);
      assign(draft, *key, member.value, source);
    }
  }
}

void read_plugin_sections(Draft& draft, const TomlMember& plugins, const FileContext& file) {
  if (plugins.value.kind != TomlKind::table) {
    return draft.problem(file.place(plugins.at),
                         "plugin: found " + describe(plugins.value) + ", expected sections: [plugin.NAME]");
  }
  for (const TomlMember& section : plugins.value.members) {
    if (section.value.kind != TomlKind::table) {
      draft.problem(file.place(section.at), "plugin." + toml_key(section.key) + ": found " + describe(section.value) +
                                                ", expected a section: [plugin." + toml_key(section.key) + "]");
      continue;
    }
    draft.config.plugin[section.key];
    draft.config.plugin_places[section.key] = file.place(section.at);
    for (const TomlMember& member : section.value.members) {
      assign_plugin(draft, section.key, member.key, member.value, file.source(member.at));
    }
  }
}

void report_unknown(Draft& draft, const TomlMember& member, const FileContext& file) {
  if (member.value.kind == TomlKind::table || member.value.kind == TomlKind::array) {
    std::vector<std::string_view> names;
    for (const SectionEntry& section : section_table()) names.push_back(section.name);
    names.insert(names.end(), {"plugin", "job", "pipeline"});
    const std::string_view nearest = nearest_word(member.key, names);
    const std::string shown = nearest == "job" || nearest == "pipeline" ? "[[" + std::string(nearest) + "]]"
                              : nearest == "plugin"                     ? "[plugin.NAME]"
                                                                        : "[" + std::string(nearest) + "]";
    return draft.problem(file.place(member.at), "[" + toml_key(member.key) + "]: unknown section; nearest: " + shown);
  }
  draft.problem(file.place(member.at), toml_key(member.key) + ": unknown key outside the sections; nearest: " +
                                           std::string(nearest_key(member.key)));
}

}  // namespace

void read_sections(Draft& draft, const TomlNode& root, const FileContext& file) {
  for (const TomlMember& member : root.members) {
    bool fixed = false;
    for (const SectionEntry& section : section_table()) fixed = fixed || section.name == member.key;
    if (fixed) {
      read_fixed_section(draft, member, file);
    } else if (member.key == "plugin") {
      read_plugin_sections(draft, member, file);
    } else if (member.key == "job") {
      read_jobs(draft, member, file);
    } else if (member.key == "pipeline") {
      read_pipelines(draft, member, file);
    } else {
      report_unknown(draft, member, file);
    }
  }
}

}  // namespace kiln::config
