#include "selector/hygiene.hpp"

#include <algorithm>

namespace kiln::selector {
namespace {

constexpr double least_ns = 500;  // twenty times what two readings of the clock take

// F(4, 3) does a quarter of the direct multiplications, F(2, 3) more of them.
double winograd_factor(const Conv2dSpec& conv) noexcept {
  const bool fits = conv.r == 3 && conv.s == 3 && conv.stride_y == 1 && conv.stride_x == 1;
  return conv.accuracy == Accuracy::winograd && fits ? 4 : 1;
}

// Along one axis: the taps that direct FLOPs count, by those that lie inside the input.
double left_out(std::int64_t in, std::int64_t out, std::int64_t taps, std::int64_t stride, std::int64_t pad,
                std::int64_t dilation) noexcept {
  std::int64_t inside = 0;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t offset = tap * dilation - pad;  // of the first output's tap
    const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const std::int64_t end = offset >= in ? 0 : std::min(out, (in - offset + stride - 1) / stride);
    inside += std::max<std::int64_t>(end - first, 0);
  }
  return static_cast<double>(out * taps) / static_cast<double>(std::max<std::int64_t>(inside, 1));
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
  return static_cast<double>(measurement.wall_ns) -
         static_cast<double>(std::min(measurement.queue_ns, measurement.wall_ns));
}

double rate_limit(const KernelSpec& spec, const DeviceInfo& device) noexcept {
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  if (conv == nullptr || device.roof_gflops <= 0) return device.roof_gflops;
  const double rows = left_out(conv->h, conv->out_h(), conv->r, conv->stride_y, conv->pad_y, conv->dilation_y);
  const double columns = left_out(conv->w, conv->out_w(), conv->s, conv->stride_x, conv->pad_x, conv->dilation_x);
  return device.roof_gflops * winograd_factor(*conv) * rows * columns;
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
