// Cache administration: lists, verifies, imports, exports and removes the programs of a cache folder, without a running
// job.
//
// The functions open no device or plugin and do not block running jobs. A removed program is a cache miss for a running
// job. Listed data is not authenticated; use verify_cache(). The argument `cache` is the [cache] section. A missing folder
// counts as empty, and no function creates it.
// Errors: unavailable: the folder is not private to this user. invalid_argument: [cache] read_only forbids the change.
// Thread-safety: functions from any thread. Ownership: values. Sizes are in bytes.
//
//   auto inventory = kiln::cache_inventory(config.cache, kiln::Detail::programs);
//   if (!inventory) return inventory.error();
//   for (const kiln::CachedProgram& program : inventory->programs) std::cout << program.label << '\n';
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

namespace [[gnu::visibility("default")]] kiln {

// Called after each processed program, on a worker thread, with the number of processed programs and the total.
using CacheProgress = std::function<void(std::size_t done, std::size_t of)>;

// Returns whether the folder [cache] directory exists.
Result<bool> cache_exists(const CacheConfig& cache);

// Returns the error for a configuration without a cache folder.
Status no_cache_folder();

// Creates the folder unless the cache is read_only, and checks it. not_found: no folder is configured. unavailable: other
// users can change it. io: the folder cannot be read, or it cannot be written and the cache is not read_only.
Status check_cache_folder(const CacheConfig& cache);
// Checks that the key file, which authenticates stored programs, can be read. Returns ok or the error of reading it.
Status check_cache_key(const CacheConfig& cache);
// Returns whether the cache folder has a folder of a device. Returns false if the cache folder cannot be read.
bool holds_programs(const CacheConfig& cache);

// --- stored programs

struct CachedProgram {
  Digest key;
  std::string folder;  // CacheDevice::folder of its device and driver
  std::string label;   // label and purpose are from the .meta file; empty: unknown
  ProgramPurpose purpose;
  std::uint64_t bytes = 0;  // on disk, with the .meta file
  double build_ms = 0;      // this and the next two from the .meta file; 0: unknown
  double first_dispatch_ms = 0;
  double gflops = 0;
  std::uint64_t times_used = 0;
  std::int64_t last_used_s = 0;  // seconds since 1970, from the file times
  bool pending = false;          // not stored until persist
};

// A stored program that lookups skip. Suspect: a process died while it loaded the program; the next use tests
// the program in a child process. Quarantined: a child process died while it loaded the program; until `until_s`, the
// cache builds the program again.
struct AsideProgram {
  Digest key;
  std::string folder, label;
  bool quarantined = false;
  std::int64_t since_s = 0, until_s = 0;  // seconds since 1970
  std::string why;
};

struct CacheDevice {
  std::string folder;
  std::string device, kind, driver;  // display names from the manifest; empty: unknown
  std::uint64_t programs = 0, bytes = 0;
};

struct CacheInventory {
  std::vector<CacheDevice> devices;
  std::vector<CachedProgram> programs;  // by label, then key; pending ones last. Empty for Detail::figures
  std::vector<AsideProgram> aside;      // by label, then key. Empty for Detail::figures
  std::uint64_t programs_stored = 0, bytes_stored = 0;
  std::uint64_t programs_pending = 0, bytes_pending = 0;
  Status unread;  // the first folder that could not be opened; its programs are missing from the lists
};

enum class Detail : std::uint8_t { invalid = 0, figures, programs };

Result<CacheInventory> cache_inventory(const CacheConfig& cache, Detail detail);

// --- one program

struct KeyFieldText {
  std::string name;
  std::string text;  // integers and names as text; binary data in hexadecimal
};

struct CachedDriverFile {
  std::string name;
  std::uint64_t bytes = 0;
};

struct ProgramInspection {
  CachedProgram program;
  CacheDevice device;
  std::string path;
  std::string verdict;  // "authentic", a name of RejectedCounts, "suspect" or "not checked"
  std::string why;      // empty if authentic
  // From the header. Do not trust these values unless the verdict is "authentic". 0: not readable.
  std::uint32_t schema = 0;
  std::string compression, format, signed_by;
  std::uint64_t material_bytes = 0, stored_bytes = 0, inflated_bytes = 0;
  double build_ms = 0;
  std::vector<KeyFieldText> fields;  // of the key, in order
  // Driver files in the entry; only if authentic.
  std::vector<CachedDriverFile> driver_files;
};

// `which` is a label or its leading components, a key, or at least four leading digits of a key. not_found: no match.
// invalid_argument: several matches. Both errors list the existing programs.
Result<ProgramInspection> inspect_program(const CacheConfig& cache, std::string_view which);

// Returns one line with the reason, the end of the quarantine, and the command to end it earlier.
std::string words_of(const AsideProgram& program);

// Ends the quarantine or suspicion of the programs that match `which`; the next use loads them. not_found: no match.
Result<std::vector<AsideProgram>> release_programs(const CacheConfig& cache, std::string_view which);

// --- reasons of cache misses

struct KeyDifference {   // one field that differs between two keys
  std::string name;      // as in KeyFieldText; further fields of one name are "name[1]", …
  std::string asked;     // complete text; of a source, the first different line
  std::string stored;    // as `asked`
  bool in_asked = true;  // false: this key does not have the field
  bool in_stored = true;
  std::uint64_t line = 0;             // of a source: number of that line, from 1; 0: not a source
  std::uint64_t lines_differing = 0;  // of a source: number of different lines
};

struct MissExplanation {
  Digest key;
  std::string label;
  std::int64_t missed_s = 0;             // seconds since 1970
  std::string reason;                    // "absent", or a name of RejectedCounts
  std::string why;                       // details; may be empty
  bool stored_now = false;               // built and stored since
  std::optional<CachedProgram> nearest;  // closest program stored at that time; nullopt: none
  CacheDevice nearest_device;
  std::vector<KeyDifference> differences;  // from the closest program, in the order of the fields
};

// Returns the newest misses first. `which` selects missed keys as in inspect_program(). not_found: no such miss among the
// newest 1,024; the error states whether the program is stored. invalid_argument: an ambiguous key prefix.
Result<std::vector<MissExplanation>> explain_misses(const CacheConfig& cache, std::string_view which);
// Returns the explanations as one line of JSON (docs/json.md).
std::string explanations_json(std::span<const MissExplanation> misses);

// --- pending programs

struct BadEntry {
  Digest key;
  std::string folder, label;
  std::string reason;  // a name of RejectedCounts, or "too_large" to be shared
  std::string why;
  bool removed = false;
};

struct PersistOutcome {
  std::uint64_t stored = 0, bytes = 0;
  std::uint64_t already = 0;  // already stored by another process; no longer pending
  std::uint64_t left = 0;     // still pending
  std::vector<BadEntry> bad;  // not valid; removed without being stored
  std::uint64_t pruned = 0;   // stored programs evicted because of max_disk
  Status failure;             // the first error
};

// Stores pending programs ([cache] auto_save = false). `which` selects programs as in inspect_program(); empty: all
// programs. Authenticates each program again. not_found: no match.
Result<PersistOutcome> persist_cache(const CacheConfig& cache, std::span<const std::string> which,
                                     const CacheProgress& progress = {});

// --- bundles for other machines

struct BundleExport {
  std::uint64_t programs = 0, bytes = 0;
  std::string public_key;     // 64 hexadecimal digits; the importer must trust it
  std::vector<BadEntry> bad;  // not valid; not exported
};

// Returns the public key of this user's bundles. If the secret key does not exist, creates it beside key_file with mode
// 0600.
Result<std::string> bundle_public_key(const CacheConfig& cache);

// Writes programs with their driver files into one signed file, atomically. `which` selects programs as in
// inspect_program(); empty: all programs. not_found: no match, or nothing is stored.
Result<BundleExport> export_cache(const CacheConfig& cache, const std::filesystem::path& file,
                                  std::span<const std::string> which, const CacheProgress& progress = {});

struct ImportRequest {
  std::filesystem::path file;
  std::string trust;                // public key of 64 hexadecimal digits, or a file with one
  std::vector<DeviceInfo> devices;  // opened devices of this machine; programs for other devices are skipped
  CacheProgress progress = {};
};

struct BundleImport {
  std::uint64_t programs = 0, programs_already = 0, programs_of_others = 0, programs_quarantined = 0;
  std::uint64_t bytes = 0;   // bytes written
  std::uint64_t pruned = 0;  // stored programs evicted because of max_disk
};

// Authenticates the whole file before it writes anything. Signs the programs again with this user's key. Does not replace
// existing programs, so you can repeat an interrupted import. corrupt: the bundle is incomplete, altered, or not signed by
// the trusted key. unsupported: all programs are for other devices or drivers; the error names both.
Result<BundleImport> import_cache(const CacheConfig& cache, const ImportRequest& request);

// --- verification

struct CacheVerdict {
  std::uint64_t entries = 0, ok = 0;  // stored and pending
  RejectedCounts rejected;
  std::vector<BadEntry> bad;
  std::vector<AsideProgram> aside;
  Status removal;  // the first removal error
  Status unread;   // the first folder that could not be opened; its programs were not verified
};

enum class BadEntries : std::uint8_t { invalid = 0, keep, remove };

// Reads and authenticates all entries. Fails if entries exist and the key cannot be read.
Result<CacheVerdict> verify_cache(const CacheConfig& cache, BadEntries bad, const CacheProgress& progress = {});

// --- removal

struct PruneLimits {
  std::optional<std::chrono::nanoseconds> max_age;  // removes programs unused for longer
  std::optional<std::uint64_t> max_bytes;           // then removes least recently used programs down to this size
};

struct CacheRemoval {
  std::uint64_t programs = 0, pending = 0, bytes = 0;
  std::uint64_t programs_left = 0, bytes_left = 0;  // bytes_left includes pending programs
  Status failure;                                   // the first error
};

enum class Removal : std::uint8_t { invalid = 0, pretend, perform };

// Removes stored and pending programs by age, then by size.
Result<CacheRemoval> prune_cache(const CacheConfig& cache, const PruneLimits& limits, Removal removal,
                                 const CacheProgress& progress = {});

enum class ClearScope : std::uint8_t { invalid = 0, programs, everything };

// Removes only files that Kiln created: programs, .meta files, manifests, pending programs, unlocked driver folders and
// missed keys. everything: also removes statistics, the selector's model and the plugin check results. Never removes keys.
Result<CacheRemoval> clear_cache(const CacheConfig& cache, ClearScope scope);

// --- statistics of all processes

struct CacheTotals {
  CacheStats counts;                        // without current sizes in memory and on disk
  std::uint64_t processes = 0;              // processes that used the cache and stored their counters
  std::int64_t since_s = 0, updated_s = 0;  // seconds since 1970; 0: never
};

Result<CacheTotals> cache_totals(const CacheConfig& cache);

// Returns the Prometheus text exposition format, version 0.0.4.
std::string cache_prometheus(const CacheTotals& totals, const CacheInventory& inventory, const CacheConfig& cache);

}  // namespace kiln
