// What processes that start together on one empty cache gain from sharing the work: until each of them has every
// program ready, that is built or loaded, and dispatched once; in milliseconds:
//
//   cache_processes [synthetic|simple|large] [ROUNDS] [COUNT] [BUILD_MS] [--figures FILE]
//
// ROUNDS is 3. COUNT is 100, and 20 for large: a round of 100 large ones takes about a minute on two idle cores, for
// each of its five measurements builds all of them at least once. What is being done, and how long it took, goes to
// standard error.
//
// synthetic: a device whose builds burn BUILD_MS of processor time. simple, large: compute shaders through the OpenGL
// plugin, the driver's own cache adopted and empty. Each measurement is made of new processes on a new folder, told
// from the first one's start of work to the last one's end; starting EGL is left out. The arms run in turns, medians
// and quartiles are given. "in order" is the same without build_all(): one get_or_build() after another.
#include "cache/tiered_cache.hpp"

#include "cache/corpus.hpp"
#include "core/cache/synthetic_device.hpp"
#include "figures.hpp"
#include "places.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kiln/clock.hpp>
#include <kiln/plugin.hpp>
#include <kiln/registry.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

template <class Value>
Value need(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

struct Job {
  std::string kind = "synthetic";
  int count = 100;
  int build_ms = 20;
};

// Burns the processor's time and not the clock's, so that two that share a core are not flattered.
void burn(int milliseconds) {
  const auto spent_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  };
  const std::int64_t end = spent_ns() + std::int64_t{milliseconds} * 1'000'000;
  while (spent_ns() < end) continue;
}

// A program is built when it has been dispatched once: only then has a driver generated all its code.
class ReadyDevice final : public Device {
 public:
  explicit ReadyDevice(Device& device) : device_(device) {}
  std::atomic<int> builds{0};

  const DeviceInfo& info() const noexcept override { return device_.info(); }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override {
    return device_.create_buffer(desc);
  }
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override {
    ++builds;
    return dispatched(device_.build(source));
  }
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override {
    return dispatched(device_.load(source, binary));
  }
  Result<ProgramBinary> serialize(const Program& program) noexcept override { return device_.serialize(program); }
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override { return device_.submit(dispatch); }
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override {
    return device_.wait(value, deadline);
  }

 private:
  Result<std::unique_ptr<Program>> dispatched(Result<std::unique_ptr<Program>> program) {
    if (!program) return program;
    const PassLaunch launch{program->get(), {}, PassLaunch::nothing};
    const auto value = device_.submit({std::span(&launch, 1)});
    if (!value) return value.error();
    if (const auto done = device_.wait(*value, Deadline::never()); !done) return done.error();
    return program;
  }

  Device& device_;
};

// The OpenGL plugin, whose driver finds its adopted cache below `folder`.
struct OpenGl {
  Registry registry;
  WorkCounters counters;
  std::unique_ptr<Driver> driver;
  std::shared_ptr<Device> device;

