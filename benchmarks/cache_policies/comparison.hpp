// Comparison: every policy and every reference on one trace at one capacity, as a table for people or as JSON.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include "cache_policies/references.hpp"
#include "cache_policies/trace.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::bench {

struct ComparedRow {
  std::string name;
  std::string uses;  // "stamped", "exact"; "known" for a reference
  Outcome outcome;
};

struct Comparison {
  std::string trace;
  std::uint64_t requests = 0;
  std::uint64_t programs = 0;
  double part = 0;  // of the working set
  std::uint64_t capacity_bytes = 0;
  std::uint64_t working_set_bytes = 0;
  std::uint64_t possible_hits = 0;
  std::uint64_t possible_ns = 0;
  std::vector<ComparedRow> rows;

  double hit_percent(const ComparedRow& row) const;    // of all requests
  double saved_percent(const ComparedRow& row) const;  // of what is possible
};

Comparison compare(const Trace& trace, double part);

std::string table_of(const Comparison& comparison);
std::string json_of(const std::vector<Comparison>& comparisons);

}  // namespace kiln::bench
