// Files that `kiln report` reads, each of one kind, made for tests.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "host/kiln_process.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {

nlohmann::json bench_document();  // with a missed target, an area that was skipped, grouped figures
nlohmann::json run_document(const std::string& tier);  // two jobs that got their programs from this tier
std::string tuning_text();                             // two shapes, winners, a rejected variant

struct RealFiles {  // what the command itself writes: two runs on one cache, the second traced
  std::filesystem::path cold, warm, trace, cache, stats;
};
RealFiles real_files(const TemporaryFolder& folder);

// `kiln report FILES --output FILE`.
Finished report(const std::vector<std::filesystem::path>& files, const std::filesystem::path& page,
                std::vector<std::string> more = {});
std::string text_of(const std::filesystem::path& file);
// The JSON that a page holds: {"title", "made", "sources"}.
nlohmann::json data_of(const std::filesystem::path& page);

}  // namespace kiln::test
