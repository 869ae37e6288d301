// DriverScratch: the private folder for the driver's own cache in this process: driver/<digest>.<pid>.<random>/.
//
// The driver runs the code in this folder, so only authenticated files are placed in it. The process holds a lock
// (flock) on the folder. Other processes remove unlocked folders older than a minute.
// Thread-safety: every method from any thread. Ownership: owns the folder's descriptor and lock; the last owner removes
// the folder and its content, when the driver's threads no longer write to it.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Parent folder of all DriverScratch folders, in the cache folder or in memory.
inline constexpr const char* driver_caches_name = "driver";
// In a DriverScratch folder: begins the names of folders of children that build. No name of a driver's file begins with
// a dot, so their files are never taken for those of this process.
inline constexpr const char* driver_folder_of_child = ".build-";

class DriverScratch {
 public:
  // Returns a new unique name on each call: "<digest>.<pid>.<16 digits>".
  static std::string new_name(std::string_view setting);
  // Returns the digest part of such a name, or an empty string for any other name.
  static std::string setting_of(std::string_view name);

  // Returns the folder that MESA_SHADER_CACHE_DIR names: the same object while anybody in this process holds it.
  // nullptr: it is not such a folder, or other users can write to it.
  static std::shared_ptr<DriverScratch> of_process();

  DriverScratch(const DriverScratch&) = delete;
  DriverScratch& operator=(const DriverScratch&) = delete;
  ~DriverScratch();

  const std::string& setting() const noexcept { return setting_; }
  // Writes the program's driver files to the folder if they match its setting. Existing files remain. io: a file could
  // not be written; the driver then compiles the code again.
  Status place(const ProgramBinary& program);

  // Names of the driver's files now.
  std::set<std::string> files() const;
  // Waits for the driver's threads, then adds the files written since `before` to the program. This includes files of
  // programs built at the same time. unsupported: too many files; none is added.
  Status collect(const std::set<std::string>& before, ProgramBinary& program);
  // Adds the files that were neither placed nor collected before. Each file is collected once. Cheap where the driver
  // wrote none since the call before.
  Status collect_new(ProgramBinary& program);

 private:
  DriverScratch(std::filesystem::path path, std::string setting, UniqueFd folder)
      : path_(std::move(path)), setting_(std::move(setting)), folder_(std::move(folder)) {}

  const std::filesystem::path path_;
  const std::string setting_;
  UniqueFd folder_;
  void remove_known();
  Status collect_except(const std::set<std::string>& before, ProgramBinary& program);
  // Bytes that the driver wrote, as its index counts them. nullopt: there is no such index.
  std::optional<std::uint64_t> written() const;

  std::mutex mutex_;
  std::set<std::string> known_;                // names of files that were placed or collected; guarded by mutex_
  std::optional<std::uint64_t> all_known_at_;  // written() when all files were known; guarded by mutex_
};

// Writes one driver file of a program. An existing file remains.
Status write_driver_file(int folder, const DriverFile& file);

// Returns all files below a driver folder, sorted, with relative names. Skips the driver's index, incomplete files and
// anything that is not a regular file. unsupported: more or larger files than a program may have, files in `except` not
// counted.
Result<std::vector<DriverFile>> read_driver_files(const std::filesystem::path& folder,
                                                  const std::set<std::string>& except = {});
// Adds the driver files of another copy of the program. Replaces files of another setting. unsupported: too many files.
Status add_driver_files(ProgramBinary more, ProgramBinary& program);
// Removes all files of the folder except the driver's index.
void empty_driver_folder(const std::filesystem::path& folder);

// Drivers compile and write files on their own threads.
enum class Threads : unsigned char {
  all = 1,    // of this process, except the caller
  of_drivers  // Mesa's threads, recognized by name
};
// Waits until each of these threads is idle in `samples` consecutive samples, or a few seconds have passed. One sample is
// enough where nobody gives these threads work any more.
void await_threads(Threads which, int samples = 3);

// Dispatches the program once with an empty grid on the device's queue and waits, so that the driver loads or generates
// the machine code. timeout: it did not finish within `patience`.
Status dispatch_nothing(Device& device, const Program& program, std::chrono::nanoseconds patience);

// Removes from `driver/` below `root` the folders of ended processes, and folders named by a digest alone (older Kiln
// versions) that were unused for a day.
void sweep_driver_folders(int root);

struct ClearedDriverFolders {
  std::uint64_t bytes = 0;  // removed; counts allocated blocks, not file size
  Status failure;           // the first error
};

// Removes these folders regardless of age, and `driver/` if it is then empty. Folders locked by a process remain.
ClearedDriverFolders clear_driver_folders(int root);

}  // namespace kiln
