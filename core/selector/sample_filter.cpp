#include "selector/sample_filter.hpp"

#include <kiln/operation.hpp>

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

double rate_limit(const KernelSpec& spec, const DeviceInfo& device) noexcept {
  return device.roof_gflops <= 0 ? device.roof_gflops : device.roof_gflops * operation_of(spec).saving(spec);
}

double rate_of(const KernelSpec& spec, const Measurement& measurement) noexcept {
  const double run_ns = service_ns(measurement);
  const double device_ns = static_cast<double>(measurement.device_ns);
  const double least = device_ns > 0 && (run_ns <= 0 || device_ns < run_ns) ? device_ns : run_ns;
  return least > 0 ? flops(spec) / least : 0;
}

bool is_above_roof(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement) noexcept {
  if (device.roof_gflops <= 0) return false;
  const double rate = rate_of(spec, measurement);
  return rate > device.roof_gflops && rate > rate_limit(spec, device);  // the limit is never below the roof
}

Unfit judge(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
            const RunConditions& conditions) noexcept {
  if (conditions.status.code == StatusCode::timeout) return Unfit::timed_out;
  if (measurement.verified == false) return Unfit::wrong_result;
  if (!conditions.status.ok()) return Unfit::faulted;
  if (service_ns(measurement) < least_ns) return Unfit::too_short;
  if (is_above_roof(spec, device, measurement)) return Unfit::above_roof;
  if (conditions.contended) return Unfit::contended;
  if (measurement.first_run) return Unfit::first_run;
  return measurement.prepared ? Unfit::prepared : Unfit::fit;
}

}  // namespace kiln::selector
