// NodeSource: what the system tells about render nodes, as a table of functions so that tests can put other nodes
// there.
//
// Thread-safety: the functions may be called from any thread. Ownership: answers are values; no descriptor outlives a
// call, but in the Winsys that open() answers.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "amdgpu_pm4/winsys/winsys.hpp"

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

struct NodeSource {
  // Every render node on PCI, of any vendor. Opens none.
  std::function<Result<std::vector<RenderNode>>()> list;
  // Opens the node, asks for the driver's version, and nothing else. unavailable: the system refused, with its reason.
  std::function<Result<NodeVersion>(const RenderNode&)> version;
  // Opens the node for work, and reads what it tells. For real hardware only where the user opted in. REQUIRES: its
  // driver is amdgpu.
  std::function<Result<std::unique_ptr<Winsys>>(const RenderNode&)> open;
};

}  // namespace kiln::amdgpu_pm4
