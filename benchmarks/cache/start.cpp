// What a new process pays until each of 100 programs has been linked and dispatched once, in milliseconds:
//
//   cache_start [simple|large] [ROUNDS] [COUNT] [--figures FILE]
//
// cold: OpenGL directly, no cache of any kind · driver: OpenGL directly, from source, Mesa's own cache warm · kiln: the
// same programs through Kiln's cache, its folder and the adopted driver cache warm. Each measurement is a process of
// its own; driver and kiln run in turns, medians and quartiles are given. All are dispatched, then waited for. Every
// program's output is compared with that of the cold run, outside the clock. EGL's start is the same on both sides and
// is told apart. kiln's own share is what its calls took less what Device::load took.
#include "cache/tiered_cache.hpp"
#include "gl/egl_context.hpp"
#include "gl/egl_devices.hpp"

#include "cache/corpus.hpp"
#include "figures/figures.hpp"
#include "places.hpp"
#include "support/plugin_under_test.hpp"

#include <glad/gl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kiln/clock.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr std::size_t floats = 4096;

std::vector<float> input() {
  std::vector<float> values(floats);
  for (std::size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i % 97) / 97.0f - 0.5f;
  return values;
}

// What a child tells: named figures, and a digest of all outputs.
struct Told {
  std::map<std::string, double> figures;
  std::string outputs;
};

void tell(const Told& told) {
  for (const auto& [name, value] : told.figures) std::printf("%s %.6f\n", name.c_str(), value);
  std::printf("outputs %s\n", told.outputs.c_str());
  std::fflush(stdout);
}

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

using bench::quantile;

// What a switch costs: each program in turn is dispatched twice, after another one and after itself. The median of the
// differences, so that what a program itself takes is on both sides. `dispatch` returns the ns of one dispatch of a
// program, waited for.
template <class DispatchOf>
void measure_switches(Told& told, std::size_t programs, const DispatchOf& dispatch) {
  constexpr std::size_t turns = 4000;
  std::vector<double> again, differences;
  for (std::size_t i = 0; i < turns; ++i) {
    const auto switched = static_cast<double>(dispatch(i % programs));
    again.push_back(static_cast<double>(dispatch(i % programs)));
    differences.push_back(switched - again.back());
  }
  told.figures["dispatch_us"] = quantile(std::move(again), 0.5) / 1e3;
  told.figures["switch_us"] = quantile(std::move(differences), 0.5) / 1e3;
}

// OpenGL as an application uses it that compiles from source.
Told direct(const std::vector<KernelSource>& sources) {
  const std::uint64_t begun = now_ns();
  auto api = opengl::EglApi::open("libEGL.so.1");
  if (!api) throw std::runtime_error(api.error().text());
  const auto devices = opengl::list_devices(**api);
  auto display = opengl::open_display(**api, devices.front());
  if (!display) throw std::runtime_error(display.error().text());
  auto context = opengl::EglContext::create(*api, display->handle, opengl::DebugOutput::off);
  if (!context) throw std::runtime_error(context.error().text());
  GladGLContext gl{};
  gladLoadGLContextUserPtr(
      &gl,
      [](void* from, const char* name) {
        return reinterpret_cast<GLADapiproc>(static_cast<const opengl::EglApi*>(from)->get_proc_address(name));
      },
      const_cast<opengl::EglApi*>(api->get()));
  const std::uint64_t started = now_ns();
  const double resident_before = resident_mb();
  std::vector<GLuint> programs;
  for (const KernelSource& source : sources) {
    const std::string text = "#version 430 core\n" + source.text;
    const char* pointer = text.c_str();
    const GLuint shader = gl.CreateShader(GL_COMPUTE_SHADER);
    gl.ShaderSource(shader, 1, &pointer, nullptr);
    gl.CompileShader(shader);
    programs.push_back(gl.CreateProgram());
    gl.AttachShader(programs.back(), shader);
    gl.LinkProgram(programs.back());
    GLint linked = GL_FALSE;
    gl.GetProgramiv(programs.back(), GL_LINK_STATUS, &linked);
    if (linked != GL_TRUE) throw std::runtime_error("a shader of the corpus does not link");
    gl.DeleteShader(shader);
  }
  const std::uint64_t linked = now_ns();
  const std::vector<float> in = input();
  std::vector<float> out(floats);
  GLuint buffers[2];
  gl.GenBuffers(2, buffers);
  for (GLuint i = 0; i < 2; ++i) {
    gl.BindBufferBase(GL_SHADER_STORAGE_BUFFER, i, buffers[i]);
    gl.BufferData(GL_SHADER_STORAGE_BUFFER, floats * sizeof(float), i == 0 ? in.data() : out.data(), GL_DYNAMIC_DRAW);
  }
  const auto run = [&](GLuint program) {
    gl.UseProgram(program);
    gl.DispatchCompute(1, 1, 1);
    gl.MemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
  };
  const std::uint64_t before = now_ns();
  for (const GLuint program : programs) run(program);
  gl.Finish();
  const std::uint64_t ready = now_ns(), dispatched = ready - before;
  KeyEncoder outputs;
  for (const GLuint program : programs) {
    run(program);
    gl.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    gl.GetBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, floats * sizeof(float), out.data());
    outputs.field("output", std::string_view(reinterpret_cast<const char*>(out.data()), floats * sizeof(float)));
  }
  Told told{{{"egl", ms(started - begun)},
             {"link", ms(linked - started)},
             {"dispatch", ms(dispatched)},
             {"ready_at", ms(ready)},
             {"resident_mb", resident_mb() - resident_before}},
            outputs.digest().hex()};
  measure_switches(told, programs.size(), [&](std::size_t i) {
    const std::uint64_t at = now_ns();
    run(programs[i]);
    gl.Finish();
    return now_ns() - at;
  });
  return told;
}

