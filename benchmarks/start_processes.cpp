// How long whole processes take that run users' kernels, from outside: `kiln run` beside what one would write without
// it.
//
//   start_processes simple|large ROUNDS COUNT [vulkan] [--figures FILE]     the same COUNT kernels in every process
//   start_processes command ROUNDS [--figures FILE]                `kiln --version` and `kiln config check`
//
// In each round every contender runs once, in an order that rotates; a ratio is one of two processes of the same round.
// Each kernel reads one file and writes another; the files that Kiln wrote are compared byte by byte with the plain
// program's after every round.
//   driver   start_plain, from source, Mesa's own cache warm       binary   start_plain with a binary cache of its own
//   cold     start_plain where no cache is: a fresh machine        one core both sides bound to one core
//   bundle   Kiln on a fresh machine: `kiln cache import` of a bundle, then `kiln run`
//   adopted  start_adopted: the plain program with kiln::gl instead of its own binary cache
// With `vulkan` the device is vulkan:0, and start_vulkan, with SPIR-V and pipeline caches, is the plain program.
#include "cache/corpus.hpp"
#include "figures.hpp"
#include "places.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <kiln/clock.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr std::size_t floats = 4096;
constexpr double long_ms = 2000;  // a cold process that takes longer runs once

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Binds this process, hence its children, to one core or to all that it had.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof all_, &all_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all_)) CPU_SET(core, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_;
};

// Milliseconds from the start of the process to its end. Throws where it fails.
double run(std::vector<std::string> words, const std::vector<std::string>& variables, const fs::path& output) {
  std::vector<std::string> environment = variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "MESA_SHADER_CACHE", 17) != 0 && std::strncmp(*each, "__GL_SHADER", 11) != 0 &&
        std::strncmp(*each, "KILN_", 5) != 0) {
      environment.emplace_back(*each);
    }
  }
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = 0;
  const std::uint64_t begun = now_ns();
  const int failed =
      posix_spawnp(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error(words[0] + ": " + std::strerror(failed));
  int status = 0;
  waitpid(pid, &status, 0);
  const double ms = static_cast<double>(now_ns() - begun) / 1e6;
  if (status != 0) throw std::runtime_error(words[0] + " " + words[1] + ": status " + std::to_string(status));
  return ms;
}

// What differs between the backends.
struct Backend {
  const char* api;
  const char* device;
  const char* plain;
  const char* plugins;
};
constexpr Backend opengl{"OpenGL", "opengl:0", "start_plain", R"(["cpu", "opengl", "dynamic_shaders", "amdgpu_pm4"])"};
constexpr Backend vulkan{"Vulkan", "vulkan:0", "start_vulkan", R"(["cpu", "vulkan", "dynamic_shaders"])"};

void write_jobs(const bench::TemporaryFolder& folder, const std::string& kind, int count, const Backend& backend) {
  std::string jobs = std::string("[plugins]\nload = ") + backend.plugins + "\n\n";
  const std::vector<KernelSource> sources = bench::corpus(kind, count);
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i), text = (folder / ("k" + number + ".comp")).string();
    std::ofstream(text) << "#version 430 core\n" << sources[static_cast<std::size_t>(i)].text;
    if (&backend == &vulkan) {
      const std::string module = (folder / ("k" + number + ".spv")).string();
      run({"glslangValidator", "-V", text, "-o", module}, {}, folder / "output");
    }
    jobs += "[[job]]\nname = \"k" + number + "\"\nop = \"kernel\"\nsource = \"k" + number + ".comp\"\ndevice = \"" +
            backend.device + "\"\ngrid = [1]\nbindings = [ { input = \"x.npy\" }, { output = \"" +
            (folder / ("kiln" + number + ".npy")).string() + "\", shape = [4096] } ]\n\n";
  }
  std::ofstream(folder / "jobs.toml") << jobs;
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4096,), }";
  header.resize(117, ' ');
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  for (std::size_t i = 0; i < floats; ++i) {
    const float value = static_cast<float>(i % 97) / 97.0f - 0.5f;
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::ofstream(folder / "x.npy", std::ios::binary) << file;
}

// One kind of process: its command, what it is told by the environment, and its times.
struct Contender {
  std::vector<std::string> words;
  std::vector<std::string> environment;
  std::vector<double> ms;
  bool one_core = false;
};

class Comparison {
 public:
  Comparison(const std::string& kind, int count, int rounds, const Backend& backend, bench::FigureFile& file)
      : backend_(backend),
        stem_((&backend == &vulkan ? "start.vulkan." : "start.") + kind + std::to_string(count)),
        group_(std::to_string(count) + " " + kind + (count == 1 ? " kernel" : " kernels")),
        count_(count),
        rounds_(rounds),
        file_(file) {
    write_jobs(folder_, kind, count, backend);
    fs::create_directories(folder_ / "mesa");
    fs::create_directories(folder_ / "binaries");
  }

