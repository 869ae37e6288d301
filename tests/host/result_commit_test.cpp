// The results of a job as one change: runs that are killed, outputs that refuse, two runs at once, many small jobs.
#include "host/kiln_process.hpp"
#include "support/syscall_killer.hpp"
#include "support/test_length.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t elements = 64;

constexpr const char* exchange = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer A { float a[]; };
layout(std430, binding = 1) buffer B { float b[]; };
layout(std430, binding = 2) buffer Sum { float sum[]; };
void main() { uint i = gl_GlobalInvocationID.x; float t = a[i]; a[i] = b[i] + STEP; b[i] = t + STEP; sum[i] = a[i] + b[i]; }
)";

// a.npy = 1, b.npy = 5, sum.npy = 0 in a folder with a space, cache and state of its own.
class Exchange {
 public:
  Exchange() {
    folder.write("exchange.comp", exchange);
    std::filesystem::create_directory(folder / "out");
    reset();
  }

  void put(const std::string& name, float value) const {
    auto tensor = HostTensor::create(DType::f32, {elements}).value();
    std::ranges::fill(tensor->as<float>(), value);
    REQUIRE(data::write_npy(folder / name, *tensor).ok());
  }
  float value(const std::string& name) const {
    const auto tensor = data::read_npy(folder / name);
    REQUIRE(tensor);
    const auto values = (*tensor)->as<float>();
    REQUIRE(std::ranges::all_of(values, [&](float each) { return each == values[0]; }));
    return values[0];
  }
  void reset() const {
    put("a.npy", 1);
    put("out/b.npy", 5);
    put("sum.npy", 0);
  }
  std::vector<float> values() const { return {value("a.npy"), value("out/b.npy"), value("sum.npy")}; }

  std::string job(const std::string& step = "1.0") const {
    return "[[job]]\nname = \"exchange\"\nop = \"kernel\"\nsource = \"exchange.comp\"\ndevice = \"opengl:0\"\n"
           "constants = { STEP = " +
           step +
           " }\ngrid = [1]\n"
           "bindings = [ { inout = \"a.npy\" }, { inout = \"out/b.npy\" }, { inout = \"sum.npy\" } ]\n";
  }
  // Words and environment of a run.
  std::vector<std::string> words(const std::string& config, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"run", config, "--json", "--cache-dir", (folder / "cache").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProcessOptions options() const {
    ProcessOptions options;
    options.environment["XDG_STATE_HOME"] = folder / "state";
    options.environment["ASAN_OPTIONS"] = "detect_leaks=0";  // which ptrace hinders
    return options;
  }
  Finished run(const std::string& text, const std::vector<std::string>& more = {}) const {
    return run_kiln(words(folder.write("job.toml", text).string(), more), options());
  }
  // A run of something else.
  Finished next_run() const {
    return run(
        "[[job]]\nname = \"next\"\nop = \"conv2d\"\nc = 1\nh = 4\nw = 4\nk = 1\nr = 1\ns = 1\ninput = \"random:1\"\n"
        "weights = \"random:2\"\ndevice = \"cpu\"\n");
  }
  // In a child.
  [[noreturn]] void become(const std::string& config) const {
    for (const auto& [name, text] : options().environment) setenv(name.c_str(), text.c_str(), 1);
    const int nothing = open("/dev/null", O_RDWR);
    for (int stream = 0; stream < 3; ++stream) dup2(nothing, stream);
    std::vector<std::string> all = words(config);
    all.insert(all.begin(), std::string(KILN_BINARY_DIR) + "/bin/kiln");
    std::vector<char*> pointers;
    for (std::string& word : all) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  std::vector<std::string> hidden_files() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder.path())) {
      const std::string name = each.path().filename();
      if (name.starts_with(".kiln-") || name == "results.journal") names.push_back(each.path());
    }
    return names;
  }

  const TemporaryFolder folder{"with a space"};
};

const std::vector<float> all_old{1, 5, 0}, all_new{6, 2, 8};

}  // namespace