// Passes everything on, and times load().
class TimedDevice final : public Device {
 public:
  explicit TimedDevice(Device& device) : device_(device) {}
  std::uint64_t load_ns = 0;
  const DeviceInfo& info() const noexcept override { return device_.info(); }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override {
    return device_.create_buffer(desc);
  }
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override { return device_.build(source); }
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override {
    const std::uint64_t at = now_ns();
    auto program = device_.load(source, binary);
    load_ns += now_ns() - at;
    return program;
  }
  Result<ProgramBinary> serialize(const Program& program) noexcept override { return device_.serialize(program); }
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override { return device_.submit(dispatch); }
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override {
    return device_.wait(value, deadline);
  }

 private:
  Device& device_;
};

template <class Value>
Value need(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

CacheConfig cache_in(const fs::path& folder) {
  CacheConfig config;
  config.directory = folder / "cache";
  config.key_file = folder / "key";
  config.max_programs = 1000;
  return config;
}

std::uint64_t dispatch(Device& device, const Program& program, std::span<Buffer* const> bound) {
  const PassLaunch launch{&program, bound, {1, 1, 1}};
  const std::uint64_t at = now_ns();
  need(device.wait(need(device.submit({std::span(&launch, 1)})), Deadline::never()));
  return now_ns() - at;
}

Told through_kiln(const std::vector<KernelSource>& sources, const fs::path& folder) {
  const std::uint64_t begun = now_ns();
  support::PluginUnderTest plugin("opengl", {}, bench::plugins_folder());
  const auto opened = plugin.open("opengl:0");
  TimedDevice device(*opened);
  const std::uint64_t started = now_ns();
  const double resident_before = resident_mb();
  const auto cache = need(TieredCache::create({{}, cache_in(folder)}));
  std::vector<ProgramHandle> programs;
  std::uint64_t built = 0;
  for (const KernelSource& source : sources) {
    const ProgramKey key = key_of(source, device.info(), "corpus");
    auto acquired = need(cache->get_or_build(key, source, device));
    built += acquired.tier == Tier::built ? 1 : 0;
    programs.push_back(std::move(acquired.program));
  }
  const std::uint64_t linked = now_ns();
  std::vector<float> in = input();
  std::vector<float> out(floats);
  const auto from = need(device.create_buffer({floats * sizeof(float), BufferUsage::upload, {}, -1}));
  const auto to = need(device.create_buffer({floats * sizeof(float), BufferUsage::readback, {}, -1}));
  Buffer* bound[] = {from.get(), to.get()};
  if (Status status = from->write(0, std::as_bytes(std::span(in))); !status.ok())
    throw std::runtime_error(status.text());
  if (Status status = to->write(0, std::as_bytes(std::span(out))); !status.ok())
    throw std::runtime_error(status.text());
  const std::uint64_t before = now_ns();
  std::uint64_t last = 0;
  for (const ProgramHandle& program : programs) {
    const PassLaunch launch{program.get(), bound, {1, 1, 1}};
    last = need(device.submit({std::span(&launch, 1)}));
  }
  need(device.wait(last, Deadline::never()));  // in order: the others are done
  const std::uint64_t ready = now_ns(), dispatched = ready - before;
  KeyEncoder outputs;
  for (const ProgramHandle& program : programs) {
    dispatch(device, *program, bound);
    if (Status status = to->read(0, std::as_writable_bytes(std::span(out))); !status.ok())
      throw std::runtime_error(status.text());
    outputs.field("output", std::string_view(reinterpret_cast<const char*>(out.data()), floats * sizeof(float)));
  }
  Told told{{{"egl", ms(started - begun)},
             {"link", ms(linked - started)},
             {"dispatch", ms(dispatched)},
             {"ready_at", ms(ready)},
             {"own", ms(linked - started - device.load_ns)},
             {"built", static_cast<double>(built)},
             {"resident_mb", resident_mb() - resident_before}},
            outputs.digest().hex()};
  measure_switches(told, programs.size(), [&](std::size_t i) { return dispatch(device, *programs[i], bound); });
  return told;
}

// Runs this program again as a child with an environment of its own.
Told child(const std::string& arm, const std::string& kind, int count, const fs::path& folder,
           const std::string& driver) {
  std::vector<std::string> environment{"MESA_SHADER_CACHE_DIR=" + driver};
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "MESA_SHADER_CACHE", 17) != 0) environment.emplace_back(*each);
  }
  std::vector<char*> variables;
  for (std::string& each : environment) variables.push_back(each.data());
  variables.push_back(nullptr);
  std::string self = fs::read_symlink("/proc/self/exe").string(), verb = "--child", a = arm, k = kind,
              n = std::to_string(count), f = folder.string();
  char* arguments[] = {self.data(), verb.data(), a.data(), k.data(), n.data(), f.data(), nullptr};
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t pid = 0;
  const double begun = ms(now_ns());
  if (posix_spawn(&pid, self.c_str(), &actions, nullptr, arguments, variables.data()) != 0)
    throw std::runtime_error("posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error("the child for '" + arm + "' failed");
  Told told;
  std::istringstream words(text);
  for (std::string name; words >> name;) {
    if (name == "outputs") {
      words >> told.outputs;
    } else {
      words >> told.figures[name];
    }
  }
  told.figures["process"] = told.figures.at("ready_at") - begun;
  told.figures["total"] = told.figures.at("link") + told.figures.at("dispatch");
  return told;
}

