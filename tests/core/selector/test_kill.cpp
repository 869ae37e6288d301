// Two processes write the model all the time, are killed at any moment, and records are damaged between: what a save
// answered for is never lost, and a damaged record costs itself alone.
#include "core/selector/candidates.hpp"
#include "support/test_length.hpp"

#include "selector/model_store.hpp"

#include <catch2/catch.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

using namespace kiln;
using namespace kiln::selector;
using namespace kiln::test;

namespace {

// Learns one run after the other of an arm of its own, and tells the count after each save.
[[noreturn]] void write_for_ever(const std::filesystem::path& folder, const std::string& device, int told) {
  ModelStore store(folder, {});
  PerformanceModel model(0.1);
  model.replace(store.load());
  const ShapeBucket bucket = conv(64, 56);
  const DeviceInfo info = device_of(device);
  for (;;) {
    (void)model.learn_run(bucket, info, 1e6, 0);
    auto all = store.merge(model.arms(), {});
    if (!all) continue;  // the other writer had the lock for longer than a save waits: the next one brings it
    store.adopted(*all);
    model.replace(std::move(*all));
    const std::uint64_t count = model.estimate(bucket, info).runs;
    if (::write(told, &count, sizeof count) != sizeof count) _exit(2);
  }
}

struct Writer {
  pid_t pid = -1;
  int told = -1;

  Writer(const std::filesystem::path& folder, const std::string& device) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
    pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      write_for_ever(folder, device, ends[1]);
    }
    ::close(ends[1]);
    told = ends[0];
  }
  // Until it has saved once.
  void await_save() const {
    pollfd waiting{told, POLLIN, 0};
    if (::poll(&waiting, 1, 60'000) != 1) throw std::runtime_error("the writer saved nothing within 60 s");
  }
  // Kills it, and answers the last count that a save answered for; 0: none.
  std::uint64_t kill() {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status)) throw std::runtime_error("the writer ended by itself");
    std::uint64_t last = 0, count = 0;
    while (::read(told, &count, sizeof count) == sizeof count) last = count;
    ::close(told);
    return last;
  }
};

std::uint64_t runs_of(const StoredModel& stored, const std::string& device) {
  for (const auto& [key, arm] : stored.arms) {
    if (key.device == device) return arm.run.log_ns.count;
  }
  return 0;
}

// Flips a bit in the device's record, where it has one.
bool damage(const std::filesystem::path& file, const std::string& device) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  std::string all = text.str();
  const std::size_t at = all.find("\"device\":\"" + device);
  if (at == std::string::npos) return false;
  all[at + 3] = static_cast<char>(all[at + 3] ^ 4);
  std::ofstream(file) << all;
  return true;
}

}  // namespace

TEST_CASE("selector store: killed while it is written, by two writers, with damaged records between", "[selector]") {
  const int kills = is_long() ? 500 : 24;
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.model";
  std::mt19937 random(1);
  std::array<std::uint64_t, 2> least{};
  const std::array<std::string, 2> devices{"first", "second"};
  int damaged = 0;
  std::size_t unmended = 0;  // the damaged record stands there until the next save
  std::uint64_t saves = 0;
  for (int kill = 0; kill < kills; kill += 2) {
    CAPTURE(kill);
    Writer first(folder.path(), devices[0]), second(folder.path(), devices[1]);
    if (kill % 8 == 0) {  // however busy the machine is, some are killed amid their saves
      first.await_save();
      second.await_save();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(500, 30'000)(random)));
    const std::array<std::uint64_t, 2> told{first.kill(), second.kill()};
    const auto stored = read_model(file);
    REQUIRE(stored);
    if (told[0] + told[1] > 0) unmended = 0;
    REQUIRE(stored->rejected.size() <= unmended);
    for (std::size_t i = 0; i < 2; ++i) {
      saves += told[i] > least[i] ? told[i] - least[i] : 0;
      least[i] = std::max(least[i], told[i]);
      REQUIRE(runs_of(*stored, devices[i]) >= least[i]);
      least[i] = runs_of(*stored, devices[i]);
    }
    if (kill % 10 == 8 && damage(file, devices[0])) {
      ++damaged;
      unmended = 1;
      const auto left = read_model(file);
      REQUIRE(left->rejected.size() == 1);
      REQUIRE(left->rejected[0].validator == "checksum");
      REQUIRE(runs_of(*left, devices[1]) == least[1]);
      least[0] = 0;
    }
  }
  CHECK(damaged > 0);
  CHECK(saves > 0);
  // What the killed left behind does not pile up: after the next save there is the model and its lock.
  REQUIRE(ModelStore(folder.path(), {}).merge({}, {{"contended", 1}}));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}
