// Whether the driver's own cache lies in Kiln's cache folder, which only the process's environment can arrange.
//
// Thread-safety: free function; reads the environment, which nobody writes once threads exist.
#pragma once

#include <filesystem>
#include <string>

namespace kiln::opengl {

struct Adoption {
  std::string word;    // DeviceInfo::driver_cache: "adopted" or "not adopted"
  std::string reason;  // why not; empty where adopted
};

// Adopted: MESA_SHADER_CACHE_DIR lies in `cache_directory`, is a folder of this user that nobody else may enter (0700),
// and no ancestor of it can be changed by another user.
Adoption mesa_cache_adoption(const std::filesystem::path& cache_directory);

// Mesa writes its cache on a thread of its own and drops what is not written when the process ends. Waits until the
// folder that MESA_SHADER_CACHE_DIR names has not changed for 50 ms, 300 ms at most: the thread has the least priority.
void await_mesa_cache();

}  // namespace kiln::opengl
