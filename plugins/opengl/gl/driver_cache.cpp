#include "gl/driver_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace kiln::opengl {
namespace {

bool lies_in(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  if (outer.empty()) return false;
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

std::string octal(mode_t mode) {
  std::string text = "0";
  for (int shift = 6; shift >= 0; shift -= 3) text += static_cast<char>('0' + ((mode >> shift) & 7));
  return text;
}

// Empty where only this user (or root) can change what the folder's name leads to.
std::string ancestor_fault(const std::filesystem::path& folder) {
  for (std::filesystem::path above = folder.parent_path(); !above.empty(); above = above.parent_path()) {
    struct stat facts {};
    if (stat(above.c_str(), &facts) != 0) return above.string() + ": " + std::strerror(errno);
    if (facts.st_uid != 0 && facts.st_uid != geteuid()) {
      return above.string() + ": owned by uid " + std::to_string(facts.st_uid) + ", expected " +
             std::to_string(geteuid()) + " or root";
    }
    const bool others_write = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (others_write && (facts.st_mode & S_ISVTX) == 0) {
      return above.string() + ": mode " + octal(facts.st_mode) + " lets others write";
    }
    if (above == above.root_path()) break;
  }
  return {};
}

std::string folder_fault(const std::filesystem::path& folder) {
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) != 0) return folder.string() + ": " + std::strerror(errno);
  if (!S_ISDIR(facts.st_mode)) return folder.string() + ": not a folder";
  if (facts.st_uid != geteuid()) {
    return folder.string() + ": owned by uid " + std::to_string(facts.st_uid) + ", expected " +
           std::to_string(geteuid());
  }
  if ((facts.st_mode & 0777) != 0700) return folder.string() + ": mode " + octal(facts.st_mode) + ", expected 0700";
  return ancestor_fault(folder);
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
  std::string fault = folder_fault(folder);
  if (!fault.empty()) return {"not adopted", "MESA_SHADER_CACHE_DIR " + std::move(fault)};
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
