#include "trace/chrome_trace.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <set>

namespace kiln::host {

std::size_t ChromeTrace::index_of(std::vector<std::string>& names, std::string_view name) {
  // Few names, and the last one is the likeliest.
  for (std::size_t i = names.size(); i > 0; --i) {
    if (names[i - 1] == name) return i - 1;
  }
  names.emplace_back(name);
  return names.size() - 1;
}

void ChromeTrace::add(const StageSpan& span) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    spans_.push_back({index_of(devices_, span.device), index_of(labels_, span.label), span.slot, span.stage, span.fence,
                      span.begin_ns, span.end_ns});
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

std::string ChromeTrace::json() const {
  const std::lock_guard lock(mutex_);
  std::vector<Span> spans = spans_;
  // A job before its stages, so that who reads the events in order meets the outer one first.
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    return a.stage < b.stage;
  });
  const std::uint64_t origin = spans.empty() ? 0 : spans.front().begin_ns;
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };

  Json events = Json::array();
  const auto name = [&](const char* what, std::size_t pid, std::uint32_t tid, const std::string& text) {
    events.push_back({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", text}}}});
  };
  std::set<std::pair<std::size_t, std::uint32_t>> lanes;
  for (const Span& span : spans) lanes.insert({span.device, span.slot});
  for (std::size_t i = 0; i < devices_.size(); ++i) name("process_name", i + 1, 0, "device " + devices_[i]);
  for (const auto& [device, slot] : lanes) {
    name("thread_name", device + 1, slot + 1, "slot " + std::to_string(slot));
  }
  for (const Span& span : spans) {
    const bool job = span.stage == Stage::job;
    events.push_back({{"ph", "X"},
                      {"name", job ? labels_[span.label] : std::string(to_string(span.stage))},
                      {"cat", job ? "job" : "stage"},
                      {"pid", span.device + 1},
                      {"tid", span.slot + 1},
                      {"ts", us(span.begin_ns - origin)},
                      {"dur", us(span.end_ns - span.begin_ns)},
                      {"args", {{"fence", span.fence}}}});
  }
  Json all{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
  if (dropped_ != 0) all["otherData"] = {{"dropped_spans", dropped_}};
  return json_text(all) + "\n";
}

}  // namespace kiln::host
