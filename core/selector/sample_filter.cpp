#include "selector/sample_filter.hpp"

#include <kiln/operation.hpp>

#include <algorithm>

namespace kiln::selector {
namespace {

constexpr double least_ns = 500;  // twenty times what two readings of the clock take

double without_queue(const Measurement& measurement) noexcept {
  return static_cast<double>(measurement.wall_ns) -
         static_cast<double>(std::min(measurement.queue_ns, measurement.wall_ns));
}

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
  const double run_ns = without_queue(measurement);
  const double common_ns = std::min(run_ns, static_cast<double>(dispatch_ns(measurement)));
  return run_ns - common_ns * (1 - 1.0 / std::max(measurement.batch, 1u));
}

Effort effort_of(const KernelSpec& spec) noexcept { return {flops(spec), operation_of(spec).saving(spec)}; }

double rate_limit(const Effort& effort, const DeviceInfo& device) noexcept {
  return device.roof_gflops <= 0 ? device.roof_gflops : device.roof_gflops * effort.saving;
}

double rate_of(const Effort& effort, const Measurement& measurement) noexcept {
  const double run_ns = without_queue(measurement);  // a batch may hold jobs of many sizes
  const double device_ns = static_cast<double>(measurement.device_ns);
  const double least = device_ns > 0 && (run_ns <= 0 || device_ns < run_ns) ? device_ns : run_ns;
  return least > 0 ? effort.flops / least : 0;
}

bool is_above_roof(const Effort& effort, const DeviceInfo& device, const Measurement& measurement) noexcept {
  return device.roof_gflops > 0 && rate_of(effort, measurement) > rate_limit(effort, device);
}

bool is_above_roof(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement) noexcept {
  return is_above_roof(Effort{flops(spec)}, device, measurement) &&
         is_above_roof(effort_of(spec), device, measurement);  // most runs are below the roof itself
}

Status check_roof(const Effort& effort, const DeviceInfo& device, const Measurement& measurement) {
  if (!is_above_roof(effort, device, measurement)) return {};
  return internal_error("measured " + std::to_string(rate_of(effort, measurement)) + " GFLOP/s on " + device.id +
                        ", whose roof is " + std::to_string(rate_limit(effort, device)) +
                        " GFLOP/s: the time is invalid");
}

Unfit judge(const ShapeBucket& work, const DeviceInfo& device, const Measurement& measurement,
            const RunConditions& conditions) noexcept {
  if (conditions.status.code == StatusCode::timeout) return Unfit::timed_out;
  if (measurement.verified == false) return Unfit::wrong_result;
  if (!conditions.status.ok()) return Unfit::faulted;
  if (service_ns(measurement) < least_ns) return Unfit::too_short;
  if (is_above_roof(Effort{work.flops, work.saving}, device, measurement)) return Unfit::above_roof;
  if (conditions.contended) return Unfit::contended;
  if (measurement.first_run) return Unfit::first_run;
  return measurement.prepared ? Unfit::prepared : Unfit::fit;
}

}  // namespace kiln::selector
