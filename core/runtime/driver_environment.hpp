// The environment of drivers: what their libraries are, and where their caches lie.
//
// What an ELF file's headers say of it: its build-id and the libraries it needs. Nothing of its code is read.
//
// Thread-safety: free function. Ownership: the file is opened and closed inside the call.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/config.hpp>

namespace kiln {

struct ElfFacts {
  std::string build_id;             // raw bytes of .note.gnu.build-id; empty: it has none
  std::vector<std::string> needed;  // DT_NEEDED, in the file's order
};

// nullopt: it cannot be read, or is no 64-bit little-endian ELF file with sane headers.
std::optional<ElfFacts> read_elf_facts(const std::filesystem::path& file);

// The environment that makes Mesa keep its cache in Kiln's folder: kiln::driver_environment, with everything it looks
// at passed in.
//
// Thread-safety: free functions over their arguments. Ownership: values. Nothing is created: the folder that is named
// is made ready (kiln/driver_cache.hpp) by the host that applies the list, before EGL starts; Mesa makes only a missing
// last component, and would do so with a wider mode.
//
// The folder is driver/<digest>.<pid>.<random>/ in the user's folder in memory ($XDG_RUNTIME_DIR/kiln, else
// /dev/shm/kiln-UID), else in <cache.directory>: another one at each call. The digest covers the build-ids of the
// driver's files, the settings that change the code it generates but not its own cache keys (LP_*, GALLIVM_*,
// GALLIUM_*), and the processor's features. A cache that is only read has none outside memory: Mesa would write to it.

struct DriverSurroundings {
  std::map<std::string, std::string> variables;        // of the process
  std::vector<std::filesystem::path> library_folders;  // where the distribution keeps libraries; drivers in their dri/
  std::filesystem::path memory_folder;  // this user's, on a file system in memory; may not exist; empty: there is none
};

// Those of this process and this distribution.
DriverSurroundings surroundings_of_process();

struct DriverEnvironment {
  std::vector<std::pair<std::string, std::string>> set;  // what the host shall set
  // What the user has set already: it wins, but for a folder of the driver that Kiln has not named.
  std::vector<std::string> kept;
};

DriverEnvironment driver_environment(const Config& config, const DriverSurroundings& surroundings);

}  // namespace kiln