  explicit OpenGl(const fs::path& folder) {
    void* library = dlopen((bench::plugins_folder() / "opengl.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto* entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
    if (entry == nullptr) throw std::runtime_error("opengl.so is no plugin");
    if (Status status = entry->register_fn(registry, {entry->note.name, {}}); !status.ok()) {
      throw std::runtime_error(status.text());
    }
    PluginSettings settings;
    for (const ConfigKey& key : registry.config_keys().at("opengl")) settings.try_emplace(key.name, key.fallback);
    DriverContext context;
    context.counters = &counters;
    context.cache_directory = folder;
    context.settings = settings;
    driver = need(registry.drivers().begin()->second.make(context));
    device = need(driver->open("opengl:0"));
  }
};

struct Told {
  std::uint64_t begun_ns = 0, ended_ns = 0;
  int builds = 0;
  CacheStats stats;
};

// One process's work: `threads` 0 stands for one get_or_build() after another.
Told work(const Job& job, const fs::path& folder, unsigned threads) {
  std::unique_ptr<OpenGl> gl;
  test::SyntheticDevice synthetic;
  std::vector<KernelSource> sources;
  if (job.kind == "synthetic") {
    synthetic.on_build = [&](const KernelSource&) { burn(job.build_ms); };
    for (int i = 0; i < job.count; ++i) {
      sources.push_back(bench::shader("program " + std::to_string(i) + std::string(8000, ' ')));
    }
  } else {
    gl = std::make_unique<OpenGl>(folder / "cache");
    sources = bench::corpus(job.kind, job.count);
  }
  Device& chosen = gl ? *gl->device : static_cast<Device&>(synthetic);
  if (gl && chosen.info().driver_cache != "adopted") throw std::runtime_error("the driver's cache is not adopted");
  ReadyDevice device(chosen);
  CacheConfig config;
  config.directory = folder / "cache";
  config.key_file = folder / "key";
  config.max_programs = 1000;
  Told told;
  told.begun_ns = now_ns();
  const auto cache = need(TieredCache::create({{}, config}));
  std::vector<ProgramKey> keys;
  for (const KernelSource& source : sources) keys.push_back(key_of(source, device.info(), "corpus"));
  if (threads == 0) {
    for (std::size_t i = 0; i < keys.size(); ++i) need(cache->get_or_build(keys[i], sources[i], device));
  } else {
    std::vector<ProgramRequest> requests;
    for (std::size_t i = 0; i < keys.size(); ++i) requests.push_back({&keys[i], &sources[i], &device});
    for (Result<Acquired>& answer : build_all(*cache, requests, threads)) need(std::move(answer));
  }
  told.ended_ns = now_ns();
  told.builds = device.builds;
  told.stats = cache->stats();
  return told;
}

// This program again, as a child that does the work.
struct Running {
  pid_t pid = 0;
  int output = -1;
};

Running start(const Job& job, const fs::path& folder, unsigned threads) {
  const fs::path driver = folder / "cache" / "driver";
  std::vector<std::string> environment{"MESA_SHADER_CACHE_DIR=" + driver.string()};
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "MESA_SHADER_CACHE", 17) != 0) environment.emplace_back(*each);
  }
  std::vector<std::string> words{"cache_processes",
                                 "--child",
                                 job.kind,
                                 std::to_string(job.count),
                                 std::to_string(job.build_ms),
                                 folder.string(),
                                 std::to_string(threads)};
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& each : environment) variables.push_back(each.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  Running running;
  running.output = ends[0];
  const int error = posix_spawn(&running.pid, "/proc/self/exe", &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) throw std::runtime_error("posix_spawn");
  return running;
}

