// DriverScratch: the private folder in which this process's driver keeps its cache: driver/<digest>.<pid>.<random>/.
//
// The driver runs what it finds there, so only bytes that were authenticated are placed in it. A process that uses
// the folder holds a lock (flock) on it. Other processes remove folders that are older than a minute and not locked.
// Thread-safety: every method from any thread. Ownership: owns the folder's descriptor and its lock; the last one of a
// folder removes it with everything in it.
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
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Below a cache folder, or the folder in memory: the private folders of processes lie in it.
inline constexpr const char* driver_caches_name = "driver";

class DriverScratch {
 public:
  // "<digest>.<pid>.<16 digits>", another one at each call.
  static std::string new_name(std::string_view setting);
  // The digest in such a name; empty: it is no such name.
  static std::string setting_of(std::string_view name);

  // The folder that this process's driver was pointed at by MESA_SHADER_CACHE_DIR. nullptr: it is none of these, or
  // others can have a hand in it.
  static std::unique_ptr<DriverScratch> of_process();

  DriverScratch(const DriverScratch&) = delete;
  DriverScratch& operator=(const DriverScratch&) = delete;
  ~DriverScratch();

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::string& setting() const noexcept { return setting_; }
  // Gives the driver the files of a program, where they are for its setting. A file that is there stays: the driver has
  // it from this process. io: the reason why one could not be written; the driver then generates its code anew.
  Status place(const ProgramBinary& program);

  // Names of the driver's files at this moment.
  std::set<std::string> files() const;
  // Gives the program the files that the driver wrote since `before`, those of programs that were built meanwhile
  // included. It waits for the driver's threads. unsupported: too many, and the program gets none.
  Status collect(const std::set<std::string>& before, ProgramBinary& program);
  // The same with the files that were neither placed nor collected before: none is collected twice.
  Status collect_new(ProgramBinary& program);

 private:
  DriverScratch(std::filesystem::path path, std::string setting, UniqueFd folder)
      : path_(std::move(path)), setting_(std::move(setting)), folder_(std::move(folder)) {}

  const std::filesystem::path path_;
  const std::string setting_;
  UniqueFd folder_;
  std::mutex mutex_;
  std::set<std::string> known_;  // names of files that were placed or collected; guarded by mutex_
};

// Writes a file of a program into a driver's folder; one that is there stays.
Status write_driver_file(int folder, const DriverFile& file);

// Every file of a driver's folder with its name relative to it, sorted. Left out are what the driver keeps about its
// files (its index), files that are being written, and what is no file. unsupported: more or larger files than a
// program may have, `except` not counted.
Result<std::vector<DriverFile>> read_driver_files(const std::filesystem::path& folder,
                                                  const std::set<std::string>& except = {});
// Gives the program the files of another record of it. Files for another setting are replaced. unsupported: too many.
Status add_driver_files(ProgramBinary more, ProgramBinary& program);
// Removes what is in the folder, but for the driver's index.
void empty_driver_folder(const std::filesystem::path& folder);

// A driver compiles and writes its files on threads of its own.
enum class Threads : unsigned char {
  all = 1,    // of this process but the caller
  of_drivers  // those of Mesa, known by their names
};
// Returns when each of these threads waits for work, as seen several times in a row, or after some seconds.
void await_threads(Threads which);

// Dispatches the program once with an empty grid, by the device's own queue, and waits for it: the driver reads or
// generates the program's machine code. timeout: it did not end in time.
Status dispatch_nothing(Device& device, const Program& program, std::chrono::nanoseconds patience);

// Removes from `driver/` below the folder `root`: the folders of ended processes, and the folders of older versions of
// Kiln (their names are the digest alone) that nobody used for a day.
void sweep_driver_folders(int root);

struct ClearedDriverFolders {
  std::uint64_t bytes = 0;  // removed; a sparse file counts what it takes
  Status failure;           // the first thing that could not be removed
};

// Removes the same folders whatever their age, and `driver/` where that leaves it empty. A folder that a process has
// locked stays.
ClearedDriverFolders clear_driver_folders(int root);

}  // namespace kiln
