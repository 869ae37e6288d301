// What being safe for threads and processes costs a job that uses one of each: the tiered cache beside a store without
// any of it, on the same job.
//
//   cache_one_thread [ROUNDS] [PROGRAMS] [BUILD_MS] [RUNS] [--figures FILE]
//
// The job takes PROGRAMS programs RUNS times, in turns, and dispatches each that it takes. Its device burns BUILD_MS of
// processor time to build one and 20 µs to dispatch one. cold: on an empty folder, so that every program is built and
// stored once. warm: a new process's view of that folder, so that each is read, authenticated and loaded once. `bare`
// is a map and a folder of files: the same bytes, signed and checked by the same code, written to a temporary name and
// renamed, with no lock, no lease, no process table, no statistics and no bound. Both run in turns; medians and
// quartiles of the ratio within a round, of wall time and of processor time. Outside the clock each side's programs are
// compared with their sources, and its builds and loads are counted.
#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"
#include "cache/tiered_cache.hpp"

#include "core/cache/synthetic_device.hpp"
#include "figures.hpp"

#include <fcntl.h>
#include <kiln/clock.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr std::int64_t dispatch_cost_ns = 20'000;

struct Job {
  int programs = 100;
  int build_ms = 5;
  int runs = 20;
};

template <class Value>
Value need(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

void need(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

std::int64_t spent_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void burn(std::int64_t ns) {
  const std::int64_t end = spent_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (spent_ns(CLOCK_THREAD_CPUTIME_ID) < end) continue;
}

struct Asked {
  ProgramKey key;
  KernelSource source;
};

std::vector<Asked> asked_of(const Job& job, const DeviceInfo& device) {
  std::vector<Asked> all;
  for (int i = 0; i < job.programs; ++i) {
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text = "program " + std::to_string(i) + " ";
    // About what a compiled shader compresses like: neither noise nor one letter.
    for (int word = 0; source.text.size() < 8000; ++word) source.text += std::to_string(word * (i + 7) % 9973) + " ";
    ProgramKey key = key_of(source, device, "job");
    all.push_back({std::move(key), std::move(source)});
  }
  return all;
}

// The tiered cache, as a runtime opens it.
class Tiered {
 public:
  Tiered(const fs::path& folder, Device& device) : device_(device) {
    CacheConfig config;
    config.directory = folder / "cache";
    config.key_file = folder / "key";
    config.max_programs = 100'000;
    config.max_memory = 1ull << 32;
    cache_ = need(TieredCache::create({{}, config}));
  }
  ProgramHandle take(const Asked& asked) {
    return need(cache_->get_or_build(asked.key, asked.source, device_)).program;
  }

 private:
  Device& device_;
  std::unique_ptr<TieredCache> cache_;
};

// What a person would write who knows of one thread and one process.
class Bare {
 public:
  Bare(const fs::path& folder, Device& device)
      : device_(device),
        key_(need(read_secret_key(folder / "key", IfMissing::create))),
        root_(need(open_folder(folder / "bare", Create::yes))) {}

  ProgramHandle take(const Asked& asked) {
    if (const auto held = held_.find(asked.key.digest); held != held_.end()) return held->second;
    std::unique_ptr<Program> program = load(asked);
    if (program == nullptr) program = build(asked);
    return held_.emplace(asked.key.digest, ProgramHandle(std::shared_ptr<const Program>(std::move(program))))
        .first->second;
  }

 private:
  std::unique_ptr<Program> load(const Asked& asked) {
    const UniqueFd folder = need(open_subfolder(root_.get(), subfolder_of(asked.key.digest), "part", Create::no));
    if (!folder) return nullptr;
    const FileContents file = read_file(folder.get(), file_name_of(asked.key.digest, ".bin"), EntryLimits{}.file());
    if (file.state != FileState::read) return nullptr;
    const DecodedEntry decoded = decode_entry(file.bytes, key_);
    if (decoded.rejection != Rejection::none || decoded.entry.material != asked.key.material) return nullptr;
    const auto payload = inflate_payload(decoded.entry, inflaters_);
    if (!payload) return nullptr;
    auto program = device_.load(asked.source, {std::string(decoded.entry.format), *payload});
    return program ? std::move(*program) : nullptr;
  }

  std::unique_ptr<Program> build(const Asked& asked) {
    const std::uint64_t begun = now_ns();
    std::unique_ptr<Program> program = need(device_.build(asked.source));
    const ProgramBinary binary = need(device_.serialize(*program));
    EntryView entry;
    entry.format = binary.format;
    entry.material = asked.key.material;
    entry.stored = binary.bytes;
    entry.compression = Compression::zstd;
    entry.build_ns = now_ns() - begun;
    const auto bytes = need(encode_entry(entry, key_));
    const UniqueFd folder = need(open_subfolder(root_.get(), subfolder_of(asked.key.digest), "part", Create::yes));
    need(write_file(folder.get(), file_name_of(asked.key.digest, ".bin"), bytes));
    return program;
  }

  Device& device_;
  EntryKey key_;
  UniqueFd root_;
  Inflaters inflaters_;
  std::unordered_map<Digest, ProgramHandle, DigestHash> held_;
};

struct Spent {
  double wall_ms = 0, cpu_ms = 0;
};

// One process's life with the store: opened, used, closed.
template <class Store>
Spent run(const Job& job, const fs::path& folder, int builds_expected) {
  test::SyntheticDevice device;
  device.on_build = [&](const KernelSource&) { burn(std::int64_t{job.build_ms} * 1'000'000); };
  const std::vector<Asked> asked = asked_of(job, device.info());
  std::vector<ProgramHandle> taken(asked.size());
  const std::uint64_t wall = now_ns();
  const std::int64_t cpu = spent_ns(CLOCK_PROCESS_CPUTIME_ID);
  {
    Store store(folder, device);
    for (int run = 0; run < job.runs; ++run) {
      for (std::size_t i = 0; i < asked.size(); ++i) {
        taken[i] = store.take(asked[i]);
        burn(dispatch_cost_ns);
      }
    }
  }
  const Spent spent{static_cast<double>(now_ns() - wall) / 1e6,
                    static_cast<double>(spent_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (static_cast<const test::SyntheticProgram&>(*taken[i]).text() != asked[i].source.text) {
      throw std::runtime_error("a store gave another program than was asked for");
    }
  }
  if (device.builds != builds_expected || device.loads != job.programs - builds_expected || device.false_bytes != 0) {
    throw std::runtime_error("builds " + std::to_string(device.builds) + ", loads " + std::to_string(device.loads) +
                             ": expected " + std::to_string(builds_expected) + " builds");
  }
  return spent;
}

using bench::quantile;

struct Arm {
  const char* name;
  std::vector<double> tiered, bare, wall, cpu;  // ms, ms, ratios

  void add(const Spent& ours, const Spent& theirs) {
    tiered.push_back(ours.wall_ms);
    bare.push_back(theirs.wall_ms);
    wall.push_back(ours.wall_ms / theirs.wall_ms);
    cpu.push_back(ours.cpu_ms / theirs.cpu_ms);
  }
  void print() const {
    std::printf(
        "%-5s tiered %8.2f ms  bare %8.2f ms  wall ratio %.4f (%.4f to %.4f)  processor ratio %.4f (%.4f to %.4f)\n",
        name, quantile(tiered, 0.5), quantile(bare, 0.5), quantile(wall, 0.5), quantile(wall, 0.25),
        quantile(wall, 0.75), quantile(cpu, 0.5), quantile(cpu, 0.25), quantile(cpu, 0.75));
  }
};

// A folder for each round, all removed at the end: ext4 makes files slowly in the seconds after others were removed,
// and more so for the side that makes more of them.
class Folders {
 public:
  Folders() {
    std::string name = (fs::temp_directory_path() / "kiln-cache-one-thread-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = name;
  }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;
  ~Folders() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  fs::path make(int round) const {
    const fs::path folder = root_ / std::to_string(round);
    fs::create_directory(folder);
    return folder;
  }

 private:
  fs::path root_;
};

void compare(const Job& job, int rounds, bench::FigureFile& file) {
  Arm cold{"cold", {}, {}, {}, {}}, warm{"warm", {}, {}, {}, {}};
  const Folders folders;
  for (int round = 0; round < rounds; ++round) {
    const fs::path folder = folders.make(round);
    const auto both = [&](Arm& arm, int builds) {
      Spent ours, theirs;
      // Who goes first changes from round to round.
      if (round % 2 == 0) ours = run<Tiered>(job, folder, builds);
      theirs = run<Bare>(job, folder, builds);
      if (round % 2 != 0) ours = run<Tiered>(job, folder, builds);
      arm.add(ours, theirs);
    };
    both(cold, job.programs);
    both(warm, 0);
    std::fprintf(stderr, "round %d of %d: cold %.4f, warm %.4f\n", round + 1, rounds, cold.wall.back(),
                 warm.wall.back());
  }
  std::printf("%d programs of %d ms, taken and dispatched %d times on one thread; %d rounds; medians, quartiles\n",
              job.programs, job.build_ms, job.runs, rounds);
  cold.print();
  warm.print();
  for (const Arm* arm : {&cold, &warm}) {
    bench::Figure figure;
    figure.id = std::string("cache.one_thread.") + arm->name + "/bare";
    figure.name = std::string("a job of ") + std::to_string(job.programs) + " programs on one thread, " + arm->name;
    figure.unit = "ms";
    figure.kiln = arm->tiered;
    figure.peer = bench::Peer{"a map and files, no lock, lease or bound", arm->bare};
    if (arm == &cold) figure.target = bench::Target{bench::Target::Of::ratio, 1 / 1.05};
    figure.verified = true;  // another answer ends the program
    file.add(std::move(figure));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto file = bench::FigureFile::of_words(argc, argv);
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto number = [&](std::size_t at, int fallback) {
      const int value = words.size() > at ? std::stoi(words[at]) : fallback;
      if (value < 1) throw std::runtime_error("'" + words[at] + "': expected 1 or more");
      return value;
    };
    Job job;
    const int rounds = number(0, 11);
    job.programs = number(1, job.programs);
    job.build_ms = number(2, job.build_ms);
    job.runs = number(3, job.runs);
    compare(job, rounds, file);
    file.write();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cache_one_thread: %s\n", error.what());
    return 1;
  }
}
