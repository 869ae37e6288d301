// Bench protocol: the lines between `kiln tune` and its measuring child process.
//
// The first line to the child is a BenchSetup in JSON. Each further line is "VARIANT\tRUNS"; the child answers each
// with one line of JSON. Before an answer the child may send `preparing` and later `prepared`. Between these lines it
// computes the reference, which has its own time limit.
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/config_reader.hpp>
#include <kiln/kernel.hpp>
#include <kiln/tuning.hpp>

#include <string>
#include <string_view>
#include <variant>

namespace kiln {

struct BenchSetup {
  ConfigSources sources;  // of the parent: the child reads the same configuration
  std::string device;
  // A shape, measured on random tensors; or the name of a job with a user kernel, measured on the files of the job.
  // Outputs are compared with the expected ones of the job. Without those, variants with equal outputs form groups.
  std::variant<Conv2dSpec, GemmSpec, std::string> subject;
  // Descriptor of an anonymous file in the child that stores one output of each group for the next child. -1: none.
  int outputs = -1;
};

inline constexpr std::string_view bench_preparing = "preparing", bench_prepared = "prepared";

std::string to_line(const BenchSetup& setup);
Result<BenchSetup> setup_of(std::string_view line);

std::string to_line(const Result<VariantSamples>& answer);
// internal: not a valid line.
Result<VariantSamples> answer_of(std::string_view line);

}  // namespace kiln
