#include "gl/driver_cache.hpp"

#include <kiln/driver_cache.hpp>

#include <cstdlib>

namespace kiln::opengl {

Adoption mesa_cache_adoption() {
  const char* value = std::getenv("MESA_SHADER_CACHE_DIR");
  if (value == nullptr) return {"not adopted", "MESA_SHADER_CACHE_DIR is not set"};
  if (driver_setting_of(value).empty()) {
    return {"not adopted", "MESA_SHADER_CACHE_DIR " + std::string(value) +
                               " is no folder that Kiln fills with authenticated files (kiln::driver_environment)"};
  }
  if (const Status status = check_private_folder(value); !status.ok()) {
    return {"not adopted", "MESA_SHADER_CACHE_DIR: " + status.message};
  }
  return {"adopted", {}};
}

}  // namespace kiln::opengl
