#include "core/cache/powercut/recording.hpp"

#include "core/cache/powercut/write_log.hpp"

#include <utility>

namespace kiln::test {

Recording record(const std::filesystem::path& folder, const std::function<std::string()>& work) {
  Recording recording;
  recording.before = FolderImage::of(folder);
  WriteLog log = record_writes(folder, work);
  recording.why_not = std::move(log.why_not);
  recording.wrong = std::move(log.wrong);
  if (!recording.why_not.empty() || !recording.wrong.empty()) return recording;
  recording.operations = operations_of(recording.before, log.calls);
  FolderImage after = recording.before;
  for (const Operation& operation : recording.operations) apply(after, operation, Fate::kept);
  if (after.fingerprint() != FolderImage::of(folder).fingerprint()) recording.wrong = "the log is not whole";
  return recording;
}

}  // namespace kiln::test
