// Convolutions to check a device on: the layers of the workload tables, and random shapes that nobody would pick by
// hand. Thread-safety: pure functions. Ownership: values. The same arguments give the same cases on every machine.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::support {

struct NamedConv {
  std::string name;
  Conv2dSpec spec;
};

// The rows of tests/data/workloads/NAME.csv, in order. Throws std::runtime_error naming file and line where it is not
// what it should be.
std::vector<NamedConv> workload_cases(const std::string& name);

// Valid specs of at most `most_macs` multiply-adds each: odd sizes, uneven strides, pads and dilations, groups and
// depthwise, batches, 1x1 kernels and kernels as large as the padded input, with and without bias and ReLU. REQUIRES:
// most_macs >= 64.
std::vector<Conv2dSpec> random_cases(std::size_t count, std::uint64_t seed, std::int64_t most_macs);

}  // namespace kiln::support
