// What the system refuses - threads, memory, descriptors, space - is an error that is told, or done without: the
// command never ends by a signal, and a job that ends with status 0 has its result.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// A job for the cpu, and one for OpenGL, each with a result.
class Workplace {
 public:
  Workplace() {
    const auto job = [&](const std::string& name, const std::string& device) {
      return conv_3x3(name, {.channels = 4, .size = 16, .filters = 8}) + "device = \"" + device + "\"\noutput = \"" +
             (folder_ / (name + ".npy")).string() + "\"\n";
    };
    cpu_ = folder_.write("cpu.toml", "[plugins]\nload = [\"cpu\"]\n" + job("c", "cpu"));
    both_ = folder_.write("both.toml", job("c", "cpu") + job("g", "opengl:0"));
    REQUIRE(run(both_).status == 0);  // what the first start stores is there
  }

  const fs::path& cpu() const { return cpu_; }
  const fs::path& both() const { return both_; }

  Finished run(const fs::path& jobs, const ProcessOptions& options = {}) const {
    for (const char* result : {"c.npy", "g.npy"}) fs::remove(folder_ / result);
    return run_kiln({"run", jobs, "--cache-dir", folder_ / "cache", "--jobs", "2"}, options);
  }

  // How it ended is told by an exit status of the contract, and what is done is there.
  void judge(const Finished& finished, const fs::path& jobs) const {
    INFO(finished.err << finished.out);
    CHECK(finished.status >= 0);
    CHECK(finished.status <= 3);
    CHECK_FALSE((finished.status != 0 && finished.err.empty() && finished.out.empty()));
    if (finished.status != 0) return;
    CHECK(fs::exists(folder_ / "c.npy"));
    CHECK(fs::exists(folder_ / "g.npy") == (jobs == both_));
  }

  void judge_under(const std::string& limit, const fs::path& jobs) const {
    INFO("prlimit " << limit);
    judge(run(jobs, {.before = {"prlimit", limit}}), jobs);
  }

 private:
  TemporaryFolder folder_;
  fs::path cpu_, both_;
};

std::map<std::string, std::string> preloaded(const std::string& variable, long value) {
  // By name: what is preloaded is parted by blanks, which folders may have.
  const fs::path library = KILN_EXHAUSTION_LIBRARY;
  return {{"LD_LIBRARY_PATH", library.parent_path()},
          {"LD_PRELOAD", library.filename()},
          {variable, std::to_string(value)}};
}

}  // namespace

TEST_CASE("exhaustion: a thread that the system refuses is an error of a job, or is done without", "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: the preloaded library would replace a sanitizer's operator new");
    return;
  }
  const Workplace place;
  long refused = 0;
  for (long first = 1; first <= 12; ++first) {
    INFO("from thread " << first);
    const fs::path& jobs = first <= 2 ? place.both() : place.cpu();  // Mesa waits for threads that it does not get
    const Finished finished = place.run(jobs, {.environment = preloaded("KILN_TEST_REFUSE_THREADS_FROM", first)});
    place.judge(finished, jobs);
    if ((finished.err + finished.out).find("no thread") != std::string::npos) ++refused;
  }
  CHECK(refused > 0);
}

TEST_CASE("exhaustion: memory that is refused once for an object of Kiln's ends no process", "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: the preloaded library would replace a sanitizer's operator new");
    return;
  }
  const Workplace place;
  const TemporaryFolder folder;
  // The second form stores verdicts, counts and the selector's model.
  const std::string cache = GENERATE("[cache]\nread_only = true\n", "");
  const fs::path jobs =
      folder.write("jobs.toml", cache + "[plugins]\nload = [\"cpu\"]\n" +
                                    conv_3x3("c", {.channels = 4, .size = 16, .filters = 8}) + "device = \"cpu\"\n");
  const std::vector<std::string> words = {"run", jobs, "--cache-dir", folder / "cache"};
  const Finished counted = run_kiln(words, {.environment = preloaded("KILN_TEST_COUNT_OBJECTS", 1)});
  REQUIRE(counted.status == 0);
  const std::size_t at = counted.err.rfind("objects: ");
  REQUIRE(at != std::string::npos);
  const long objects = std::stol(counted.err.substr(at + 9));
  REQUIRE(objects > 1000);
  long refused = 0;
  for (long object = 1; object <= objects; object += is_long() ? 1 : 41) {
    const Finished finished = run_kiln(words, {.environment = preloaded("KILN_TEST_REFUSE_OBJECT", object)});
    INFO("object " << object << " of " << objects << ": " << finished.err << finished.out);
    CHECK(finished.status >= 0);
    CHECK(finished.status <= 3);
    if (finished.err.find("out of memory") != std::string::npos ||
        finished.out.find("out of memory") != std::string::npos)
      ++refused;
  }
  CHECK(refused > 10);
}

