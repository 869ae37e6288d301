#include "runtime/tuning/shape_times.hpp"

#include "runtime/job/plan_memo.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::size_t most_shapes = 4096;

}  // namespace

std::size_t ShapeTimes::Hash::operator()(const RanShape& shape) const noexcept {
  return std::hash<std::string>{}(shape.device) ^ static_cast<std::size_t>(spec_hash(shape.spec).value_or(0));
}

void ShapeTimes::ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t ns) {
  if (!spec_hash(spec)) return;
  RanShape shape{device, spec, name};
  const std::lock_guard lock(mutex_);
  auto at = shapes_.find(shape);
  if (at == shapes_.end()) {
    if (shapes_.size() >= most_shapes) return;
    at = shapes_.try_emplace(std::move(shape)).first;
  }
  at->second.ns += ns;
  at->second.ran_since = true;
}

std::optional<RanShape> ShapeTimes::next() const {
  const std::lock_guard lock(mutex_);
  const RanShape* most = nullptr;
  std::uint64_t most_ns = 0;
  for (const auto& [shape, times] : shapes_) {
    if (!times.waits || (most != nullptr && times.ns <= most_ns)) continue;
    most = &shape;
    most_ns = times.ns;
  }
  if (most == nullptr) return std::nullopt;
  return *most;
}

std::size_t ShapeTimes::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(shapes_.begin(), shapes_.end(), [](const auto& entry) { return entry.second.waits; }));
}

void ShapeTimes::settle(const RanShape& shape) {
  const std::lock_guard lock(mutex_);
  const auto at = shapes_.find(shape);
  if (at != shapes_.end()) at->second.waits = at->second.ran_since = false;
}

void ShapeTimes::give_up(const RanShape& shape) {
  const std::lock_guard lock(mutex_);
  const auto at = shapes_.find(shape);
  if (at == shapes_.end()) return;
  at->second.waits = false;
  at->second.given_up = true;
}

void ShapeTimes::wait_again() {
  const std::lock_guard lock(mutex_);
  for (auto& [shape, times] : shapes_) {
    times.waits = times.waits || (times.ran_since && !times.given_up);
  }
}

}  // namespace kiln
