// What a DRM node says about itself: the description in its version record, and which hardware it is.
//
// Thread-safety: free function. Ownership: the node is opened and closed inside the call.
#pragma once

#include <optional>
#include <string>

namespace kiln::opengl {

// Kiln's own simulator answers this word in its description; nothing else does.
inline constexpr const char* simulated_description = "kiln-simulated";

// nullopt: the node cannot be opened, or is no DRM node.
std::optional<std::string> drm_description(const std::string& node);

// Whether the device behind a node was taken away: opening one in a driver of Mesa's would end the process.
bool drm_is_gone(const std::string& node);

// DeviceInfo::physical_id of the hardware behind a node: its place on the bus by what sysfs says, else the node's path.
// Empty for an empty node.
std::string drm_physical_id(const std::string& node);

}  // namespace kiln::opengl
