// Bench protocol: the lines between `kiln tune` and its measuring child process.
//
// The first line to the child is a BenchSetup in JSON. Each further line is "VARIANT\tRUNS"; the child answers each
// with one line of JSON. Before an answer the child may send `preparing` and later `prepared`. Between these lines it
// computes the reference, which has its own time limit.
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/bench.hpp>

#include <string>
#include <string_view>

namespace kiln {

inline constexpr std::string_view bench_preparing = "preparing", bench_prepared = "prepared";

std::string to_line(const BenchSetup& setup);
Result<BenchSetup> setup_of(std::string_view line);

std::string to_line(const Result<VariantSamples>& answer);
// internal: not a valid line.
Result<VariantSamples> answer_of(std::string_view line);

}  // namespace kiln
