// The `kiln` command as a process: started, waited for under a deadline, its exit status and output collected.
// Thread-safety: independent objects. Ownership: a TemporaryFolder removes itself.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name = "plain");  // the name may hold spaces
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  // Writes a text file in it and answers its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path root_;
  std::filesystem::path path_;
};

struct Finished {
  int status = -1;  // exit status; -signal where a signal ended it
  std::string out;
  std::string err;

  nlohmann::json json() const;  // of `out`
};

std::size_t lines_of(const std::string& text);  // ends of lines in it

enum class StandardOutput : std::uint8_t { invalid = 0, pipe, terminal };

struct ProcessOptions {
  std::map<std::string, std::string> environment{};  // over the test's own
  std::filesystem::path folder{};                    // working directory; empty: the test's
  std::vector<std::string> before{};                 // words in front of the command: setpriv, …
  std::uint64_t most_file_bytes = 0;                 // RLIMIT_FSIZE; 0: none
  std::string interrupt_when{};                      // text on standard error that triggers the signal; empty: never
  int interrupt_by = 2;                              // SIGINT
  StandardOutput output = StandardOutput::pipe;      // a terminal ends its lines by "\r\n"
  StandardOutput errors = StandardOutput::pipe;
};

// The cache folder is always a given one: pass --cache-dir in words.
Finished run_kiln(std::vector<std::string> words, const ProcessOptions& options = {});
Finished run_process(std::vector<std::string> words, const ProcessOptions& options = {});

struct Interrupted {
  Finished finished;
  std::filesystem::path cache;  // its cache folder
};

// Runs the words with --cache-dir until Kiln ends within the time that it has after a signal: a busy machine may be too
// slow for that, and Kiln then ends without a report. Each of at most five attempts has a cache folder of its own in `folder`.
Interrupted run_interrupted(const std::vector<std::string>& words, const ProcessOptions& options,
                            const TemporaryFolder& folder);

}  // namespace kiln::test
