#include "runtime/work_history.hpp"

#include <utility>

namespace kiln {
namespace {

std::string revised(const KernelSpec& spec, const std::string& device, std::uint64_t revision) {
  return work_name(spec, device) + ", revision " + std::to_string(revision);
}

}  // namespace

std::string work_name(const KernelSpec& spec, const std::string& device) { return device + "|" + canonical_text(spec); }

bool WorkHistory::begin_run(const KernelSpec& spec, const std::string& device) {
  std::string name = work_name(spec, device);
  const std::lock_guard lock(mutex_);
  ready_.insert(name);
  return !ran_.insert(std::move(name)).second;
}

bool WorkHistory::is_ready(const KernelSpec& spec, const std::string& device) const {
  const std::lock_guard lock(mutex_);
  return ready_.contains(work_name(spec, device));
}

void WorkHistory::set_ready(const KernelSpec& spec, const std::string& device) {
  const std::lock_guard lock(mutex_);
  ready_.insert(work_name(spec, device));
}

bool WorkHistory::failed_ahead(const KernelSpec& spec, const std::string& device) const {
  const std::lock_guard lock(mutex_);
  return failed_ahead_.contains(work_name(spec, device));
}

void WorkHistory::set_failed_ahead(const KernelSpec& spec, const std::string& device) {
  const std::lock_guard lock(mutex_);
  failed_ahead_.insert(work_name(spec, device));
}

std::optional<std::string> WorkHistory::fallback_variant(const KernelSpec& spec, const std::string& device,
                                                         std::uint64_t revision) const {
  const std::lock_guard lock(mutex_);
  if (variants_.empty()) return std::nullopt;
  const auto at = variants_.find(revised(spec, device, revision));
  return at == variants_.end() ? std::nullopt : std::optional(at->second);
}

void WorkHistory::set_fallback_variant(const KernelSpec& spec, const std::string& device, std::uint64_t revision,
                                       std::string variant) {
  const std::lock_guard lock(mutex_);
  variants_[revised(spec, device, revision)] = std::move(variant);
}

}  // namespace kiln