TEST_CASE("results: a run killed at a system call leaves all old or all new after the next run", "[unsanitized]") {
  const Exchange jobs;
  REQUIRE(jobs.run(jobs.job()).status == 0);
  REQUIRE(jobs.values() == all_new);
  jobs.reset();
  const std::string config = jobs.folder.write("killed.toml", jobs.job());
  std::size_t forward = 0, back = 0;
  // The next run, of something else, and what it leaves.
  const auto kill_at = [&](KillPoint point, std::size_t call) {
    jobs.reset();
    point.call = call;
    (void)run_and_kill([&] { jobs.become(config); }, point);
    const Finished next = jobs.next_run();
    INFO("killed at call " << call << ": " << next.err);
    REQUIRE(next.status == 0);
    const std::vector<float> values = jobs.values();
    (values == all_new ? forward : back) += 1;
    CHECK((values == all_old || values == all_new));
    CHECK(jobs.hidden_files().empty());
  };
  KillPoint results;  // counts from when the results are written; they are named next, and the rest of the run follows
  results.counts_from = opens_nameless_file;
  const KilledRun whole = run_and_kill([&] { jobs.become(config); }, results);
  if (!whole.is_traced) {
    WARN("skipped: ptrace is not permitted here");
    return;
  }
  REQUIRE(whole.status == 0);
  REQUIRE(jobs.values() == all_new);
  REQUIRE(whole.calls > 30);
  constexpr std::size_t close_by = 60;
  const std::size_t step = is_long() ? 1 : is_sanitized ? 7 : 2;
  for (std::size_t call = 1; call <= whole.calls; call += call < close_by || is_long() ? step : whole.calls / 4) {
    kill_at(results, call);
  }
  CHECK(forward > 0);
  CHECK(back > 0);
  if (!is_long()) return;
  // The calls before that, which are thousands: loading the drivers.
  jobs.reset();
  const KillPoint all;
  const std::size_t calls = run_and_kill([&] { jobs.become(config); }, all).calls;
  for (std::size_t call = 1; call <= calls; call += 7) kill_at(all, call);
}

TEST_CASE("results: a run after a kill refuses a damaged journal, names its outputs and writes none of them") {
  const Exchange jobs;
  const std::string config = jobs.folder.write("killed.toml", jobs.job());
  const std::filesystem::path journal = jobs.folder / "state/kiln/results.journal";
  KillPoint point;  // before the second output takes its name
  std::size_t calls = 0, exchanges = 0;
  point.counts_from = opens_nameless_file;
  point.at_each_call = [&](const SystemCall& call) {
    ++calls;
    if (call.number == SYS_renameat2 && ++exchanges == 2) point.call = calls;
  };
  const KilledRun killed = run_and_kill([&] { jobs.become(config); }, point);
  if (!killed.is_traced) {
    WARN("skipped: ptrace is not permitted here");
    return;
  }
  REQUIRE(killed.was_killed);
  REQUIRE(std::filesystem::exists(journal));
  const std::vector<float> left = jobs.values();
  REQUIRE(left != all_old);
  REQUIRE(left != all_new);
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) / 3);
  for (int run = 0; run < 2; ++run) {
    const Finished refused = jobs.run(jobs.job("3.0"));
    INFO(refused.err << refused.out);
    CHECK(refused.status == 1);
    const std::string error = refused.json()["jobs"][0]["error"].get<std::string>();
    for (const std::string& message : {error, refused.err}) {
      CHECK_THAT(message, Contains(journal.string()) && Contains("is damaged") && Contains("a.npy"));
    }
    CHECK(jobs.values() == left);
  }
  std::filesystem::remove(journal);
  jobs.reset();
  REQUIRE(jobs.run(jobs.job()).status == 0);
  CHECK(jobs.values() == all_new);
}

