// CacheFile: what a program cache holds and was good for: a cache's folder, or what `kiln cache stats --json` printed.
//
// Thread-safety: values. Ownership: values. Times are milliseconds.
#pragma once

#include "page/input/run_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln::host::page {

struct CacheFile {
  std::string directory;
  CacheCounts counts;
  std::uint64_t processes = 0, programs = 0, max_disk = 0;
  std::int64_t since = 0;  // seconds since 1970; 0: never

  struct Device {
    std::string name, driver;
    std::uint64_t programs = 0, bytes = 0;
  };
  std::vector<Device> devices;

  struct Program {
    std::string label, shape, variant;
    double build = 0, first_dispatch = 0;  // 0: not known
    std::uint64_t times_used = 0, bytes = 0;
  };
  std::vector<Program> programs_listed;  // a folder tells them, statistics do not
};

CacheFile read_cache_stats(FieldReader document);
// invalid_argument: nothing in the folder is what a cache leaves there. Nothing is opened that could wait for a job.
Result<CacheFile> read_cache_folder(const std::filesystem::path& folder);

}  // namespace kiln::host::page
