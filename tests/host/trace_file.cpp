#include "host/trace_file.hpp"

#include <fstream>
#include <set>
#include <stdexcept>

namespace kiln::test {
namespace {

using Lane = std::pair<std::int64_t, std::int64_t>;  // pid, tid

[[noreturn]] void broken(const std::string& why, const nlohmann::json& event) {
  throw std::runtime_error(why + ": " + event.dump());
}

nlohmann::json parsed_strictly(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::set<std::string>> members;
  const auto once = [&](int, nlohmann::json::parse_event_t what, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (what == Event::object_start) members.emplace_back();
    if (what == Event::object_end) members.pop_back();
    if (what == Event::key && !members.back().insert(value.get<std::string>()).second) {
      throw std::runtime_error("a member stands twice: " + value.dump());
    }
    return true;
  };
  return nlohmann::json::parse(file, once);
}

double number(const nlohmann::json& event, const char* name) {
  if (!event.contains(name) || !event.at(name).is_number()) broken(std::string("no number ") + name, event);
  return event.at(name).get<double>();
}

Lane lane_of(const nlohmann::json& event) {
  for (const char* name : {"pid", "tid"}) {
    if (!event.contains(name) || !event.at(name).is_number_integer()) broken(std::string("no integer ") + name, event);
  }
  return {event.at("pid").get<std::int64_t>(), event.at("tid").get<std::int64_t>()};
}

// Times have three decimals: a nanosecond is the least difference there is.
constexpr double least_us = 0.0005;

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& path) {
  const nlohmann::json whole = parsed_strictly(path);
  read(whole.at("traceEvents"));
  check_nesting();
  for (const TraceFlow& flow : flows_) {
    if (!has_span_around("kiln", flow.from_lane, flow.departs)) throw std::runtime_error("a flow departs from nothing");
    if (!has_span_around(flow.to_process, flow.to_lane, flow.arrives)) {
      throw std::runtime_error("a flow arrives at nothing");
    }
  }
}

void TraceFile::read(const nlohmann::json& events) {
  std::map<std::int64_t, std::string> processes;
  std::map<Lane, std::string> lanes;
  std::map<std::int64_t, std::int64_t> process_of;  // by tid
  std::map<Lane, double> last;
  struct Ends {
    int departures = 0, arrivals = 0;
    TraceFlow flow;
  };
  std::map<std::int64_t, Ends> ends;
  for (const nlohmann::json& event : events) {
    const auto phase = event.at("ph").get<std::string>();
    const Lane lane = lane_of(event);
    if (lane.first == 0) broken("pid 0 is the idle task's", event);
    const auto name = event.at("name").get<std::string>();
    if (name.empty()) broken("no name", event);
    if (phase == "M") {
      const nlohmann::json& args = event.at("args");
      const bool first = name == "process_name"
                             ? processes.emplace(lane.first, args.at("name").get<std::string>()).second
                         : name == "thread_name" ? lanes.emplace(lane, args.at("name").get<std::string>()).second
                                                 : name == "thread_sort_index" && args.at("sort_index").is_number();
      if (!first) broken("said twice, or not known", event);
      continue;
    }
    if (!processes.contains(lane.first) || !lanes.contains(lane)) broken("its lane has no name", event);
    if (process_of.emplace(lane.second, lane.first).first->second != lane.first) broken("a lane of two", event);
    const double begin = number(event, "ts");
    if (begin < 0 || begin < last[lane]) broken("out of order", event);
    last[lane] = begin;
    TraceFileEvent told{processes[lane.first], lanes[lane], name, event.at("cat").get<std::string>(), begin, begin, {}};
    if (phase == "X") {
      const double length = number(event, "dur");
      if (length < 0) broken("lasts less than nothing", event);
      told.end = begin + length;
      told.arguments = event.at("args");
      spans_.push_back(std::move(told));
    } else if (phase == "i") {
      if (event.at("s") != "t") broken("a moment of more than its lane", event);
      told.arguments = event.at("args");
      moments_.push_back(std::move(told));
    } else if (phase == "s") {
      Ends& end = ends[event.at("id").get<std::int64_t>()];
      ++end.departures;
      end.flow.from_lane = told.lane;
      end.flow.departs = begin;
    } else if (phase == "f") {
      if (event.at("bp") != "e") broken("arrives at what comes next", event);
      Ends& end = ends[event.at("id").get<std::int64_t>()];
      ++end.arrivals;
      end.flow.to_process = told.process;
      end.flow.to_lane = told.lane;
      end.flow.arrives = begin;
    } else {
      broken("an unknown phase", event);
    }
  }
  for (const auto& [id, end] : ends) {
    if (end.departures != 1 || end.arrivals != 1 || end.flow.arrives < end.flow.departs) {
      throw std::runtime_error("flow " + std::to_string(id) + " has not one of each end, in order");
    }
    flows_.push_back(end.flow);
  }
}

// What begins inside a span ends inside it.
void TraceFile::check_nesting() const {
  std::map<std::pair<std::string, std::string>, std::vector<const TraceFileEvent*>> open;
  for (const TraceFileEvent& span : spans_) {
    auto& around = open[{span.process, span.lane}];
    while (!around.empty() && around.back()->end <= span.begin + least_us) around.pop_back();
    if (!around.empty() && around.back()->end < span.end - least_us) {
      throw std::runtime_error("in lane " + span.lane + " " + around.back()->name + " and " + span.name + " cross at " +
                               std::to_string(span.begin));
    }
    around.push_back(&span);
  }
}

bool TraceFile::has_span_around(const std::string& process, const std::string& lane, double at) const {
  for (const TraceFileEvent& span : spans_) {
    if (span.process == process && span.lane == lane && span.begin <= at && at < span.end) return true;
  }
  return false;
}

std::vector<std::string> TraceFile::spans_in(const std::string& lane) const {
  std::vector<std::string> names;
  for (const TraceFileEvent& span : spans_) {
    if (span.lane == lane) names.push_back(span.name);
  }
  return names;
}

std::vector<std::string> TraceFile::moments_in(const std::string& lane) const {
  std::vector<std::string> names;
  for (const TraceFileEvent& moment : moments_) {
    if (moment.lane == lane) names.push_back(moment.name);
  }
  return names;
}

}  // namespace kiln::test
