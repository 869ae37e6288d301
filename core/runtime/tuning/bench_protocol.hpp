// What `kiln tune` and its child say to each other, a line of JSON each.
//
// First line to the child: BenchSetup. Then "VARIANT\tRUNS" for each measurement; the child answers each with one line.
// Thread-safety: pure functions. Ownership: values.
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

std::string to_line(const BenchSetup& setup);
Result<BenchSetup> setup_of(std::string_view line);

std::string to_line(const Result<VariantSamples>& answer);
// internal: the line is none of ours.
Result<VariantSamples> answer_of(std::string_view line);

}  // namespace kiln
