// HostFacts: what the kernel says about the processor and about the cores that this process may use.
//
// Thread-safety: values. Read from /proc/cpuinfo and the affinity mask; nothing is measured or loaded for it.
#pragma once

#include <string>

namespace kiln::cpu {

struct HostFacts {
  std::string model;         // "AMD EPYC 9R14"; "unknown processor" where the kernel does not say
  std::string instructions;  // the vector extensions that decide which code a library picks: "avx2 avx512f …"
  int cores = 1;             // allowed to this process
  double roof_gflops = 0;    // of those; 0: unknown
};

HostFacts read_host_facts();

}  // namespace kiln::cpu
