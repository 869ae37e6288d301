// survey: a walk over everything stored below a cache folder, for its bounds and its figures. Never on the way of a
// hit.
//
// Thread-safety: pure calls of the operating system; other processes may add and remove meanwhile. Ownership: values.
#pragma once

#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::string_view quarantined_suffix = ".quarantined";  // of a program that was set aside
inline constexpr std::int64_t quarantine_s = 7 * 24 * 3600;             // from then on

inline constexpr std::string_view suspect_suffix = ".suspect";  // of one that was being loaded at a death
inline constexpr std::int64_t second_death_s = 3600;            // without a trial, two within it quarantine

// What lies in the folders of a device: DEVICE/hh/DIGEST.bin and DEVICE/hh/DIGEST.meta.
struct StoredEntry {
  std::size_t folder = 0;  // into Survey::folders
  Digest digest;
  std::uint64_t bytes = 0;        // of both files
  std::int64_t last_used_ns = 0;  // since 1970: the later modification of the two
  bool program = false;           // the .bin is there: otherwise it is a .meta that lost its program
};

struct AsideEntry {  // DEVICE/hh/DIGEST.quarantined or .suspect
  std::size_t folder = 0;
  Digest digest;
  bool quarantined = false;  // false: suspect
  std::int64_t since_s = 0;  // since 1970
};

struct Survey {
  std::vector<std::string> folders;
  std::vector<StoredEntry> entries;
  std::vector<AsideEntry> aside;
  std::uint64_t bytes = 0;
};

enum class Sweep : std::uint8_t { invalid = 0, no, yes };

// yes: temporary files older than ten minutes, which a killed process left in a device folder or beside one, and
// programs that were set aside more than a week ago are removed on the way.
Survey survey(int root, Sweep sweep);

// Removes least recently used entries until at most `bytes` are left; answers how many were removed. At most 4096 go in
// one call: the rest waits for the next.
std::size_t prune(int root, Survey& found, std::uint64_t bytes);

// Both files of an entry; answers what could not be removed. A file that is gone already is no failure.
Status remove_entry(int root, const std::string& folder, const Digest& digest);

bool is_subfolder_name(std::string_view name) noexcept;                   // "hh"
bool is_stored_file_name(std::string_view name) noexcept;                 // "DIGEST.bin", "DIGEST.meta"
std::string subfolder_of(const Digest& digest);                           // "hh"
std::string file_name_of(const Digest& digest, std::string_view suffix);  // "DIGEST.bin"

}  // namespace kiln
