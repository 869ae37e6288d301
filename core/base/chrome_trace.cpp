#include "base/chrome_trace.hpp"

#include <kiln_json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <new>

#include <kiln/chrome_trace.hpp>

namespace kiln {
namespace {

constexpr std::size_t host_pid = 1;  // the devices' follow; 0 stands for the idle task where traces are read

std::string in_quotes(std::string_view text) { return json_text(Json(std::string(text))); }

template <class Number>
void append_number(std::string& to, Number number) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  to.append(digits, end);
}

}  // namespace

std::string ChromeTraceText::text() {
  for (const std::string& label : trace_.labels_) labels_.push_back(in_quotes(label));
  number_lanes();
  collect();
  out_.reserve(items_.size() * 128);
  out_ = "{\"traceEvents\":[";
  name_lanes();
  for (const Item& item : items_) write(item);
  out_ += "\n],\"displayTimeUnit\":\"ns\"";
  if (trace_.dropped_ != 0) {
    out_ += ",\"otherData\":{\"dropped\":";
    append_number(out_, trace_.dropped_);
    out_ += "}";
  }
  out_ += "}\n";
  return std::move(out_);
}

void ChromeTraceText::number_lanes() {
  for (const ChromeTrace::Job& job : trace_.jobs_) slots_[{job.device, job.slot}];
  for (const ChromeTrace::Event& event : trace_.events_) lanes_[event.lane];
  std::size_t tid = 0;
  for (auto& [slot, place] : slots_) place = {host_pid + 1 + slot.first, ++tid};
  for (auto& [lane, place] : lanes_) place = {host_pid, ++tid};
}

void ChromeTraceText::collect() {
  std::map<std::pair<std::uint32_t, std::uint64_t>, const ChromeTrace::Job*> jobs;  // that are arrived at
  for (const ChromeTrace::Link& link : trace_.links_) jobs[{link.device, link.fence}] = nullptr;
  for (std::size_t i = 0; i < trace_.jobs_.size(); ++i) {
    const ChromeTrace::Job& job = trace_.jobs_[i];
    for (std::size_t place = 0; place < job.stages.size(); ++place) {
      const ChromeTrace::Times& times = job.stages[place];
      if (times.begin_ns == 0 && times.end_ns == 0) continue;
      const auto stage = static_cast<Stage>(place + static_cast<std::size_t>(Stage::job));
      items_.push_back({Item::Kind::stage, i, stage, times.begin_ns, times.end_ns - times.begin_ns});
    }
    if (jobs.empty()) continue;
    if (const auto at = jobs.find({job.device, job.fence}); at != jobs.end()) at->second = &job;
  }
  for (std::size_t i = 0; i < trace_.events_.size(); ++i) {
    const ChromeTrace::Event& event = trace_.events_[i];
    const std::uint64_t end_ns = event.end_ns.value_or(event.begin_ns);
    items_.push_back({Item::Kind::event, i, Stage::invalid, event.begin_ns, end_ns - event.begin_ns});
  }
  for (std::size_t i = 0; i < trace_.links_.size(); ++i) {
    const ChromeTrace::Link& link = trace_.links_[i];
    const ChromeTrace::Job* const job = jobs.at({link.device, link.fence});
    job_of_link_.push_back(job);
    // A job that never was, or an arrow back in time, as between clocks that went apart.
    if (job == nullptr || job->stages[0].begin_ns < link.at_ns || !lanes_.contains(link.lane)) continue;
    items_.push_back({Item::Kind::departure, i, Stage::invalid, link.at_ns, 0});
    items_.push_back({Item::Kind::arrival, i, Stage::invalid, job->stages[0].begin_ns, 0});
  }
  std::ranges::stable_sort(items_, [](const Item& a, const Item& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.kind != b.kind && (a.kind >= Item::Kind::departure || b.kind >= Item::Kind::departure))
      return a.kind < b.kind;
    return a.length_ns > b.length_ns;
  });
  if (!items_.empty()) origin_ns_ = items_.front().begin_ns;
}

void ChromeTraceText::name_lanes() {
  if (!lanes_.empty()) meta("process_name", {host_pid, 0}, "name", "\"kiln\"");
  for (std::size_t i = 0; i < trace_.devices_.size(); ++i) {
    meta("process_name", {host_pid + 1 + i, 0}, "name", in_quotes("device " + trace_.devices_[i]));
  }
  for (const auto& [slot, place] : slots_) {
    meta("thread_name", place, "name", in_quotes("slot " + std::to_string(slot.second)));
  }
  std::map<TraceArea, int> threads;
  for (const auto& [lane, place] : lanes_) {
    const int nth = ++threads[lane.area];
    meta("thread_name", place, "name",
         in_quotes(std::string(to_string(lane.area)) + (nth == 1 ? "" : " " + std::to_string(nth))));
    meta("thread_sort_index", place, "sort_index", std::to_string(place.tid));
  }
}

