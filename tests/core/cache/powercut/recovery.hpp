// Recovery: what a cache makes of a folder that a power cut left, against what the folder's bytes say it must.
//
// The bytes are judged without the cache's own checks: an entry is whole if and only if it is, byte for byte, one that
// was once published under its name. Thread-safety: one thread at a time. Ownership: values; folders are removed.
#pragma once

#include "core/cache/powercut/folder_image.hpp"
#include "core/cache/powercut/operations.hpp"
#include "core/cache/synthetic_device.hpp"

#include <kiln/program_cache.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kiln::test {

struct TestProgram {
  std::string name, text;
  ProgramKey key(const SyntheticDevice& device) const;
};
// Of so many bytes, which no compression makes much smaller.
TestProgram program_of(const std::string& name, std::size_t bytes);
Result<Acquired> ask(ProgramCache& cache, const TestProgram& program, SyntheticDevice& device);

// Where a cache and its key lie below one folder.
inline constexpr const char* cache_folder = "cache";
inline constexpr const char* key_path = "state/key";
CacheConfig config_below(const std::filesystem::path& folder);

enum class First : std::uint8_t { invalid = 0, asked_for, persisted };

class Recovery {
 public:
  // programs: all that anybody asked for. before: sound.
  Recovery(std::vector<TestProgram> programs, const FolderImage& before, std::span<const Operation> operations);

  // What is wrong with what becomes of the state, or nothing. First: what is done with it at first.
  std::string check(const FolderImage& state, First first);

  double longest_ms() const noexcept { return longest_ms_; }  // from opening the cache to its first answer
  std::uint64_t hits() const noexcept { return hits_; }
  std::uint64_t damaged() const noexcept { return damaged_; }
  std::uint64_t set_aside() const noexcept { return set_aside_; }
  std::uint64_t foreign() const noexcept { return foreign_; }

 private:
  enum class Stored : std::uint8_t { absent = 0, whole, damaged };
  struct Expected {  // of one program
    Stored stored = Stored::absent, pending = Stored::absent;
    bool marked = false;       // a process died loading it
    bool suspect = false;      // a process had died loading it before
    bool quarantined = false;  // set aside already
  };

  Expected expected_of(const FolderImage& state, const TestProgram& program) const;
  Stored stored_at(const FolderImage& state, const std::string& path) const;
  std::string ask_for_all(const CacheConfig& config, const std::vector<Expected>& expected, bool foreign);
  std::string persist(const CacheConfig& config, std::vector<Expected>& expected, bool foreign);
  std::string ask_again(const CacheConfig& config);
  std::string look_around(const CacheConfig& config) const;

  const std::vector<TestProgram> programs_;
  const TestProgram added_ = program_of("added afterwards", 700);
  std::map<std::string, std::set<std::string>> published_;  // file name -> all that ever had it
  std::string secret_;
  double longest_ms_ = 0;
  std::uint64_t hits_ = 0, damaged_ = 0, set_aside_ = 0, foreign_ = 0;
};

}  // namespace kiln::test
