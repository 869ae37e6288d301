// The files of the decision log: what keeps a decision from being recorded, and where the next one goes.
#include "core/selector/candidates.hpp"

#include "selector/decision_log.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::test;

namespace {

struct LogOf {
  explicit LogOf(const std::filesystem::path& folder, std::uint64_t most = 1 << 20)
      : log(folder, most, {&lines, LogLevel::info}) {
    prospect.device = &device;
  }
  void decide() { log.decided({}, std::span(&prospect, 1), {}, {}); }

  Lines lines;
  DeviceInfo device = device_of("one");
  selector::Prospect prospect;
  selector::DecisionLog log;
};

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("selector log: each process has a name of its own, and numbers its decisions", "[selector]") {
  const TemporaryFolder folder;
  LogOf one(folder.path()), two(folder.path());
  for (LogOf* log : {&one, &two, &one}) log->decide();
  const auto lines = lines_of(folder.path() / "selector.log");
  REQUIRE(lines.size() == 3);
  std::vector<std::string> ids;
  for (const std::string& line : lines) {
    const std::string before = R"("decision":")";
    const std::size_t at = line.find(before);
    REQUIRE(at != std::string::npos);
    ids.push_back(line.substr(at + before.size(), 18));
    CHECK(ids.back().find_first_not_of("0123456789abcdef") == 16);
  }
  CHECK(ids[0].substr(0, 16) == ids[2].substr(0, 16));
  CHECK(ids[0].substr(0, 16) != ids[1].substr(0, 16));
  CHECK(ids[0].substr(16) == ids[1].substr(16));
  CHECK(ids[0] != ids[2]);
}

TEST_CASE("selector log: on a full disk decisions are no longer recorded, said once", "[selector]") {
  const TemporaryFolder folder;
  LogOf log(folder.path());
  struct rlimit room {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &room) == 0);
  const struct rlimit none = {0, room.rlim_max};
  const auto heard = std::signal(SIGXFSZ, SIG_IGN);  // the write then answers EFBIG, as a full disk answers ENOSPC
  REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
  log.decide();
  REQUIRE(setrlimit(RLIMIT_FSIZE, &room) == 0);
  std::signal(SIGXFSZ, heard);
  const auto file = folder.path() / "selector.log";
  CHECK(log.lines.all == std::vector<std::string>{"decisions are no longer recorded: file " + file.string() +
                                                  ": cannot be written: File too large"});
  CHECK_FALSE(log.log.enabled());
  CHECK(std::filesystem::file_size(file) == 0);
}

TEST_CASE("selector log: a pipe is not written although somebody reads it", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.log";
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  const int reader = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  LogOf log(folder.path());
  log.decide();
  char byte = 0;
  CHECK(::read(reader, &byte, 1) <= 0);
  ::close(reader);
  CHECK(log.lines.all ==
        std::vector<std::string>{"decisions are no longer recorded: file " + file.string() + ": not a regular file"});
}

TEST_CASE("selector log: a file is full from half of the limit", "[selector]") {
  const auto bytes = GENERATE(499u, 500u);
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "selector.log") << std::string(bytes - 1, 'x') << '\n';
  LogOf log(folder.path(), 1000);
  log.decide();
  CHECK(log.lines.all.empty());
  CHECK(std::filesystem::exists(folder.path() / "selector.log.1") == (bytes == 500));
  CHECK(lines_of(folder.path() / "selector.log").size() == (bytes == 500 ? 1 : 2));
}

TEST_CASE("selector log: where another process moved the file on, the new one is gone on with", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.log", older = folder.path() / "selector.log.1";
  LogOf log(folder.path());
  log.decide();
  std::filesystem::rename(file, older);
  SECTION("it is there") { std::ofstream(file) << "begun\n"; }
  SECTION("it is not there yet") {}
  const std::size_t begun = lines_of(file).size();
  log.decide();
  CHECK(lines_of(file).size() == begun + 1);
  CHECK(lines_of(older).size() == 1);
  CHECK(log.lines.all.empty());
}

TEST_CASE("selector log: more than 64 MiB are not read", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.log";
  std::ofstream(file) << "{}";
  std::filesystem::resize_file(file, (64 << 20) + 1);
  const auto read = selector::read_decisions(file);
  REQUIRE_FALSE(read);
  CHECK_THAT(read.error().message, Catch::Contains("67108865") && Catch::Contains("67108864"));
}
