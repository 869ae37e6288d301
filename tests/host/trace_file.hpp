// TraceFile: a file of Chrome trace events, read as strictly as an importer does: what it breaks is thrown as a text.
//
// Checked: every event has a phase that is known here, a name, numbers for pid, tid and the times; X events of a lane
// are in the order of their times and never cross; a lane belongs to one process, and both have names; each flow leaves
// once, arrives once and later, and has an event around both ends; no object names a member twice.
// Thread-safety: a value. Ownership: none.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct TraceFileEvent {
  std::string process, lane, name, category;
  double begin = 0, end = 0;  // microseconds; alike where it is a moment
  nlohmann::json arguments;
};

struct TraceFlow {
  std::string from_lane, to_process, to_lane;
  double departs = 0, arrives = 0;
};

class TraceFile {
 public:
  explicit TraceFile(const std::filesystem::path& path);  // throws std::runtime_error

  // In the order of the file.
  const std::vector<TraceFileEvent>& spans() const noexcept { return spans_; }
  const std::vector<TraceFileEvent>& moments() const noexcept { return moments_; }
  const std::vector<TraceFlow>& flows() const noexcept { return flows_; }
  // Names of the spans, or of the moments, of a lane.
  std::vector<std::string> spans_in(const std::string& lane) const;
  std::vector<std::string> moments_in(const std::string& lane) const;

 private:
  void read(const nlohmann::json& events);
  void check_nesting() const;
  bool has_span_around(const std::string& process, const std::string& lane, double at) const;

  std::vector<TraceFileEvent> spans_, moments_;
  std::vector<TraceFlow> flows_;
};

}  // namespace kiln::test