  void measure() {
    // Mesa's and NVIDIA's own caches.
    const std::vector<std::string> none{"MESA_SHADER_CACHE_DIR=/proc/none", "__GL_SHADER_DISK_CACHE=0"},
        warm{"MESA_SHADER_CACHE_DIR=" + (folder_ / "mesa").string(),
             "__GL_SHADER_DISK_CACHE_PATH=" + (folder_ / "mesa").string()};
    const std::string plain = (bench::own_folder() / backend_.plain).string(), n = std::to_string(count_),
                      here = (folder_ / "").string();
    Contender cold{{plain, here, n}, none, {}};
    Contender driver{{plain, here, n}, warm, {}};
    Contender binary{{plain, here, n, (folder_ / "binaries").string()}, warm, {}};
    Contender kiln = kiln_run("cache", {});
    Contender at_once = kiln_run("cache", {"--jobs", "4"});
    Contender read_only = kiln_run("cache", {"--set", "cache.read_only=true"});
    Contender adopted{{(bench::own_folder() / "start_adopted").string(), here, n, (folder_ / "adopted").string(),
                       (folder_ / "key").string()},
                      warm,
                      {}};
    Contender driver_alone = driver, kiln_alone = kiln;
    driver_alone.one_core = kiln_alone.one_core = true;

    one(cold);
    keep_expected();
    const double builds_first = report(kiln).at("cache").at("builds").get<double>();
    const double builds_warm = report(kiln).at("cache").at("builds").get<double>();
    const bool adopts = &backend_ == &opengl;
    std::vector<Contender*> order{&driver, &kiln, &binary, &at_once, &read_only, &driver_alone, &kiln_alone};
    if (adopts) order.insert(order.begin() + 3, &adopted);
    for (Contender* each : {&driver, &binary, &adopted}) {
      if (each == &adopted && !adopts) continue;
      one(*each);
      one(*each);
      each->ms.clear();
    }
    run({bench::kiln_command().string(), "cache", "export", (folder_ / "bundle").string(), "--cache-dir",
         (folder_ / "cache").string()},
        key(), folder_ / "output");
    run({bench::kiln_command().string(), "cache", "export", "--show-key"}, key(), folder_ / "public");
    std::vector<double> bundle, ready, ready_plain;
    for (int round = 0; round < rounds_; ++round) {
      if (round > 0 && cold.ms.front() < long_ms) one(cold);
      for (Contender* each : order) {
        one(*each);
        if (each == &binary && !adopts) ready_plain.push_back(std::stod(contents(folder_ / "output")));
      }
      if (!adopts) ready.push_back(ready_ms(report(kiln)));
      std::ranges::rotate(order, order.begin() + 1);  // who comes behind whom changes a process's time by a tenth
      bundle.push_back(from_bundle());
    }
    const std::string whole = "the whole process", api = backend_.api,
                      source = api + " from source, the driver's cache warm",
                      own = api + " with a binary cache of its own, the driver's cache warm",
                      nothing = api + ", no cache";
    const bool many = count_ == 100;
    add("/driver", whole, kiln, source, driver.ms, many ? 1 : count_ == 1 ? 1 / 1.1 : 1 / 1.05);
    add("/binary", whole, kiln, own, binary.ms, 0);
    add("/cold", whole, kiln, nothing, cold.ms, 0);
    add(".jobs/driver", "--jobs 4, " + whole, at_once, source, driver.ms, 0);
    add(".read_only/driver", "read-only cache, " + whole, read_only, source, driver.ms, 0);
    add(".one_core/driver", "on one core, " + whole, kiln_alone, source, driver_alone.ms, many ? 1 / 1.1 : 0);
    if (adopts)
      add(".adopted/binary", "kiln::gl in the application's context, " + whole, adopted, own, binary.ms, 1 / 1.1);
    Contender made_ready;
    made_ready.ms = ready;
    if (!adopts) add(".ready/binary", "files read and pipelines made, all together", made_ready, own, ready_plain, 0);
    Contender imported;
    imported.ms = bundle;
    add(".bundle/cold", "a fresh machine: a bundle imported, then run", imported, nothing, cold.ms,
        many && stem_ == "start.large100" ? 40 : 0);
    count("builds.first", "builds by the first process", builds_first);
    count("builds.warm", "builds by a later process", builds_warm);
  }

 private:
  Contender kiln_run(const std::string& cache, std::vector<std::string> more) const {
    std::vector<std::string> words{bench::kiln_command().string(), "run", (folder_ / "jobs.toml").string(),
                                   "--cache-dir", (folder_ / cache).string()};
    words.insert(words.end(), more.begin(), more.end());
    return {words, key(), {}};
  }
  std::vector<std::string> key() const { return {"KILN_KEY_FILE=" + (folder_ / "key").string()}; }

  void one(Contender& contender) {
    if (contender.one_core) {
      const OneCore bound;
      contender.ms.push_back(run(contender.words, contender.environment, folder_ / "output"));
    } else {
      contender.ms.push_back(run(contender.words, contender.environment, folder_ / "output"));
    }
    check(contender.words[1] == "run" ? "kiln" : "plain");
  }

