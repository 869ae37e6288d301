// A bench file as people read it: a table on the terminal, and rows of Markdown for documents.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "verbs/bench/bench_file.hpp"

#include <span>
#include <string>

namespace kiln::host {

// "4.9 ns (4.8 to 5.2)"; a single sample, and one that does not vary, has no range.
std::string spread_text(const Spread& spread, const std::string& unit);

std::string bench_text(const BenchFile& file);

// The figures named by their ids, "ID" or "ID@GROUP" (blanks may be written as '_'), in that order; all of them where
// none is named, by areas. Under the table stands what machine it is of. not_found: an id that the file has not.
Result<std::string> bench_markdown(const BenchFile& file, std::span<const std::string> ids);

}  // namespace kiln::host
