// The driver of the host's processor, and what the system says of the processor.
#pragma once

#include <string>
#include <vector>

#include <kiln/device.hpp>

namespace kiln::cpu {

// CpuDriver: the one device "cpu": this process's cores, through oneDNN.
//
// Thread-safety: every method from any thread. Ownership: outlives its devices, as the contract asks; it keeps no
// reference to them. enumerate() reads two small files; only open() loads libkiln_onednn.so and with it oneDNN and
// OpenMP.
class CpuDriver final : public Driver {
 public:
  explicit CpuDriver(const DriverContext& context) : context_(context) {}

  static std::vector<ConfigKey> config_keys();

  std::vector<DeviceInfo> enumerate() override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  DriverContext context_;
};

// HostFacts: what the kernel says about the processor and about the cores that this process may use.
//
// Thread-safety: values. Read from /proc/cpuinfo and the affinity mask; nothing is measured or loaded for it.
struct HostFacts {
  std::string model;         // "AMD EPYC 9R14"; "unknown processor" where the kernel does not say
  std::string instructions;  // the vector extensions that decide which code a library picks: "avx2 avx512f …"
  int cores = 1;             // allowed to this process
  double roof_gflops = 0;    // of those; 0: unknown
};

HostFacts read_host_facts();

}  // namespace kiln::cpu
