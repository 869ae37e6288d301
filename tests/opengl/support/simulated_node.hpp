// A DRM node that says it is Kiln's simulator: this library stands in front of ioctl() for the process that links it,
// and answers DRM_IOCTL_VERSION on any file whose name contains `simulated_node_mark`. Thread-safety: any thread.
// Everything else goes to the kernel unchanged.
#pragma once

namespace kiln::support {

inline constexpr const char* simulated_node_mark = "kiln-simulated-node";

// Called by a test so that the library is linked.
bool simulated_nodes_present() noexcept;

}  // namespace kiln::support
