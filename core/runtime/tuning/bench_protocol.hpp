// What `kiln tune` and its child say to each other, line by line.
//
// First line to the child, in JSON: BenchSetup. Then "VARIANT\tRUNS" for each measurement; the child answers each with
// one line of JSON. Before an answer it may say `preparing`, and `prepared` when it is done with that: in between it
// computes the reference, which takes longer than any run may and says nothing of the variant. Each of the two begins
// its time anew. Thread-safety: pure functions. Ownership: values.
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
  // A shape, on tensors made at random; or the name of a job of that configuration with a kernel of the user's own, on
  // the job's own files, its variants compared with the first of them.
  std::variant<Conv2dSpec, GemmSpec, std::string> subject;
};

inline constexpr std::string_view bench_preparing = "preparing", bench_prepared = "prepared";

std::string to_line(const BenchSetup& setup);
Result<BenchSetup> setup_of(std::string_view line);

std::string to_line(const Result<VariantSamples>& answer);
// internal: the line is none of ours.
Result<VariantSamples> answer_of(std::string_view line);

}  // namespace kiln
