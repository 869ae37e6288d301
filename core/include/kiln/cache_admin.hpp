// Cache administration: what lies in a program cache, whether it is sound, and what may go, seen from outside a job.
//
// No device and no plugin is opened, nothing waits for a running job, and no running job for this: what goes away under
// a job is a miss to it. What is listed is not trusted; verify_cache() tells what is authentic. Every call takes the
// configuration's [cache] section; where there is no folder yet it makes none, and answers what an empty one would.
// unavailable: the folder is not this user's alone. invalid_argument: [cache] read_only forbids what was asked.
// Thread-safety: pure calls of the operating system, from any thread. Ownership: values.
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

// Told after each program that was worked on, by who is at it: how many so far, of how many.
using CacheProgress = std::function<void(std::size_t done, std::size_t of)>;

// Whether there is a folder at [cache] directory.
Result<bool> cache_exists(const CacheConfig& cache);

// --- what is stored

struct CachedProgram {
  Digest key;
  std::string folder;  // of its device and driver: CacheDevice::folder
  std::string label;   // this and what it is for, from its .meta; empty: not known
  ProgramPurpose purpose;
  std::uint64_t bytes = 0;  // on disk, the .meta included
  double build_ms = 0;      // this and what follows, from its .meta; 0: not known
  double first_dispatch_ms = 0;
  double gflops = 0;
  std::uint64_t times_used = 0;
  std::int64_t last_used_s = 0;  // since 1970; by the times of its files
  bool pending = false;          // waits for persist
};

// A program that is not found by its name. Suspect: it was being loaded when a process died; the next use tries it in a
// child process. Quarantined: a child died of it; it is built anew until then.
struct AsideProgram {
  Digest key;
  std::string folder, label;
  bool quarantined = false;
  std::int64_t since_s = 0, until_s = 0;  // since 1970
  std::string why;
};

struct CacheDevice {
  std::string folder;
  std::string device, kind, driver;  // in words, from its manifest; empty: not known
  std::uint64_t programs = 0, bytes = 0;
};

struct CacheInventory {
  std::vector<CacheDevice> devices;
  std::vector<CachedProgram> programs;  // by label, then key; those that are pending last. Empty with Detail::figures
  std::vector<AsideProgram> aside;      // by label, then key; likewise
  std::uint64_t programs_stored = 0, bytes_stored = 0;
  std::uint64_t programs_pending = 0, bytes_pending = 0;
};

enum class Detail : std::uint8_t { invalid = 0, figures, programs };

Result<CacheInventory> cache_inventory(const CacheConfig& cache, Detail detail);

// --- one program

struct KeyFieldText {
  std::string name;
  std::string text;  // integers and words as they are; bytes that are no text in hexadecimal
};

struct CachedDriverFile {
  std::string name;
  std::uint64_t bytes = 0;
};

struct ProgramInspection {
  CachedProgram program;
  CacheDevice device;
  std::string path;
  std::string verdict;  // "authentic", a word of RejectedCounts, "suspect" or "not checked"
  std::string why;      // empty where authentic
  // From the header; believed no more than the verdict allows. 0 where it cannot be read.
  std::uint32_t schema = 0;
  std::string compression, format, signed_by;
  std::uint64_t material_bytes = 0, stored_bytes = 0, inflated_bytes = 0;
  double build_ms = 0;
  std::vector<KeyFieldText> fields;  // of the key, in their order
  // Files of the driver's own cache that the entry holds; only of an authentic one.
  std::vector<CachedDriverFile> driver_files;
};

// `which` is a label or its parts before some '/', a key, or at least four leading digits of a key. not_found and
// invalid_argument (it stands for several) name what there is.
Result<ProgramInspection> inspect_program(const CacheConfig& cache, std::string_view which);

// Why, until when, and by which command before: one line.
std::string words_of(const AsideProgram& program);

// Ends the quarantine, or the suspicion, of the programs that `which` names: the next use loads them. not_found: none.
Result<std::vector<AsideProgram>> release_programs(const CacheConfig& cache, std::string_view which);

// --- why one was not found

struct KeyDifference {   // one field in which two keys differ
  std::string name;      // as in KeyFieldText; of several with one name the first is "name", the others "name[1]", …
  std::string asked;     // the whole text; of a source, the first line that differs
  std::string stored;    // likewise
  bool in_asked = true;  // false: this key has no such field
  bool in_stored = true;
  std::uint64_t line = 0;             // of a source: which, from 1; 0: no source
  std::uint64_t lines_differing = 0;  // of a source: in all, line by line from either end
};

struct MissExplanation {
  Digest key;
  std::string label;
  std::int64_t missed_s = 0;             // since 1970
  std::string reason;                    // "absent", or a word of RejectedCounts
  std::string why;                       // in words; may be empty
  bool stored_now = false;               // built and stored since
  std::optional<CachedProgram> nearest;  // of the programs that were stored by then; empty: there is none to compare
  CacheDevice nearest_device;
  std::vector<KeyDifference> differences;  // from the nearest one, in the order of the fields
};