TEST_CASE("exhaustion: limits on memory, descriptors, processes and file sizes are told, and no signal ends a run",
          "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer reserves terabytes of address space");
    return;
  }
  const Workplace place;
  const long more = is_long() ? 1 : 8;
  constexpr long mib = 1L << 20;
  // Below, the dynamic linker does not get as far as main().
  for (long limit = 40; limit < 460; limit += 4 * more)
    place.judge_under("--as=" + std::to_string(limit * mib), place.cpu());
  for (long limit = 40; limit < 1600; limit += 12 * more)
    place.judge_under("--as=" + std::to_string(limit * mib), place.both());
  for (long limit = 4; limit < 300; limit += 4 * more)
    place.judge_under("--data=" + std::to_string(limit * mib), place.cpu());
  // The limit is on the numbers of descriptors: a command must inherit none of the test's parent.
  REQUIRE(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0);
  for (long limit = 5; limit < 64; limit += more) place.judge_under("--nofile=" + std::to_string(limit), place.both());
  for (long limit = 0; limit < 40'000; limit += 400 * more)
    place.judge_under("--fsize=" + std::to_string(limit), place.both());
  // Below, the dynamic linker does not get as far as main().
  for (long limit = 32; limit < 1024; limit += 16 * more) {
    const std::string bytes = std::to_string(limit << 10);
    place.judge_under("--stack=" + bytes, place.both());                                  // both limits
    place.judge_under("--stack=" + bytes + ":" + std::to_string(8 * mib), place.both());  // one that can be raised
  }
  for (long limit = 0; limit < 4 * mib; limit += mib / 4 * more)
    place.judge_under("--memlock=" + std::to_string(limit), place.both());
}

// What Mesa needs and does not get, it waits for: a device that needs more threads than there are is not opened.
TEST_CASE("exhaustion: a user's limit on processes is told, and hangs nothing", "[unsanitized]") {
  if (is_sanitized || geteuid() != 0) {
    WARN("skipped: " << (is_sanitized ? "a sanitizer has threads of its own"
                                      : "another user is needed, which only root can be"));
    return;
  }
  for (long limit = 0; limit <= 24; limit += is_long() ? 1 : 4) {
    INFO("nproc " << limit);
    const TemporaryFolder folder;
    fs::permissions(folder.path(), fs::perms::all);
    const fs::path jobs =
        folder.write("jobs.toml", conv_3x3("c", {.channels = 4, .size = 16, .filters = 8}) + "device = \"opengl:0\"\n");
    std::map<std::string, std::string> home;
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"}) {
      home[name] = folder.path();
    }
    const Finished finished =
        run_kiln({"run", jobs, "--cache-dir", folder / "cache"},
                 {.environment = home,
                  .before = {"timeout", "-s", "KILL", "120", "setpriv", "--reuid=23457", "--regid=23457",
                             "--clear-groups", "prlimit", "--nproc=" + std::to_string(limit)}});
    INFO(finished.err << finished.out);
    CHECK(finished.status >= 0);
    CHECK(finished.status <= 3);
  }
}

TEST_CASE("exhaustion: a control group that limits processes or memory", "[unsanitized]") {
  if (is_sanitized) {
    WARN("skipped: a sanitizer reserves terabytes of address space");
    return;
  }
  const Workplace place;
  const auto judge_in = [&](const std::string& controller, const std::string& file, long limit) {
    // Of version 1 of control groups; with version 2 all controllers are in one tree.
    const fs::path mounted = "/sys/fs/cgroup";
    const bool is_first = fs::exists(mounted / controller);
    const fs::path group = mounted / (is_first ? controller : "") / ("kiln-test-" + std::to_string(getpid()));
    std::error_code error;
    fs::create_directory(group, error);
    if (error) return false;
    const std::string name = !is_first && controller == "memory" ? "memory.max" : file;
    std::ofstream(group / name) << limit;
    const bool is_set = [&] {
      std::ifstream in(group / name);
      long value = -1;
      return static_cast<bool>(in >> value) && value == limit;
    }();
    if (is_set) {
      INFO(controller << " " << limit);
      // The shell joins the group and becomes the command.
      const Finished finished = place.run(
          place.both(), {.before = {"sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", (group / "cgroup.procs").string()}});
      // The system kills a process that exceeds its group's memory: the files are what counts then.
      if (controller == "memory" && finished.status == -SIGKILL) {
        place.judge(place.run(place.both()), place.both());
      } else {
        place.judge(finished, place.both());
      }
    }
    for (int attempt = 0; attempt < 100 && fs::exists(group); ++attempt) {
      if (rmdir(group.c_str()) != 0) usleep(20'000);  // a child may still be ending
    }
    return is_set;
  };
  constexpr long mib = 1L << 20;
  const long more = is_long() ? 1 : 6;
  bool any = false;
  for (long limit = 2; limit < 32; limit += more) any = judge_in("pids", "pids.max", limit) || any;
  for (long limit = 16; limit < 300; limit += 8 * more)
    any = judge_in("memory", "memory.limit_in_bytes", limit * mib) || any;
  if (!any) WARN("skipped: no control group can be made here");
}
}  // namespace kiln::test