void line(const char* what, const std::vector<double>& values) {
  std::printf("%-34s median %9.2f   quartiles %9.2f to %9.2f\n", what, quantile(values, 0.5), quantile(values, 0.25),
              quantile(values, 0.75));
}

// Of each side, by name, a sample a round.
using Samples = std::map<std::string, std::vector<double>>;

void add(Samples& samples, const Told& told) {
  for (const auto& [what, value] : told.figures) samples[what].push_back(value);
}

void tell(const std::string& kind, int count, const Told& first, Samples& cold, Samples& driver, Samples& ours,
          bench::FigureFile& file) {
  using Of = bench::Target::Of;
  const std::string stem = "start." + kind + std::to_string(count);
  const bool many = count == 100, large = kind == "large";
  const auto figure = [&](const std::string& id, const std::string& name, const char* unit, std::vector<double> kiln) {
    bench::Figure made;
    made.id = stem + id;
    made.name = name;
    made.unit = unit;
    made.kiln = std::move(kiln);
    made.verified = true;  // or the program has ended
    made.group = std::to_string(count) + " " + kind + (count == 1 ? " program" : " programs");
    made.device = "opengl:0";
    return made;
  };
  const auto beside = [&](bench::Figure made, const char* peer, const std::vector<double>& samples, double goal) {
    made.peer = bench::Peer{peer, samples};
    if (goal > 0) made.target = bench::Target{Of::ratio, goal};
    file.add(std::move(made));
  };
  const std::string ready = "programs ready in a new process, EGL's start apart";
  const std::string whole = "from the start of the process to its last first output";
  beside(figure("/cold", ready, "ms", ours["total"]), "OpenGL, no cache", cold["total"], many ? large ? 130 : 70 : 0);
  beside(figure("/driver", ready, "ms", ours["total"]), "OpenGL, Mesa's own cache warm", driver["total"],
         many && large ? 1 / 1.1 : 0);
  beside(figure(".process/cold", whole, "ms", ours["process"]), "OpenGL, no cache", cold["process"], 0);
  beside(figure(".process/driver", whole, "ms", ours["process"]), "OpenGL, Mesa's own cache warm", driver["process"],
         0);
  bench::Figure own = figure(".own", "Kiln's own share", "ms", ours["own"]);
  if (many) own.target = bench::Target{Of::kiln, 10};
  file.add(std::move(own));
  beside(figure(".resident", "resident growth", "MB", ours["resident_mb"]), "OpenGL, Mesa's own cache warm",
         driver["resident_mb"], 0);
  if (many) {
    bench::Figure one = figure(".switch", "a switch of programs", "us", ours["switch_us"]);
    one.peer = bench::Peer{"OpenGL, Mesa's own cache warm", driver["switch_us"]};
    one.target = bench::Target{Of::kiln, 10};
    file.add(std::move(one));
  }
  bench::Figure cold_builds =
      figure(".builds.first", "builds by the first process", "builds", {first.figures.at("built")});
  bench::Figure warm_builds = figure(".builds.warm", "builds by a later process", "builds", ours["built"]);
  warm_builds.target = bench::Target{Of::kiln, 0};
  cold_builds.stable = warm_builds.stable = true;
  file.add(std::move(cold_builds));
  file.add(std::move(warm_builds));
}

