// The files of configs/: all valid, default.toml is what the tables say, and the workload tables are the same
// everywhere.
#include "core/config/config_fixture.hpp"

#include "config/job_keys.hpp"
#include "config/key_table.hpp"

#include <algorithm>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

Config read_shipped(const std::string& name) {
  ConfigSources sources = at_home();
  sources.file = source_dir() / "configs" / name;
  ConfigReading reading = read_config(sources);
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  return std::move(reading.config);
}

}  // namespace

TEST_CASE("configs: every file is valid", "[config]") {
  const auto files = files_with(source_dir() / "configs", ".toml");
  std::set<std::string> names;
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    names.insert(file.stem().string());
    read_shipped(file.filename().string());
  }
  for (const char* name :
       {"default", "quickstart", "resnet50", "mobilenet_v2", "vgg16", "prior_system", "amdgpu_pm4", "vulkan"}) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("configs: default.toml is what the key tables say", "[config]") {
  CHECK(lines(file_text(source_dir() / "configs/default.toml")) == lines(default_config_text()));
}

TEST_CASE("configs: default.toml holds every key at its default, and nothing else", "[config]") {
  const Config config = read_shipped("default.toml");
  const Config plain = read_valid("");
  const std::string text = file_text(source_dir() / "configs/default.toml");
  for (const config::KeyEntry& key : config::key_table()) {
    INFO(key.name);
    CHECK(config::print(key.get(config)) == config::print(key.get(plain)));
    CHECK(std::string(key.help).back() == '.');
    const bool hidden = !key.default_text.empty();  // a value that hides the environment, or is refused in a file
    CHECK((config.origins.at(std::string(key.name)).kind == OriginKind::built_in) == hidden);
    CHECK(text.find("\n" + std::string(hidden ? "# " : "") + std::string(config::name_in_section(key)) + " = " +
                    config::default_of(key) + "\n") != std::string::npos);
  }
  for (const config::JobKeyEntry& key : config::job_key_table()) {
    INFO(key.name);
    CHECK(text.find("\n# " + std::string(key.name) + "\n") != std::string::npos);
  }
  CHECK(config.jobs.empty());
  CHECK(config.plugin.empty());
}

TEST_CASE("configs: a default that is written out is the default that is built in", "[config]") {
  ConfigSources sources = at_home();
  for (const config::KeyEntry& key : config::key_table()) {
    sources.set.push_back(std::string(key.name) + "=" + config::default_of(key));
  }
  const Config written = read_valid("", sources);
  const Config plain = read_valid("");
  for (const config::KeyEntry& key : config::key_table()) {
    INFO(key.name);
    CHECK(config::print(key.get(written)) == config::print(key.get(plain)));
    CHECK(written.origins.at(std::string(key.name)).kind == OriginKind::command_line);
  }
}

TEST_CASE("configs: the key table is in order and says each key once", "[config]") {
  std::set<std::string_view> seen;
  std::vector<std::string_view> sections;
  for (const config::KeyEntry& key : config::key_table()) {
    CHECK(seen.insert(key.name).second);
    if (sections.empty() || sections.back() != config::section_of(key)) sections.push_back(config::section_of(key));
  }
  std::vector<std::string_view> expected;
  for (const config::SectionEntry& section : config::section_table()) expected.push_back(section.name);
  CHECK(sections == expected);
}

TEST_CASE("configs: the workload tables beside the files are those of tests/data", "[config]") {
  for (const char* name : {"mobilenet_v2.csv", "prior_system.csv", "resnet50.csv", "vgg16.csv"}) {
    INFO(name);
    const std::string table = file_text(source_dir() / "configs" / name);
    CHECK(table.size() > 100);
    CHECK((table == file_text(source_dir() / "tests/data/workloads" / name)));
  }
}

TEST_CASE("configs: the networks have a job a row, all verified", "[config]") {
  const std::pair<const char*, std::size_t> networks[] = {
      {"resnet50.toml", 23}, {"mobilenet_v2.toml", 24}, {"vgg16.toml", 9}, {"prior_system.toml", 4}};
  for (const auto& [name, jobs] : networks) {
    INFO(name);
    const Config config = read_shipped(name);
    CHECK(config.jobs.size() == jobs);
    CHECK(std::all_of(config.jobs.begin(), config.jobs.end(), [](const JobConfig& job) { return job.verify; }));
  }
}

TEST_CASE("configs: quickstart filters a photo and runs a layer on both devices", "[config]") {
  const Config config = read_shipped("quickstart.toml");
  REQUIRE(config.jobs.size() == 10);
  for (std::size_t i = 0; i < config.jobs.size(); ++i) {
    const JobConfig& job = config.jobs[i];
    INFO(job.name);
    CHECK(job.device == (i % 2 == 0 ? "cpu" : "opengl:0"));
    CHECK(job.verify);
    const auto& spec = std::get<Conv2dSpec>(job.spec);
    CHECK(spec == std::get<Conv2dSpec>(config.jobs[i ^ 1u].spec));
    CHECK(spec.out_h() == spec.h);
    CHECK(spec.out_w() == spec.w);
    if (i < 8) {
      CHECK(spec.groups == 3);
      CHECK(job.input == "quickstart/photo.png");
      CHECK(job.output == "quickstart-out/" + job.name + ".png");
    }
  }
}
