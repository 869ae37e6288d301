#include "winsys/simulated_node.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "amdgpu_pm4/device/device.hpp"
#include "amdgpu_pm4/winsys/drm_winsys.hpp"

namespace kiln::amdgpu_pm4 {

std::string simulated_node() {
  const NodeSource system = libdrm_nodes();
  const auto nodes = system.list();
  REQUIRE(nodes.has_value());
  for (const RenderNode& node : *nodes) {
    const auto version = system.version(node);
    if (version && version->name == "amdgpu" && is_simulated(*version)) return node.path;
  }
  // What `kiln simulate` tells the simulator: where it is set, there must be one.
  if (std::getenv("KILN_SIM_TARGET") != nullptr) FAIL("run under `kiln simulate`, and no simulated node is listed");
  WARN("skipped: there is no simulated render node");
  return {};
}

std::unique_ptr<Winsys> open_simulated_node() {
  auto winsys = DrmWinsys::open(simulated_node());
  INFO((winsys ? std::string() : winsys.error().text()));
  REQUIRE(winsys.has_value());
  return std::move(winsys).value();
}

}  // namespace kiln::amdgpu_pm4
