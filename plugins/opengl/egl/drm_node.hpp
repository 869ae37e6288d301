// What a DRM node says about itself: the description in its version record.
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

}  // namespace kiln::opengl
