// `kiln tune export` and `kiln tune import`: what was measured, as a file of text.
#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/regular_file.hpp>

#include <algorithm>

namespace kiln::host {
namespace {

constexpr std::uint64_t most_bytes = 64 << 20;  // as the database itself

// The store of the session's generators, or the exit status to end with.
std::optional<int> open_store(Session& session, TuningStore*& store) {
  if (const auto end = session.open_runtime()) return *end;
  store = session.runtime().tuning();
  if (store != nullptr) return std::nullopt;
  complain("no loaded generator stores measurements: name one in plugins.load");
  return exit_job_failed;
}

}  // namespace

int tune_export(const Options& options) {
  Session session(options);
  TuningStore* store = nullptr;
  if (const auto end = open_store(session, store)) return *end;
  const std::string text = store->exported();
  if (Status status = emit(text, options.subject); !status.ok()) {
    complain(status.message);
    return exit_job_failed;
  }
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const std::size_t records = lines == 0 ? 0 : lines - 1;  // the first line tells the form
  if (options.json) return finish_json({{"schema", 1}, {"file", options.subject}, {"records", records}}, options);
  return finish(visible(options.subject) + ": " + counted(records, "record") + "\n", options);
}

int tune_import(const Options& options) {
  const Result<std::string> text = read_whole_file(options.subject, most_bytes);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  Session session(options);
  TuningStore* store = nullptr;
  if (const auto end = open_store(session, store)) return *end;
  const auto merged = store->merge(*text);
  if (!merged) {
    complain("file " + visible(options.subject) + ": " + merged.error().message);
    return exit_job_failed;
  }
  if (options.json) {
    return finish_json(
        {{"schema", 1}, {"taken", merged->taken}, {"older", merged->older}, {"damaged", merged->damaged}}, options);
  }
  return finish("imported " + counted(merged->taken, "record") + "; " + std::to_string(merged->older) +
                    " not newer than the stored ones, " + std::to_string(merged->damaged) + " damaged\n",
                options);
}

}  // namespace kiln::host
