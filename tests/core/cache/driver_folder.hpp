// PointedAt: a temporary folder that Mesa uses for its shader cache, because MESA_SHADER_CACHE_DIR names it. Also
// programs that carry files of a driver's cache.
//
// Thread-safety: none, it sets a variable of the environment. Ownership: removes its folder.
#pragma once

#include "cache/driver_scratch.hpp"
#include "core/cache/copied_bytes.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/driver_cache.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

inline const std::string some_setting(64, 'a'), another_setting(64, 'b');

inline ProgramBinary with_files(std::vector<DriverFile> files) {
  ProgramBinary program{"gl:875f", test::copied_bytes("the binary")};
  program.driver_files = std::move(files);
  program.driver_setting = some_setting;
  return program;
}

inline std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Sets MESA_SHADER_CACHE_DIR to a temporary folder, as driver_environment() would. The destructor unsets it.
struct PointedAt {
  test::CacheTestFolder temporary;
  std::filesystem::path around = temporary.path() / "around";
  std::filesystem::path folder = around / "driver" / DriverScratch::new_name(some_setting);

  PointedAt() {
    REQUIRE(prepare_driver_cache(folder).ok());
    setenv("MESA_SHADER_CACHE_DIR", folder.c_str(), 1);
  }
  ~PointedAt() { unsetenv("MESA_SHADER_CACHE_DIR"); }
};

}  // namespace kiln