void ChromeTraceText::write(const Item& item) {
  switch (item.kind) {
    case Item::Kind::stage:
      return write_stage(trace_.jobs_[item.index], item);
    case Item::Kind::event:
      return write_event(trace_.events_[item.index]);
    case Item::Kind::departure:
      return write_end_of_link(item.index, lanes_.at(trace_.links_[item.index].lane), item.begin_ns, false);
    case Item::Kind::arrival:
      return write_end_of_link(item.index, place_of(*job_of_link_[item.index]), item.begin_ns, true);
  }
}

void ChromeTraceText::write_stage(const ChromeTrace::Job& job, const Item& item) {
  const bool whole = item.stage == Stage::job;
  if (whole) {
    begin("X", labels_[job.label], place_of(job));
  } else {
    begin("X", '"' + std::string(to_string(item.stage)) + '"', place_of(job));
  }
  out_ += whole ? ",\"cat\":\"job\"" : ",\"cat\":\"stage\"";
  time("ts", item.begin_ns - origin_ns_);
  time("dur", item.length_ns);
  out_ += ",\"args\":{\"fence\":";
  append_number(out_, job.fence);
  out_ += "}}";
}

void ChromeTraceText::write_event(const ChromeTrace::Event& event) {
  begin(event.end_ns ? "X" : "i", in_quotes(event.name), lanes_.at(event.lane));
  out_ += ",\"cat\":\"";
  out_ += to_string(event.lane.area);
  out_ += '"';
  time("ts", event.begin_ns - origin_ns_);
  if (event.end_ns) {
    time("dur", *event.end_ns - event.begin_ns);
  } else {
    out_ += ",\"s\":\"t\"";  // of its lane
  }
  out_ += ",\"args\":{";
  for (std::size_t i = 0; i < event.figures; ++i) {
    const ChromeTrace::Figure& figure = trace_.figures_[event.first_figure + i];
    if (i != 0) out_ += ',';
    out_ += in_quotes(figure.name) + ":";
    if (const auto* text = std::get_if<std::string>(&figure.value)) {
      out_ += in_quotes(*text);
    } else if (const auto* count = std::get_if<std::uint64_t>(&figure.value)) {
      append_number(out_, *count);
    } else if (const double number = std::get<double>(figure.value); std::isfinite(number)) {
      append_number(out_, number);
    } else {
      out_ += "\"unknown\"";  // JSON has no word for it
    }
  }
  out_ += "}}";
}

void ChromeTraceText::write_end_of_link(std::size_t link, const Place& place, std::uint64_t at_ns, bool arrives) {
  begin(arrives ? "f" : "s", "\"chosen\"", place);
  out_ += ",\"cat\":\"decision\",\"id\":";
  append_number(out_, link + 1);
  if (arrives) out_ += ",\"bp\":\"e\"";  // at the job that begins here, not at the next one
  time("ts", at_ns - origin_ns_);
  out_ += "}";
}

void ChromeTraceText::begin(std::string_view phase, std::string_view quoted_name, const Place& place) {
  out_ += any_ ? ",\n" : "\n";
  any_ = true;
  out_ += "{\"ph\":\"";
  out_ += phase;
  out_ += "\",\"name\":";
  out_ += quoted_name;
  out_ += ",\"pid\":";
  append_number(out_, place.pid);
  out_ += ",\"tid\":";
  append_number(out_, place.tid);
}

// Microseconds, to the nanosecond.
void ChromeTraceText::time(std::string_view name, std::uint64_t ns) {
  out_ += ",\"";
  out_ += name;
  out_ += "\":";
  append_number(out_, ns / 1000);
  const auto rest = static_cast<unsigned>(ns % 1000);
  if (rest == 0) return;
  const char digits[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  out_.append(digits, sizeof digits);
}

void ChromeTraceText::meta(std::string_view what, const Place& place, std::string_view name, std::string_view value) {
  begin("M", '"' + std::string(what) + '"', place);
  out_ += ",\"args\":{\"";
  out_ += name;
  out_ += "\":";
  out_ += value;
  out_ += "}}";
}

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
