// TuningFile: what `kiln tune export` wrote, or the database itself: one record a device, shape and variant.
//
// Thread-safety: values. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::host::page {

struct TuningRecord {
  std::string device;  // its digest
  std::string spec;    // canonical text
  std::string variant;
  std::string verdict;  // measured, winner, rejected
  std::int64_t when = 0;
  std::vector<double> wall_ms;  // in rising order; empty: never timed
  std::string why;              // rejected: in words

  double median() const noexcept;  // REQUIRES: wall_ms is not empty
};

struct TuningFile {
  std::vector<TuningRecord> records;  // in the file's order
  std::uint64_t damaged = 0;          // lines that were left out
};

bool is_tuning_text(std::string_view text) noexcept;
// unsupported: another form than 1, both named. corrupt: there are lines, and not one of them is whole.
Result<TuningFile> read_tuning(std::string_view text);

// "3×3 /2, 64 → 128, 56²" of a convolution's canonical text, "m×n×k" of a product's; the text itself of others.
std::string shape_words(std::string_view spec);
// Direct FLOPs of a convolution or a product; 0: not known.
double flops_of(std::string_view spec);

}  // namespace kiln::host::page
