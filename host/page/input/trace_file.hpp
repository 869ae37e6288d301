// TraceFile: Chrome trace events: what each lane of each process was busy with, and when.
//
// Thread-safety: values. Ownership: values. Times are microseconds.
#pragma once

#include "page/input/field_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::host::page {

struct TraceSpan {
  std::size_t lane = 0;
  std::string name, category;
  double begin = 0, length = 0;
};

struct TraceLane {
  std::string process, thread;  // by their names, or else their numbers
};

struct TraceFile {
  std::vector<TraceLane> lanes;  // by process, then thread
  std::vector<TraceSpan> spans;  // complete events ("ph": "X"), by their beginning
};

TraceFile read_trace(FieldReader document);

}  // namespace kiln::host::page
