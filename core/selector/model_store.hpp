// ModelRecord: one line of the model's file: a checksum, a space, a JSON object. Each line stands for itself, so that a
// damaged one costs nothing but itself.
//
// Thread-safety: pure. Ownership: values.
//
// Format, schema 2. First line: "kiln selector model 2". Then lines of "<16 hexadecimal digits: XXH3 of the rest>
// JSON":
//   an arm: {"operation", "device", "driver", "shape": text, "runs", "weight", "mean", "variance", "widening",
//   "alarms":
//     of the natural logarithm of nanoseconds, "transfer", "first": [count, mean, variance], "log_flops", "log_bytes",
//     "looks", "used"}
//   what was not learned from: {"unfit": {"reason": count}}
#pragma once

#include "base/os/atomic_file.hpp"
#include "selector/performance_model.hpp"

#include <kiln/buffer.hpp>
#include <kiln/log.hpp>
#include <kiln/selector_admin.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kiln::selector {

inline constexpr std::string_view model_header = "kiln selector model 2";

using UnfitCounts = std::map<std::string, std::uint64_t>;  // by reason
using KeyedArm = std::pair<ArmKey, Arm>;

std::string line_of(const ArmKey& key, const Arm& arm);  // without the newline
std::string line_of(const UnfitCounts& counts);

// What a line holds, or which validator refused it. `line`: its number, from 1.
std::variant<KeyedArm, UnfitCounts, RejectedRecord> record_of(std::string_view text, std::size_t line);

// ModelStore: the performance model on disk: <cache>/selector.model, readable by its owner alone (format:
// above).
//
// A file appears complete or not at all; several processes may write: each merges what it learned into what is there,
// under a lock that a process which dies lets go of. A damaged record is left out with a log line that says which
// validator refused it; a folder that cannot be written makes the model memory only, said once.
// Thread-safety: none; one thread at a time. Ownership: owns nothing but its path and the base of the next merge.

inline constexpr std::string_view model_file = "selector.model";
inline constexpr std::string_view model_lock = "selector.lock";
inline constexpr std::string_view unfinished_model_file = "selector.model.new";

// One process at a time reads, merges and writes the model; the lock ends with the descriptor. Makes the folder where
// it is missing. unavailable: another process held it for seconds. io: no file could be made.
Result<UniqueFd> lock_model(const std::filesystem::path& folder);

struct StoredModel {
  bool exists = false;
  std::map<ArmKey, Arm> arms;
  UnfitCounts unfit;
  std::vector<RejectedRecord> rejected;
};

// io where the file is there and cannot be read.
Result<StoredModel> read_model(const std::filesystem::path& file);
// REQUIRES: the caller holds the lock.
Status write_model(const std::filesystem::path& file, const std::map<ArmKey, Arm>& arms, const UnfitCounts& unfit);

class ModelStore {
 public:
  // An empty folder: memory only. alpha: of the model's averages.
  ModelStore(const std::filesystem::path& folder, Log log, bool read_only = false,
             double alpha = SelectorConfig().ema_alpha);

  std::map<ArmKey, Arm> load();
  // Brings what was learned since the last merge into the file, and answers what the file holds then; nullopt: nothing
  // was written, and the next merge will bring it. `unfit`: counted since the last merge.
  std::optional<std::map<ArmKey, Arm>> merge(const std::map<ArmKey, Arm>& mine, const UnfitCounts& unfit);
  // The caller holds the answer of the last merge from now on.
  void adopted(const std::map<ArmKey, Arm>& all) {
    base_ = all;
    read_ = std::exchange(written_, std::nullopt);
  }

 private:
  // What the file of this identity holds, beside base_.
  struct Known {
    FileIdentity identity;
    UnfitCounts unfit;
  };

  // What the file holds now; read only if it is not base_.
  StoredModel stored() const;
  void give_up(const Status& status);
  void tell(const StoredModel& stored) const;

  std::filesystem::path file_;  // empty: memory only
  Log log_;
  bool read_only_;
  double alpha_;
  std::map<ArmKey, Arm> base_;
  std::optional<Known> read_;     // the file that base_ was read from
  std::optional<Known> written_;  // the file of the last merge
  UnfitCounts unfit_;             // not written yet
};

// Merging models: what this process learned since it last looked, into what the file holds by now.
//
// Thread-safety: pure. Ownership: values.

// stored: what the file holds. base: what this process held when it last merged. mine: what it holds now. An arm that
// only one side learned about is taken from that side; where both did, means count by the runs that each side added. An
// arm of the base that the file no longer holds was reset: only what was learned since comes back.
std::map<ArmKey, Arm> merged(const std::map<ArmKey, Arm>& stored, const std::map<ArmKey, Arm>& base,
                             const std::map<ArmKey, Arm>& mine, double alpha);

}  // namespace kiln::selector
