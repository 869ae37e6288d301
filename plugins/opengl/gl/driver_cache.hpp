// Whether the driver's own cache lies in a folder that Kiln fills, which only the process's environment can arrange.
//
// Thread-safety: free function; reads the environment, which nobody writes once threads exist.
#pragma once

#include <string>

namespace kiln::opengl {

struct Adoption {
  std::string word;    // DeviceInfo::driver_cache: "adopted" or "not adopted"
  std::string reason;  // why not; empty where adopted
};

// Adopted: MESA_SHADER_CACHE_DIR is a folder that kiln::driver_environment() chose, of this user, that nobody else may
// enter (0700), and no ancestor of it can be changed by another user.
Adoption mesa_cache_adoption();

}  // namespace kiln::opengl
