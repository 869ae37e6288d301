#include "core/selector/candidates.hpp"

#include "selector/selectors.hpp"

#include <stdlib.h>

#include <stdexcept>

namespace kiln::test {

Conv2dSpec conv(std::int64_t channels, std::int64_t side, std::int64_t kernel) {
  Conv2dSpec spec;
  spec.c = spec.k = channels;
  spec.h = spec.w = side;
  spec.r = spec.s = kernel;
  spec.pad_y = spec.pad_x = kernel / 2;
  return spec;
}

DeviceInfo device_of(std::string id, double roof_gflops) {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = DeviceKind::simulated;
  info.name = "the device " + info.id;
  info.driver = "driver 1";
  info.driver_identity = {{"version", "1"}};
  info.usable = true;
  info.roof_gflops = roof_gflops;
  return info;
}

Measurement run_of(double ms) {
  Measurement measurement;
  measurement.wall_ns = static_cast<std::uint64_t>(ms * 1e6);
  measurement.tier = Tier::memory;
  return measurement;
}

bool Lines::mention(const std::string& words) const {
  for (const std::string& line : all) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

TemporaryFolder::TemporaryFolder() {
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-selector-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = folder;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::unique_ptr<DeviceSelector> selector_of(const std::string& name, SelectorContext context) {
  Registry registry;
  if (const Status status = register_selectors(registry); !status.ok()) throw std::runtime_error(status.text());
  auto made = registry.selector(name).value()(context);
  if (!made) throw std::runtime_error(made.error().text());
  return std::move(made).value();
}

std::unique_ptr<DeviceSelector> learning(const std::string& policy, double exploration, Log log) {
  SelectorContext context;
  context.log = log;
  context.config.policy = policy;
  context.config.exploration = exploration;
  return selector_of("learning", context);
}

std::vector<Candidate> Fleet::candidates() const {
  std::vector<Candidate> all;
  for (const DeviceInfo& device : devices_) all.push_back({&device, 0, false});
  return all;
}

}  // namespace kiln::test