TEST_CASE("results: an output that the system refuses fails the job, and the others stay") {
  const Exchange jobs;
  const std::filesystem::path out = jobs.folder / "out";
  const auto fails = [&](const std::string& word) {
    const Finished finished = jobs.run(jobs.job());
    INFO(finished.err << finished.out);
    CHECK(finished.status == 1);
    CHECK_THAT(finished.json()["jobs"][0]["error"].get<std::string>(), Contains("b.npy") && Contains(word));
  };
  if (geteuid() == 0) {
    const auto mount_on_itself = [](const std::filesystem::path& path) {
      return mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0;
    };
    if (!mount_on_itself(out)) return;
    REQUIRE(mount(nullptr, out.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0);
    fails("Read-only file system");
    REQUIRE(umount(out.c_str()) == 0);
    CHECK(jobs.values() == all_old);
    // What is found out when the first of them has its name.
    REQUIRE(mount_on_itself(out / "b.npy"));
    fails("busy");
    REQUIRE(umount((out / "b.npy").c_str()) == 0);
  } else {
    std::filesystem::permissions(out, std::filesystem::perms(0555));
    fails("Permission denied");
    std::filesystem::permissions(out, std::filesystem::perms(0755));
  }
  CHECK(jobs.values() == all_old);
  CHECK(jobs.hidden_files().empty());
  REQUIRE(jobs.run(jobs.job()).status == 0);
  CHECK(jobs.values() == all_new);
}

TEST_CASE("results: two runs at once on the same outputs leave those of one") {
  const Exchange jobs;
  const auto many = [&](const std::string& step) {
    std::string text;
    for (int i = 0; i < 10; ++i) {
      text += "[[job]]\nname = \"n" + std::to_string(i) +
              "\"\nop = \"kernel\"\nsource = \"step.comp\"\ndevice = \"opengl:0\"\nconstants = { STEP = " + step +
              " }\ngrid = [1]\nbindings = [ { inout = \"a.npy\" }, { inout = \"out/b.npy\" } ]\n";
    }
    return text;
  };
  jobs.folder.write("step.comp", R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer A { float a[]; };
layout(std430, binding = 1) buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; float n = a[i] * 0.0 + b[i] * 0.0; a[i] = n + STEP; b[i] = n + STEP; }
)");
  std::vector<std::future<Finished>> runs;
  for (const char* step : {"3.0", "4.0"}) {
    const std::string config = jobs.folder.write(std::string(step) + ".toml", many(step));
    runs.push_back(
        std::async(std::launch::async, [&jobs, config] { return run_kiln(jobs.words(config), jobs.options()); }));
  }
  for (auto& run : runs) {
    const Finished finished = run.get();
    INFO(finished.err << finished.out);
    CHECK(finished.status == 0);
  }
  CHECK(jobs.value("a.npy") == jobs.value("out/b.npy"));
  CHECK(jobs.hidden_files().empty());
}

TEST_CASE("results: a hundred small jobs share their syncs") {
  const Exchange jobs;
  jobs.folder.write("scale.comp", R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer B { float b[]; };
layout(std430, binding = 2) buffer C { float c[]; };
uniform float n;
void main() { uint i = gl_GlobalInvocationID.x; b[i] = a[i] + n; c[i] = a[i] - n; }
)");
  std::string text;
  constexpr int count = 100;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "[[job]]\nname = \"n" + n +
            "\"\nop = \"kernel\"\nsource = \"scale.comp\"\ndevice = \"opengl:0\"\nuniforms = { n = " + n +
            " }\ngrid = [1]\nbindings = [ { input = \"a.npy\" }, { output = \"out/b" + n +
            ".npy\", shape = [64] }, { output = \"out/c" + n + ".npy\", shape = [64] } ]\n";
  }
  const std::string config = jobs.folder.write("many.toml", text);
  std::size_t syncs = 0;
  KillPoint point;
  point.counts_from = opens_nameless_file;
  point.at_each_call = [&](const SystemCall& call) {
    const auto is = [&](long number) { return call.number == static_cast<std::uint64_t>(number); };
    if (is(SYS_fsync) || is(SYS_fdatasync) || is(SYS_syncfs)) ++syncs;
  };
  const KilledRun run = run_and_kill([&] { jobs.become(config); }, point);
  if (!run.is_traced) {
    WARN("skipped: ptrace is not permitted here");
    return;
  }
  REQUIRE(run.status == 0);
  for (int i = 0; i < count; ++i) {
    CHECK(jobs.value("out/b" + std::to_string(i) + ".npy") == static_cast<float>(1 + i));
    CHECK(jobs.value("out/c" + std::to_string(i) + ".npy") == static_cast<float>(1 - i));
  }
  INFO(syncs << " syncs");
  CHECK(syncs > 0);
  CHECK(syncs <= count / 2);
}

TEST_CASE("results: the files that a command writes keep their mode, and links are followed") {
  const Exchange jobs;
  const std::filesystem::path report = jobs.folder / "report.json", trace = jobs.folder / "trace.json";
  for (const auto& file : {report, trace}) {
    jobs.folder.write(file.filename(), "old");
    REQUIRE(chmod(file.c_str(), 0600) == 0);
  }
  std::filesystem::create_symlink("report.json", jobs.folder / "link.json");
  const Finished finished = jobs.run(jobs.job(), {"--output", jobs.folder / "link.json", "--trace", trace});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  CHECK(std::filesystem::is_symlink(jobs.folder / "link.json"));
  for (const auto& file : {report, trace}) {
    struct stat found {};
    REQUIRE(stat(file.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
    CHECK(found.st_size > 100);
  }
  CHECK(jobs.hidden_files().empty());
  std::filesystem::create_hard_link(report, jobs.folder / "second.json");
  const Finished refused = jobs.run(jobs.job(), {"--output", report});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("2 hard links"));
}