int compare(const std::string& kind, int rounds, int count, bench::FigureFile& file) {
  std::string name = (fs::temp_directory_path() / "kiln-cache-start-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const fs::path folder = name;
  const std::string no_cache = "/proc/none", of_driver = folder / "driver", of_kiln = folder / "cache" / "driver";
  fs::create_directories(of_kiln);
  const Told coldest = child("direct", kind, count, folder, no_cache);
  child("direct", kind, count, folder, of_driver);
  const Told first = child("kiln", kind, count, folder, of_kiln);
  Samples cold, driver, ours;
  add(cold, coldest);
  std::vector<double> ratios, gains;
  bool same = first.outputs == coldest.outputs;
  constexpr double long_ms = 2000;
  for (int round = 0; round < rounds; ++round) {
    if (round > 0 && coldest.figures.at("total") < long_ms) {
      const Told again = child("direct", kind, count, folder, no_cache);
      same = same && again.outputs == coldest.outputs;
      add(cold, again);
    }
    const Told theirs = child("direct", kind, count, folder, of_driver);
    const Told mine = child("kiln", kind, count, folder, of_kiln);
    same =
        same && theirs.outputs == coldest.outputs && mine.outputs == coldest.outputs && mine.figures.at("built") == 0;
    add(driver, theirs);
    add(ours, mine);
    ratios.push_back(mine.figures.at("total") / theirs.figures.at("total"));
    gains.push_back(cold["total"].back() / mine.figures.at("total"));
  }
  fs::remove_all(folder);
  std::printf("%d %s programs, %d rounds; ms, link and first dispatch of all\n", count, kind.c_str(), rounds);
  std::printf("%-34s %9.2f + %.2f\n", "cold: link + dispatch", coldest.figures.at("link"),
              coldest.figures.at("dispatch"));
  std::printf("%-34s %9.2f + %.2f\n", "kiln, first process", first.figures.at("link"), first.figures.at("dispatch"));
  line("driver's cache: link", driver["link"]);
  line("driver's cache: dispatch", driver["dispatch"]);
  line("kiln: link", ours["link"]);
  line("kiln: dispatch", ours["dispatch"]);
  line("kiln's own share", ours["own"]);
  line("egl: direct", driver["egl"]);
  line("egl: kiln, plugin and canary", ours["egl"]);
  line("process: driver's cache", driver["process"]);
  line("process: kiln", ours["process"]);
  line("kiln / driver's cache", ratios);
  line("cold / kiln", gains);
  line("resident growth, MB: driver", driver["resident_mb"]);
  line("resident growth, MB: kiln", ours["resident_mb"]);
  line("a dispatch, us: driver", driver["dispatch_us"]);
  line("a dispatch, us: kiln", ours["dispatch_us"]);
  line("a switch, us: driver", driver["switch_us"]);
  line("a switch, us: kiln", ours["switch_us"]);
  std::printf("%s\n",
              same ? "every output equal to the cold run's; nothing built" : "OUTPUTS DIFFER, or something was built");
  if (!same) return 1;
  tell(kind, count, first, cold, driver, ours, file);
  file.write();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  auto file = bench::FigureFile::of_words(argc, argv);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "--child") {
    prefer_roomy_heaps();  // as `kiln` does; for both sides
    const auto sources = bench::corpus(words[2], std::stoi(words[3]));
    tell(words[1] == "kiln" ? through_kiln(sources, words[4]) : direct(sources));
    std::fflush(stdout);
    _exit(0);
  }
  const std::string kind = words.empty() ? "simple" : words[0];
  if (kind != "simple" && kind != "large") throw std::runtime_error("'" + kind + "': expected simple or large");
  return compare(kind, words.size() > 1 ? std::stoi(words[1]) : 10, words.size() > 2 ? std::stoi(words[2]) : 100, file);
} catch (const std::exception& error) {
  std::fprintf(stderr, "cache_start: %s\n", error.what());
  return 1;
}