Told finish(const Running& running) {
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(running.output, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  close(running.output);
  int status = 0;
  waitpid(running.pid, &status, 0);
  if (status != 0) throw std::runtime_error("a child failed");
  Told told;
  std::istringstream words(text);
  words >> told.begun_ns >> told.ended_ns >> told.builds >> told.stats.lease_waits >> told.stats.lease_timeouts;
  if (!words) throw std::runtime_error("a child told nothing");
  return told;
}

struct Measured {
  double wall_ms = 0;
  int builds = 0;
  std::uint64_t waits = 0, timeouts = 0;
};

Measured measure(const Job& job, int processes, unsigned threads) {
  std::string name = (fs::temp_directory_path() / "kiln-cache-processes-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const fs::path folder = name;
  for (const fs::path& made : {folder / "cache", folder / "cache" / "driver"}) {
    fs::create_directory(made);
    fs::permissions(made, fs::perms::owner_all);
  }
  std::vector<Running> running;
  for (int i = 0; i < processes; ++i) running.push_back(start(job, folder, threads));
  Measured measured;
  std::uint64_t begun = ~0ull, ended = 0;
  for (const Running& each : running) {
    const Told told = finish(each);
    begun = std::min(begun, told.begun_ns);
    ended = std::max(ended, told.ended_ns);
    measured.builds += told.builds;
    measured.waits += told.stats.lease_waits;
    measured.timeouts += told.stats.lease_timeouts;
  }
  measured.wall_ms = static_cast<double>(ended - begun) / 1e6;
  fs::remove_all(folder);
  return measured;
}

using bench::quantile;

struct Arm {
  const char* name;
  int processes;
  unsigned threads;
  std::vector<double> wall_ms, to_one_thread, to_two_threads;
  int most_builds = 0;
  std::uint64_t waits = 0, timeouts = 0;
};

void tell(bench::FigureFile& file, const Job& job, const char* id, const char* name, const Arm& ours, const Arm& theirs,
          double goal) {
  bench::Figure figure;
  figure.id = std::string("cache.processes.") + id;
  figure.name = name;
  figure.unit = "ms";
  figure.kiln = ours.wall_ms;
  figure.peer = bench::Peer{theirs.name, theirs.wall_ms};
  figure.target = bench::Target{bench::Target::Of::ratio, goal};
  figure.group = std::to_string(job.count) + " " + job.kind + " programs";
  file.add(std::move(figure));
}

int compare(const Job& job, int rounds, bench::FigureFile& file) {
  std::vector<Arm> arms{{"one process, one thread", 1, 1, {}, {}, {}},
                        {"one process, two threads", 1, 2, {}, {}, {}},
                        {"two processes, a thread each", 2, 1, {}, {}, {}},
                        {"two processes, in order", 2, 0, {}, {}, {}},
                        {"eight processes, a thread each", 8, 1, {}, {}, {}}};
  for (int round = 0; round < rounds; ++round) {
    for (Arm& arm : arms) {
      std::fprintf(stderr, "round %d of %d: %-31s ", round + 1, rounds, arm.name);
      std::fflush(stderr);
      const Measured measured = measure(job, arm.processes, arm.threads);
      std::fprintf(stderr, "%9.1f ms, %d builds\n", measured.wall_ms, measured.builds);
      arm.wall_ms.push_back(measured.wall_ms);
      arm.to_one_thread.push_back(measured.wall_ms / arms[0].wall_ms.back());
      if (&arm != &arms[0]) arm.to_two_threads.push_back(measured.wall_ms / arms[1].wall_ms.back());
      arm.most_builds = std::max(arm.most_builds, measured.builds);
      arm.waits += measured.waits;
      arm.timeouts += measured.timeouts;
    }
  }
  std::printf("%d %s programs, %d rounds; ms until every process has every program ready\n", job.count,
              job.kind.c_str(), rounds);
  for (const Arm& arm : arms) {
    std::printf("%-31s median %9.1f  quartiles %9.1f to %9.1f  of one thread %5.2f  of two %5.2f  builds at most %d\n",
                arm.name, quantile(arm.wall_ms, 0.5), quantile(arm.wall_ms, 0.25), quantile(arm.wall_ms, 0.75),
                quantile(arm.to_one_thread, 0.5), arm.to_two_threads.empty() ? 0.0 : quantile(arm.to_two_threads, 0.5),
                arm.most_builds);
  }
  std::uint64_t waits = 0, timeouts = 0;
  for (const Arm& arm : arms) {
    waits += arm.waits;
    timeouts += arm.timeouts;
  }
  std::printf("waits for another process: %llu, of which patience ended: %llu\n",
              static_cast<unsigned long long>(waits), static_cast<unsigned long long>(timeouts));
  const std::size_t two = 2, eight = 4;
  tell(file, job, "two/one", "two processes at once, a thread each", arms[two], arms[0], 1 / 0.7);
  tell(file, job, "two/threads", "likewise", arms[two], arms[1], 1 / 1.1);
  bench::Figure builds;
  builds.id = "cache.processes.builds";
  builds.name = "builds of all by eight processes at once, at most";
  builds.unit = "builds";
  builds.kiln = {static_cast<double>(arms[eight].most_builds)};
  builds.target = bench::Target{bench::Target::Of::kiln, 1.05 * job.count};
  builds.group = std::to_string(job.count) + " " + job.kind + " programs";
  file.add(std::move(builds));
  file.write();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto file = bench::FigureFile::of_words(argc, argv);
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 6 && words[0] == "--child") {
      const Told told = work({words[1], std::stoi(words[2]), std::stoi(words[3])}, words[4],
                             static_cast<unsigned>(std::stoul(words[5])));
      std::printf("%llu %llu %d %llu %llu\n", static_cast<unsigned long long>(told.begun_ns),
                  static_cast<unsigned long long>(told.ended_ns), told.builds,
                  static_cast<unsigned long long>(told.stats.lease_waits),
                  static_cast<unsigned long long>(told.stats.lease_timeouts));
      return 0;
    }
    Job job;
    if (!words.empty()) job.kind = words[0];
    if (job.kind != "synthetic" && job.kind != "simple" && job.kind != "large") {
      throw std::runtime_error("'" + job.kind + "': expected synthetic, simple or large");
    }
    job.count = words.size() > 2 ? std::stoi(words[2]) : job.kind == "large" ? 20 : 100;
    if (words.size() > 3) job.build_ms = std::stoi(words[3]);
    const int rounds = words.size() > 1 ? std::stoi(words[1]) : 3;
    if (rounds < 1 || job.count < 1 || job.build_ms < 0) {
      throw std::runtime_error("ROUNDS and COUNT: expected 1 or more; BUILD_MS: 0 or more");
    }
    return compare(job, rounds, file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cache_processes: %s\n", error.what());
    return 1;
  }
}
