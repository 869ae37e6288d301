#include <kiln/chrome_trace.hpp>

#include "base/chrome_trace_text.hpp"

#include <algorithm>
#include <new>

namespace kiln {

std::uint32_t ChromeTrace::index_of(std::vector<std::string>& names, std::string_view name) {
  // Few names, and the last one is the likeliest.
  for (std::size_t i = names.size(); i > 0; --i) {
    if (names[i - 1] == name) return static_cast<std::uint32_t>(i - 1);
  }
  names.emplace_back(name);
  return static_cast<std::uint32_t>(names.size() - 1);
}

ChromeTrace::Lane ChromeTrace::lane_of(TraceArea area) {
  const auto self = std::this_thread::get_id();
  const auto at = std::ranges::find(threads_, self);
  const auto thread = static_cast<std::uint32_t>(at - threads_.begin());
  if (at == threads_.end()) threads_.push_back(self);
  return {area, thread};
}

void ChromeTrace::add_job(std::span<const StageSpan> stages) noexcept {
  if (stages.empty()) return;
  const std::lock_guard lock(mutex_);
  try {
    Job& job = jobs_.emplace_back();
    job.device = index_of(devices_, stages.front().device);
    job.label = index_of(labels_, stages.front().label);
    job.slot = stages.front().slot;
    job.fence = stages.front().fence;
    for (const StageSpan& span : stages) {
      const std::size_t place = static_cast<std::size_t>(span.stage) - static_cast<std::size_t>(Stage::job);
      if (place < job.stages.size()) job.stages[place] = {span.begin_ns, span.end_ns};
    }
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void ChromeTrace::add_event(const TraceEvent& event) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    const std::size_t first = figures_.size();
    for (const TraceFigure& figure : event.figures) {
      Figure& kept = figures_.emplace_back();
      kept.name = figure.name;
      if (const auto* text = std::get_if<std::string_view>(&figure.value)) {
        kept.value = std::string(*text);
      } else if (const auto* number = std::get_if<double>(&figure.value)) {
        kept.value = *number;
      } else {
        kept.value = std::get<std::uint64_t>(figure.value);
      }
    }
    events_.push_back(
        {lane_of(event.area), std::string(event.name), event.begin_ns, event.end_ns, event.figures.size(), first});
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void ChromeTrace::add_link(const TraceLink& link) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    links_.push_back({lane_of(link.area), link.at_ns, index_of(devices_, link.device), link.fence});
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

std::string ChromeTrace::json() const {
  const std::lock_guard lock(mutex_);
  return ChromeTraceText(*this).text();
}

std::string ChromeTrace::take_json() {
  const std::lock_guard lock(mutex_);
  std::string text = ChromeTraceText(*this).text();
  jobs_.clear();
  events_.clear();
  figures_.clear();
  links_.clear();
  dropped_ = 0;
  return text;
}

}  // namespace kiln
