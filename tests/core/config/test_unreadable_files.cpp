// Files that are not there, are folders, or may not be read; and KILN_CONFIG.
#include "core/config/config_fixture.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kiln-config-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    REQUIRE(::chmod(name.c_str(), 0755) == 0);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Root reads whatever it likes: for the time of this object the process is nobody where it was root.
class WithoutRoot {
 public:
  WithoutRoot() : root_(::geteuid() == 0) {
    if (root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~WithoutRoot() {
    if (root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool root_;
};

std::vector<std::string> problems_of_file(const std::filesystem::path& file) {
  ConfigSources sources = at_home();
  sources.file = file;
  return texts(read_config(sources).problems);
}

}  // namespace

TEST_CASE("config: a missing file is a problem that names it", "[config]") {
  const Folder folder;
  const std::filesystem::path file = folder.path() / "missing.toml";
  CHECK(problems_of_file(file) == std::vector<std::string>{file.string() + ": no such file"});
}

TEST_CASE("config: a folder instead of a file", "[config]") {
  const Folder folder;
  CHECK(problems_of_file(folder.path()) ==
        std::vector<std::string>{folder.path().string() + ": found a folder, expected a file"});
}

TEST_CASE("config: a FIFO is read to its end, and is an error where nobody writes to it", "[config]") {
  const Folder folder;
  const std::filesystem::path file = folder.path() / "pipe.toml";
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK(problems_of_file(file) ==
        std::vector<std::string>{file.string() + ": found a pipe without a writer, expected a file"});
  const int ends = ::open(file.c_str(), O_RDWR | O_CLOEXEC);  // so that the writer need not wait for the reader
  REQUIRE(ends >= 0);
  const std::string text = "[cache]\nno_such_key = 1\n";
  REQUIRE(::write(ends, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  std::thread closing([ends] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::close(ends);
  });
  const std::vector<std::string> problems = problems_of_file(file);
  closing.join();
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::Contains("no_such_key"));
}

TEST_CASE("config: a file that may not be read", "[config]") {
  const Folder folder;
  const std::filesystem::path file = folder.path() / "secret.toml";
  std::ofstream(file) << "[cache]\n";
  REQUIRE(::chmod(file.c_str(), 0) == 0);
  const WithoutRoot person;
  REQUIRE(::open(file.c_str(), O_RDONLY | O_CLOEXEC) == -1);
  CHECK(problems_of_file(file) == std::vector<std::string>{file.string() + ": cannot be read: Permission denied"});
}

TEST_CASE("config: a file of more than the most bytes", "[config]") {
  const Folder folder;
  const std::filesystem::path file = folder.path() / "large.toml";
  std::ofstream(file) << std::string((4u << 20u) + 1, '\n');
  CHECK(problems_of_file(file) ==
        std::vector<std::string>{file.string() + ": found more than the limit of 4194304 bytes"});
}

TEST_CASE("config: KILN_CONFIG names the file where no file is given", "[config]") {
  const Folder folder;
  const std::filesystem::path file = folder.path() / "kiln.toml", other = folder.path() / "other.toml";
  std::ofstream(file) << "[cache]\npolicy = \"cost\"\n";
  std::ofstream(other) << "[cache]\npolicy = \"sieve\"\n";
  ConfigSources sources = at_home();
  sources.environment["KILN_CONFIG"] = file.string();
  ConfigReading reading = read_config(sources);
  CHECK(reading.problems.empty());
  CHECK(reading.config.cache.policy == "cost");
  CHECK(reading.config.origins.at("cache.policy").detail == file.string() + ":2:1");

  sources.file = other;
  CHECK(read_config(sources).config.cache.policy == "sieve");

  sources.file.reset();
  sources.environment["KILN_CONFIG"] = (folder.path() / "missing.toml").string();
  reading = read_config(sources);
  CHECK(texts(reading.problems) ==
        std::vector<std::string>{(folder.path() / "missing.toml").string() + ": no such file (named by KILN_CONFIG)"});
}
