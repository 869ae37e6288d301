#include "gl/driver_cache.hpp"

#include <kiln/driver_cache.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace kiln::opengl {
namespace {

bool lies_in(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  if (outer.empty()) return false;
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

Adoption mesa_cache_adoption(const std::filesystem::path& cache_directory) {
  const char* value = std::getenv("MESA_SHADER_CACHE_DIR");
  if (value == nullptr) return {"not adopted", "MESA_SHADER_CACHE_DIR is not set"};
  std::error_code error;
  const auto folder = std::filesystem::weakly_canonical(value, error);
  const auto cache = std::filesystem::weakly_canonical(cache_directory, error);
  if (error || !lies_in(folder, cache)) {
    return {"not adopted", "MESA_SHADER_CACHE_DIR " + std::string(value) + " is not inside the cache folder " +
                               cache_directory.string()};
  }
  if (const Status status = check_private_folder(value); !status.ok()) {
    return {"not adopted", "MESA_SHADER_CACHE_DIR: " + status.message};
  }
  return {"adopted", {}};
}

void await_mesa_cache() {
  const char* folder = std::getenv("MESA_SHADER_CACHE_DIR");
  if (folder == nullptr) return;
  const auto files = [folder] {
    std::error_code error;
    std::size_t count = 0;
    for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      ++count;
    return count;
  };
  constexpr auto step = std::chrono::milliseconds(5);
  constexpr int unchanged_steps = 10;
  constexpr int most_steps = 60;
  std::size_t before = files();
  for (int steps = 0, unchanged = 0; steps < most_steps && unchanged < unchanged_steps; ++steps) {
    std::this_thread::sleep_for(step);
    const std::size_t now = files();
    unchanged = now == before ? unchanged + 1 : 0;
    before = now;
  }
}

}  // namespace kiln::opengl
