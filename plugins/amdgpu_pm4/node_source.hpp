// NodeSource: what the system tells about render nodes, as a table of functions so that tests can put other nodes
// there.
//
// Thread-safety: the functions may be called from any thread. Ownership: answers are values; no descriptor outlives a
// call.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln::amdgpu_pm4 {

struct RenderNode {  // told without opening the node
  std::string path;  // "/dev/dri/renderD128"
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string bus;  // "0000:03:00.0"
};

struct NodeVersion {   // the kernel driver's
  std::string name;    // "amdgpu"
  std::string number;  // "3.49.0"
  std::string description;
};

struct GpuFacts {              // told by the amdgpu kernel interface
  std::string marketing_name;  // empty: unknown
  std::uint32_t family = 0;
  std::uint32_t external_revision = 0;
  std::uint32_t compute_units = 0;
};

struct NodeSource {
  // Every render node on PCI, of any vendor. Opens none.
  std::function<Result<std::vector<RenderNode>>()> list;
  // Opens the node, asks for the driver's version, and nothing else. unavailable: the system refused, with its reason.
  std::function<Result<NodeVersion>(const RenderNode&)> version;
  // Initializes the device. For real hardware only where the user opted in.
  std::function<Result<GpuFacts>(const RenderNode&)> query;
};

}  // namespace kiln::amdgpu_pm4
