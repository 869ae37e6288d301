// read_page_input: one of the files that a report is made from, of whichever kind it is. Kinds are told apart by what
// stands in them, never by their names.
//
// Thread-safety: any thread. Ownership: values.
#pragma once

#include "page/input/cache_file.hpp"
#include "page/input/run_file.hpp"
#include "page/input/trace_file.hpp"
#include "page/input/tuning_file.hpp"
#include "verbs/bench/bench_file.hpp"

#include <string>
#include <variant>

namespace kiln::host::page {

struct PageInput {
  std::string name;    // as it was given
  std::string label;   // in legends: the last part of the name, told apart from others by read_page_inputs
  std::string digest;  // of its bytes, hexadecimal; empty: a folder
  std::uint64_t bytes = 0;
  std::variant<RunFile, BenchFile, TuningFile, CacheFile, TraceFile> content;
};

std::string_view kind_words(const PageInput& input) noexcept;  // "a run"

// Every error names the file: invalid_argument where it cannot be read or is of no kind that is known, with those that
// are; corrupt where it is cut off, or a field is not as that kind has it; unsupported where its schema is another.
Result<std::vector<PageInput>> read_page_inputs(const std::vector<std::string>& files);

}  // namespace kiln::host::page
