#include "selector/hygiene.hpp"

#include <algorithm>

namespace kiln::selector {
namespace {

constexpr double least_ns = 500;  // twenty times what two readings of the clock take

}  // namespace

std::string_view to_string(Unfit unfit) noexcept {
  switch (unfit) {
    case Unfit::fit:
      return "fit";
    case Unfit::first_run:
      return "first_run";
    case Unfit::prepared:
      return "prepared";
    case Unfit::contended:
      return "contended";
    case Unfit::timed_out:
      return "timed_out";
    case Unfit::faulted:
      return "faulted";
    case Unfit::wrong_result:
      return "wrong_result";
    case Unfit::above_roof:
      return "above_roof";
    case Unfit::too_short:
      return "too_short";
  }
  return "invalid";
}

double service_ns(const Measurement& measurement) noexcept {
  return static_cast<double>(measurement.wall_ns) -
         static_cast<double>(std::min(measurement.queue_ns, measurement.wall_ns));
}

// A Winograd transform does up to four times fewer operations than the direct FLOPs that rates are counted in: F(4, 3).
double rate_limit(const KernelSpec& spec, const DeviceInfo& device) noexcept {
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  return device.roof_gflops * (conv != nullptr && conv->accuracy == Accuracy::winograd ? 4 : 1);
}

Unfit judge(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
            const RunConditions& conditions) noexcept {
  if (conditions.status.code == StatusCode::timeout) return Unfit::timed_out;
  if (measurement.verified == false) return Unfit::wrong_result;
  if (!conditions.status.ok()) return Unfit::faulted;
  const double run_ns = service_ns(measurement);
  if (run_ns < least_ns) return Unfit::too_short;
  const double device_ns = static_cast<double>(measurement.device_ns);
  const double limit = rate_limit(spec, device);
  if (limit > 0 && flops(spec) / (device_ns > 0 ? std::min(device_ns, run_ns) : run_ns) > limit) {
    return Unfit::above_roof;
  }
  if (conditions.contended) return Unfit::contended;
  if (measurement.first_run) return Unfit::first_run;
  return measurement.prepared ? Unfit::prepared : Unfit::fit;
}

}  // namespace kiln::selector
