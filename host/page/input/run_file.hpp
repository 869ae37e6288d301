// RunFile: what `kiln run --json` printed.
//
// Thread-safety: values. Ownership: values. Times are milliseconds.
#pragma once

#include "page/input/field_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::host::page {

// What a cache answered with, of one run or of all processes.
struct CacheCounts {
  std::uint64_t memory_hits = 0, disk_hits = 0, misses = 0, builds = 0, prepared = 0, bytes_on_disk = 0;
  double saved_ms = 0;  // negative where finding programs took longer than their builds
  std::vector<std::pair<std::string, std::uint64_t>> rejected;  // by reason
};

struct RunJob {
  std::string name, op, status, error;
  std::string device, device_name, driver;  // empty: none was reached
  std::string variant;
  std::string tier;  // memory, disk, built, library; empty: no program was acquired
  double build = 0, upload = 0, on_device = 0, readback = 0, queue = 0;
  double wall_median = 0, wall_min = 0, wall_max = 0, first_result = 0;
  std::uint64_t runs = 0;
  double gflops = 0;                                // 0: not known
  std::optional<double> flops, bytes, roof_gflops;  // absent: not known
  std::optional<bool> verified;                     // absent: not compared

  bool ran() const noexcept { return status == "ok" && runs > 0; }
};

struct RunFile {
  std::string kiln;
  std::vector<RunJob> jobs;
  double total = 0;
  std::optional<double> setup;  // absent: written by a version that did not tell
  CacheCounts cache;
};

CacheCounts read_cache_counts(FieldReader cache);
// The problem that the reader was made with says whether it is whole.
RunFile read_run(FieldReader document);

}  // namespace kiln::host::page