  double from_bundle() {
    fs::remove_all(folder_ / "fresh");
    const std::vector<std::string> import{bench::kiln_command().string(),
                                          "cache",
                                          "import",
                                          (folder_ / "bundle").string(),
                                          "--trust",
                                          trusted_key(),
                                          "--cache-dir",
                                          (folder_ / "fresh").string(),
                                          "--set",
                                          std::string("plugins.load=") + backend_.plugins};
    const double imported = run(import, key(), folder_ / "output");
    Contender fresh = kiln_run("fresh", {});
    one(fresh);
    return imported + fresh.ms.front();
  }
  std::string trusted_key() const {
    std::string text = contents(folder_ / "public");
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    return text.substr(text.find_last_of(" \n") + 1);
  }

  void keep_expected() {
    for (int i = 0; i < count_; ++i) expected_.push_back(contents(folder_ / ("plain" + std::to_string(i) + ".npy")));
  }
  void check(const std::string& who) const {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const fs::path file = folder_ / (who + std::to_string(i) + ".npy");
      const std::size_t bytes = floats * sizeof(float);
      const std::string found = contents(file);
      if (found.size() < bytes ||
          found.substr(found.size() - bytes) != expected_[i].substr(expected_[i].size() - bytes)) {
        throw std::runtime_error(file.filename().string() + ": differs from what the cold plain program wrote");
      }
      fs::remove(file);
    }
  }

  // Runs the jobs once more, for what the report says.
  nlohmann::json report(const Contender& kiln) {
    std::vector<std::string> words = kiln.words;
    words.emplace_back("--json");
    run(words, kiln.environment, folder_ / "output");
    check("kiln");
    return nlohmann::json::parse(contents(folder_ / "output"));
  }
  static double ready_ms(const nlohmann::json& report) {
    double sum = 0;
    for (const auto& job : report.at("jobs")) sum += job.at("program").at("build_ms").get<double>();
    return sum;
  }

  void add(const std::string& id, const std::string& name, const Contender& kiln, const std::string& peer,
           const std::vector<double>& samples, double goal) {
    bench::Figure figure;
    figure.id = stem_ + id;
    figure.name = name;
    figure.unit = "ms";
    figure.kiln = kiln.ms;
    figure.peer = bench::Peer{peer, samples};
    if (goal > 0) figure.target = bench::Target{bench::Target::Of::ratio, goal};
    figure.verified = true;  // or the program has ended
    figure.group = group_;
    figure.device = backend_.device;
    file_.add(std::move(figure));
  }
  void count(const std::string& id, const std::string& name, double builds) {
    bench::Figure figure;
    figure.id = stem_ + "." + id;
    figure.name = name;
    figure.unit = "builds";
    figure.kiln = {builds};
    figure.stable = true;
    figure.group = group_;
    figure.device = backend_.device;
    if (id == "builds.warm") figure.target = bench::Target{bench::Target::Of::kiln, 0};
    file_.add(std::move(figure));
  }

  const Backend& backend_;
  const std::string stem_, group_;
  const int count_, rounds_;
  bench::FigureFile& file_;
  bench::TemporaryFolder folder_{"kiln start"};
  std::vector<std::string> expected_;
};

void measure_commands(int rounds, bench::FigureFile& file) {
  const bench::TemporaryFolder folder("kiln start");
  write_jobs(folder, "simple", 10, opengl);
  const std::string kiln = bench::kiln_command().string(), jobs = (folder / "jobs.toml").string();
  const std::vector<std::string> none;
  std::vector<double> version, check, nothing;
  for (int round = 0; round < rounds; ++round) {
    version.push_back(run({kiln, "--version"}, none, folder / "output"));
    check.push_back(
        run({kiln, "config", "check", jobs}, {"KILN_CACHE_DIR=" + (folder / "cache").string()}, folder / "output"));
    nothing.push_back(run({"/bin/true", ""}, none, folder / "output"));
  }
  const auto add = [&](const std::string& id, const std::string& name, const std::vector<double>& ms) {
    bench::Figure figure;
    figure.id = id;
    figure.name = name;
    figure.unit = "ms";
    figure.kiln = ms;
    figure.peer = bench::Peer{"/bin/true", nothing};
    figure.target = bench::Target{bench::Target::Of::kiln, 5};
    file.add(std::move(figure));
  };
  add("start.version", "kiln --version, the whole process", version);
  add("start.check", "kiln config check of ten jobs, the whole process", check);
}

}  // namespace

int main(int argc, char** argv) try {
  auto file = bench::FigureFile::of_words(argc, argv);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "command") {
    measure_commands(std::stoi(words[1]), file);
  } else if ((words.size() == 3 || (words.size() == 4 && words[3] == "vulkan")) &&
             (words[0] == "simple" || words[0] == "large")) {
    const Backend& backend = words.size() == 4 ? vulkan : opengl;
    Comparison(words[0], std::stoi(words[2]), std::stoi(words[1]), backend, file).measure();
  } else {
    throw std::runtime_error("expected: simple|large ROUNDS COUNT [vulkan], or command ROUNDS");
  }
  file.print();
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "start_processes: %s\n", error.what());
  return 1;
}
