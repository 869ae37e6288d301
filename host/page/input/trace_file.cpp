#include "page/input/trace_file.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace kiln::host::page {
namespace {

using LaneNumbers = std::pair<std::uint64_t, std::uint64_t>;  // process, thread

struct Names {
  std::map<std::uint64_t, std::string> processes;
  std::map<LaneNumbers, std::string> threads;
};

void read_name(FieldReader event, Names& names) {
  const std::string what = event.text("name");
  if (what != "process_name" && what != "thread_name") return;  // colours and orders of rows
  const std::string name = event.object("args").text("name");
  const std::uint64_t process = event.count("pid");
  if (what == "process_name") {
    names.processes[process] = name;
  } else {
    names.threads[{process, event.count("tid")}] = name;
  }
}

}  // namespace

TraceFile read_trace(FieldReader document) {
  TraceFile trace;
  Names names;
  std::map<LaneNumbers, std::size_t> lanes;
  std::vector<std::pair<LaneNumbers, TraceSpan>> spans;
  for (FieldReader event : document.objects("traceEvents")) {
    const std::string kind = event.text("ph");
    if (kind == "M") read_name(event, names);
    if (kind != "X") continue;
    const LaneNumbers lane{event.count("pid"), event.count("tid")};
    lanes.emplace(lane, 0);
    spans.push_back(
        {lane, {0, event.text("name"), event.text_or_null("cat"), event.amount("ts"), event.amount("dur")}});
  }
  for (auto& [numbers, index] : lanes) {
    index = trace.lanes.size();
    const auto process = names.processes.find(numbers.first);
    const auto thread = names.threads.find(numbers);
    trace.lanes.push_back(
        {process == names.processes.end() ? "process " + std::to_string(numbers.first) : process->second,
         thread == names.threads.end() ? "thread " + std::to_string(numbers.second) : thread->second});
  }
  for (auto& [numbers, span] : spans) {
    span.lane = lanes.at(numbers);
    trace.spans.push_back(std::move(span));
  }
  std::ranges::stable_sort(trace.spans, {}, &TraceSpan::begin);
  return trace;
}

}  // namespace kiln::host::page