// The latest misses first. `which` as for inspect_program(), of keys that were missed. not_found: no miss of that name
// is remembered (the newest 1,024 are), with whether such a program is stored. invalid_argument: several keys begin so.
Result<std::vector<MissExplanation>> explain_misses(const CacheConfig& cache, std::string_view which);

// --- what waits

struct BadEntry {
  Digest key;
  std::string folder, label;
  std::string reason;  // a word of RejectedCounts
  std::string why;
  bool removed = false;
};

struct PersistOutcome {
  std::uint64_t stored = 0, bytes = 0;
  std::uint64_t already = 0;  // stored in the meantime by somebody else: taken off the list
  std::uint64_t left = 0;     // still pending
  std::vector<BadEntry> bad;  // not stored, and removed: they are not sound
  std::uint64_t pruned = 0;   // stored programs that had to go: over max_disk
  Status failure;             // the first thing that could not be done
};

// Stores what [cache] auto_save = false set aside: all of it, or what is named as for inspect_program(). Each is
// authenticated again. not_found: nothing pending has that name.
Result<PersistOutcome> persist_cache(const CacheConfig& cache, std::span<const std::string> which,
                                     const CacheProgress& progress = {});

// --- one file for another machine

struct BundleExport {
  std::uint64_t programs = 0, bytes = 0;
  std::string public_key;     // 64 hexadecimal digits, that an importer trusts
  std::vector<BadEntry> bad;  // left out: not sound
};

// The public key that this user's bundles are signed with. The secret one is made where there is none yet: 0600, beside
// key_file.
Result<std::string> bundle_public_key(const CacheConfig& cache);

// Writes the programs that are named as for inspect_program(), or all, with their driver files into one signed file,
// which appears whole or not at all. not_found: nothing has that name, or nothing is stored.
Result<BundleExport> export_cache(const CacheConfig& cache, const std::filesystem::path& file,
                                  std::span<const std::string> which, const CacheProgress& progress = {});

struct ImportRequest {
  std::filesystem::path file;
  std::string trust;                // a public key of 64 hexadecimal digits, or the name of a file that holds one
  std::vector<DeviceInfo> devices;  // of this machine, opened: what is for others is left out
  CacheProgress progress = {};
};

struct BundleImport {
  std::uint64_t programs = 0, programs_already = 0, programs_of_others = 0, programs_quarantined = 0;
  std::uint64_t bytes = 0;   // written
  std::uint64_t pruned = 0;  // stored programs that had to go: over max_disk
};

// Nothing is written before the whole file is authenticated. corrupt: not a whole bundle, not signed by the trusted
// key, or altered. unsupported: made for other devices or drivers only, both named. Programs are signed anew with this
// user's key. What is there already stays: an import that was cut off may be done again.
Result<BundleImport> import_cache(const CacheConfig& cache, const ImportRequest& request);

// --- all programs

struct CacheVerdict {
  std::uint64_t entries = 0, ok = 0;  // stored and pending
  RejectedCounts rejected;
  std::vector<BadEntry> bad;
  std::vector<AsideProgram> aside;
  Status removal;  // the first failure to remove one
};

enum class BadEntries : std::uint8_t { invalid = 0, keep, remove };

// Reads and authenticates everything. Fails where the key cannot be read and there is something to authenticate.
Result<CacheVerdict> verify_cache(const CacheConfig& cache, BadEntries bad, const CacheProgress& progress = {});

// --- what may go

struct PruneLimits {
  std::optional<std::chrono::nanoseconds> max_age;  // what was not used for longer goes
  std::optional<std::uint64_t> max_bytes;           // then what was used least recently, until so much is left
};

struct CacheRemoval {
  std::uint64_t programs = 0, pending = 0, bytes = 0;
  std::uint64_t programs_left = 0, bytes_left = 0;  // bytes_left: programs and pending ones
  Status failure;                                   // the first thing that could not be removed
};

enum class Removal : std::uint8_t { invalid = 0, pretend, perform };

// Programs and pending programs by age and by size.
Result<CacheRemoval> prune_cache(const CacheConfig& cache, const PruneLimits& limits, Removal removal,
                                 const CacheProgress& progress = {});

enum class ClearScope : std::uint8_t { invalid = 0, programs, everything };

// Removes what Kiln made and nothing else: programs, their .meta files and manifests, pending ones, the folders of
// drivers that no process has locked, what was missed. everything: statistics, the selector's model and the verdicts on
// plugins too. Never a key.
Result<CacheRemoval> clear_cache(const CacheConfig& cache, ClearScope scope);

// --- statistics over processes

struct CacheTotals {
  CacheStats counts;                        // what lies in memory or on disk is not among it
  std::uint64_t processes = 0;              // that used the cache and could add their counts
  std::int64_t since_s = 0, updated_s = 0;  // since 1970; 0: never
};

Result<CacheTotals> cache_totals(const CacheConfig& cache);

// Prometheus text exposition format, version 0.0.4.
std::string cache_prometheus(const CacheTotals& totals, const CacheInventory& inventory, const CacheConfig& cache);

}  // namespace kiln
