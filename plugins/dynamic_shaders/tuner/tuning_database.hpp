// TuningDatabase: what tuning measured, per device, shape and variant, in one file that processes share.
//
// Text, so that it can be read, compared and handed on: the first line is "kiln-tuning 1"; each further line is one
// record, fields parted by tabs, the last field a checksum of the others. A line that is damaged, or of a newer form,
// is left out and counted; it never costs the others. A file whose first line is another one (of a newer Kiln) or that
// cannot be read is never written over. Writing reads the file again under a lock, replaces records of
// the same (device, spec, variant), drops the oldest shapes beyond most_records, and renames a whole new file over the
// old one.
// Thread-safety: every method from any thread. Ownership: owns what it has read.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/tuning.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::dynamic_shaders {

// outvoted: its output differs from that of the largest group of variants, and nothing else tells which is right.
// foreign: another machine's winner, with that machine's times. It is not used.
enum class Verdict : std::uint8_t { invalid = 0, measured, winner, rejected, outvoted, foreign };

struct TuningRecord {
  std::string device;  // device_digest()
  std::string spec;    // record_spec()
  std::string variant;
  Verdict verdict = Verdict::invalid;
  std::uint64_t when = 0;  // seconds since 1970
  std::string source;      // digest of the plan's sources
  double max_rel_error = 0, error_bound = 0;
  std::vector<std::uint64_t> wall_ns, device_ns;
  std::string why;    // rejected, outvoted: the reason; winner: why its times no longer hold, empty while they do
  std::string basis;  // TuneOptions::basis

  bool stale() const noexcept { return verdict == Verdict::winner && !why.empty(); }
  bool is_refused() const noexcept { return verdict == Verdict::rejected || verdict == Verdict::outvoted; }
};

// What two measurements must share to be comparable: identity of device and driver, and what changes its code.
std::string device_digest(const DeviceInfo& device);

// The spec as records have it: its canonical text, of a user's kernel with the first value of each parameter alone.
// Those make the variant that all others are compared with; one more value is one more variant of the same spec.
std::string record_spec(const KernelSpec& spec);

std::string to_line(const TuningRecord& record);  // with its line end
// Absent: damaged, or not of this form.
std::optional<TuningRecord> record_of(std::string_view line);

class TuningDatabase {
 public:
  static constexpr std::size_t most_records = 20'000;

  // Empty: nothing is kept. The file is read at first use, and where it is read_only never written.
  explicit TuningDatabase(std::filesystem::path file, bool read_only = false)
      : file_(std::move(file)), read_only_(read_only) {}

  bool read_only() const noexcept { return read_only_; }
  std::vector<TuningRecord> of(std::string_view device, std::string_view spec);
  std::optional<TuningRecord> winner(std::string_view device, std::string_view spec);
  // All shapes' winners on a device.
  std::vector<TuningRecord> winners(std::string_view device) { return all(device, Verdict::winner); }
  // Foreign winners of shapes without a winner; one of each shape.
  std::optional<TuningRecord> foreign(std::string_view device, std::string_view spec);
  std::vector<TuningRecord> all_foreign(std::string_view device) { return all(device, Verdict::foreign); }
  bool has_winners() const noexcept { return has_winners_.load(std::memory_order_relaxed); }  // of what was read so far
  std::size_t damaged();
  // Takes in what other processes wrote since the file was read. true: it had changed.
  bool refresh();

  // Whether what is put would be kept, by the file as it is now, of which nothing is taken in: the errors of put() but
  // those of writing.
  Status usable() const;

  // Replaces what it has of the same device, spec and variant, in memory and in the file. A record that says winner
  // makes the winner before it `measured`, and ends the foreign ones of its shape. io: the file could not be read or written; corrupt: it is none of this
  // form, and is left as it is; unavailable: it is only read. Memory has the records all the same.
  Status put(const std::vector<TuningRecord>& records);

  // As the file has it.
  std::string text();
  // Puts those records of such a text that are newer than what is here. An imported winner that is older than the
  // winner here becomes `measured`, and only an imported winner takes the place of the winner here. corrupt: the text
  // does not begin as one.
  Result<MergedTuning> merge(std::string_view text);
  // Puts the winners of such a text as foreign ones: those of `device` that are usable, for shapes without a winner,
  // and of which this machine has measured nothing with the same sources and refused nothing. Empty: all are usable.
  Result<MergedTuning> merge_foreign(std::string_view text, std::string_view device,
                                     const std::function<bool(const TuningRecord&)>& is_usable = {});
  // The winners on a device and, for the other shapes, the newest of the foreign ones and of those that merge_foreign()
  // was given, as a text of winners alone; empty: there are none.
  std::string winners_text(std::string_view device);

 private:
  using Key = std::pair<std::string, std::string>;  // device, spec
  void read();                                      // REQUIRES: mutex_ held
  std::vector<TuningRecord> all(std::string_view device, Verdict verdict);
  void take(std::string_view text);
  Status take_file();
  void replace(const TuningRecord& record);
  void prune();
  std::string whole_text() const;
  Status write() const;

  const std::filesystem::path file_;
  const bool read_only_;
  std::mutex mutex_;
  bool read_ = false;
  std::string version_;  // of the file, when it was read or written last
  std::size_t damaged_ = 0;
  std::atomic<bool> has_winners_{false};
  std::map<Key, std::vector<TuningRecord>> records_;
  std::map<Key, TuningRecord> given_;  // to merge_foreign(): the newest winner of each shape
};

}  // namespace kiln::dynamic_shaders
