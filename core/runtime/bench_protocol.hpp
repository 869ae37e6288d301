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
  // the job's own files. Its outputs are compared with what the job expects; without that they are grouped by
  // agreement.
  std::variant<Conv2dSpec, GemmSpec, std::string> subject;
  // A descriptor of the child: an anonymous file in which it keeps one output of each group, for the child that comes
  // after it. -1: there is none.
  int outputs = -1;
};

inline constexpr std::string_view bench_preparing = "preparing", bench_prepared = "prepared";

std::string to_line(const BenchSetup& setup);
Result<BenchSetup> setup_of(std::string_view line);

std::string to_line(const Result<VariantSamples>& answer);
// internal: the line is none of ours.
Result<VariantSamples> answer_of(std::string_view line);

}  // namespace kiln
