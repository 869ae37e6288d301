#include "c_interface/job_bench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace kiln::c_interface {
namespace {

constexpr std::size_t most_groups = 16;
constexpr Tolerance agreement{1e-5, 1e-4};

template <class T>
bool close(std::span<const std::byte> one, std::span<const std::byte> other) {
  for (std::size_t at = 0; at + sizeof(T) <= one.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, one.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    const auto difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
    if (std::isnan(a) != std::isnan(b) ||
        difference > agreement.absolute + agreement.relative * std::abs(static_cast<double>(b))) {
      return false;
    }
  }
  return true;
}

}  // namespace

JobBench::JobBench(kiln_job& job, std::string device) : job_(job), device_(std::move(device)) {
  for (const JobTensor& tensor : job_.tensors) tensor.to_host();
  before_ = written();
}

JobBench::~JobBench() { restore(); }

void JobBench::restore() {
  std::size_t at = 0;
  for (const JobTensor& tensor : job_.tensors) {
    if (tensor.access != Access::read) std::ranges::copy(before_[at++], tensor.host->bytes().begin());
  }
}

Result<VariantSamples> JobBench::measure(std::string_view variant, std::uint32_t runs,
                                         std::chrono::nanoseconds limit) noexcept try {
  RunRequest request = job_.request;
  request.device = device_;
  request.variant = variant;
  request.repeat = 1;
  request.timeout = limit;
  request.progress = nullptr;
  VariantSamples samples;
  Status status = run(request, nullptr);  // may compile
  for (std::uint32_t at = 0; at < runs && status.ok(); ++at) status = run(request, &samples);
  if (!status.ok()) return status;
  samples.agreement = group_of(written());
  return samples;
} catch (...) {
  return caught();
}

Status JobBench::run(RunRequest& request, VariantSamples* samples) {
  restore();  // what is written in place would change with each run
  const RunReport report = job_.owner.runtime->run(request);
  if (!report.status.ok()) return report.status;
  if (samples == nullptr) return {};
  samples->wall_ns.push_back(report.median.wall_ns);
  samples->device_ns.push_back(report.median.device_ns);
  samples->source_digest.clear();
  for (const std::string& key : report.keys) samples->source_digest += key.substr(0, 16);
  return {};
}

JobBench::Contents JobBench::written() const {
  Contents contents;
  for (const JobTensor& tensor : job_.tensors) {
    if (tensor.access == Access::read) continue;
    const auto bytes = std::as_const(*tensor.host).bytes();
    contents.emplace_back(bytes.begin(), bytes.end());
  }
  return contents;
}

bool JobBench::agree(const Contents& one, const Contents& other) const {
  std::size_t at = 0;
  for (const JobTensor& tensor : job_.tensors) {
    if (tensor.access == Access::read) continue;
    const auto &a = one[at], &b = other[at];
    ++at;
    switch (tensor.host->dtype()) {
      case DType::f32:
        if (!close<float>(a, b)) return false;
        break;
      case DType::f64:
        if (!close<double>(a, b)) return false;
        break;
      default:
        if (a != b) return false;
    }
  }
  return true;
}

std::uint32_t JobBench::group_of(Contents results) {
  for (std::size_t at = 0; at < groups_.size(); ++at) {
    if (agree(results, groups_[at])) return static_cast<std::uint32_t>(at + 1);
  }
  if (groups_.size() == most_groups) return agrees_with_none;
  groups_.push_back(std::move(results));
  return static_cast<std::uint32_t>(groups_.size());
}

}  // namespace kiln::c_interface
