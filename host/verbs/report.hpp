// The sources of a report: each file or cache folder as the JSON that the page's script reads.
//
// Thread-safety: reads files; any thread. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <kiln_json.hpp>

#include <string>
#include <vector>

namespace kiln::host::page {

// [{"name", "label", "kind": "run|bench|tuning|cache|trace", "bytes", "digest", "content"}]. `content` is what the file
// holds; of a tuning database {"records", "damaged"}; of a cache's folder what `kiln cache stats --json` prints, with
// "programs_listed". `digest` is null for a folder. `label` is the end of the name, as long as labels must be to
// differ. Every error names the file: invalid_argument where it cannot be read or is of no known kind; corrupt where it
// is cut off or a field is not as that kind has it; unsupported where its schema is another.
Result<Json> read_page_sources(const std::vector<std::string>& files);

}  // namespace kiln::host::page
