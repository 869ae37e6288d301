// Verbs that need no device: `kiln kernel build`, `kiln pm4 dump`, `kiln simulate`.
#include "console.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verb_table.hpp"
#include "verbs/verbs.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/kernel_text.hpp>
#include <kiln/regular_file.hpp>
#include <kiln/result_files.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::host {
namespace {

// Of the plugins that are loaded, the first that compiles for the target.
Result<std::unique_ptr<AheadCompiler>> compiler_for(Session& session, const std::string& target) {
  std::string known;
  for (const auto& [name, registered] : session.registry().ahead_compilers()) {
    auto compiler = registered.make(session.offline_context(registered.plugin));
    if (!compiler) return compiler.error();
    const std::vector<std::string> targets = (*compiler)->targets();
    if (std::ranges::find(targets, target) != targets.end()) return std::move(compiler).value();
    for (const std::string& one : targets) known += (known.empty() ? "" : ", ") + one;
  }
  if (known.empty()) return not_found("no loaded plugin compiles ahead of time. Add amdgpu_pm4 to plugins.load");
  return invalid_argument("--target " + (target.empty() ? "is missing" : target) + ": expected one of " + known);
}

Status write_bytes(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  auto out = AtomicFile::create(file);
  if (!out) return out.error();
  if (Status status = out->write(bytes); !status.ok()) return status;
  return out->commit(user_state_folder());
}

Json described(const AheadProgram& program, const Options& options, const std::filesystem::path& file) {
  Json json{{"schema", 1},
            {"file", options.subject},
            {"target", options.target},
            {"output", file.string()},
            {"format", program.binary.format},
            {"bytes", program.binary.bytes.size()},
            {"kernels", Json::array()}};
  for (const AheadKernel& kernel : program.kernels) {
    Json facts = Json::object();
    for (const auto& [what, value] : kernel.facts) facts[what] = value;
    json["kernels"].push_back({{"name", kernel.name}, {"facts", std::move(facts)}});
  }
  return json;
}

std::string in_words(const AheadProgram& program, const std::filesystem::path& file) {
  std::string text = visible(file.string()) + ": " + std::to_string(program.binary.bytes.size()) + " bytes, " +
                     counted(program.kernels.size(), "kernel") + "\n";
  for (const AheadKernel& kernel : program.kernels) {
    text += "  " + visible(kernel.name) + ": ";
    for (const auto& [what, value] : kernel.facts) {
      text += (what == kernel.facts.front().first ? "" : ", ") + what + " " + value;
    }
    text += "\n";
  }
  return text;
}

}  // namespace

int kernel_build(const Options& options) {
  const auto source_text = read_kernel_text({{}, options.subject, options.include}, Dialect::opencl_c);
  if (!source_text) {
    complain(visible(source_text.error().message));
    return exit_usage;
  }
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const auto compiler = compiler_for(session, options.target);
  if (!compiler) return complain_of(compiler.error());
  std::optional<ProgressLine> line(std::in_place, options.progress);
  line->show("compiling " + visible(options.subject) + " for " + options.target);
  const auto program =
      (*compiler)->compile({source_text->text, options.subject, options.target, source_text->includes});
  line.reset();
  if (!program) {
    complain(program.error().message);  // the compiler's log: line ends stay
    return exit_job_failed;
  }
  const std::filesystem::path source(options.subject);
  const std::filesystem::path file =
      options.output ? *options.output
                     : std::filesystem::path(source.stem().string() + "." + options.target + "." + program->extension);
  if (Status status = write_bytes(file, program->binary.bytes); !status.ok()) return complain_of(status);
  Options told = options;
  told.output.reset();  // --output is the program's; what is told of it goes to standard output
  return options.json ? finish_json(described(*program, options, file), told) : finish(in_words(*program, file), told);
}

namespace {

constexpr std::string_view offline_options = "set json output plugin-path cache-dir log help version";

constexpr VerbHelp offline_table[] = {
    {"kernel build", kernel_build, Argument::subject, "FILE", "compile a kernel ahead of time",
     R"(Compiles FILE for --target NAME with the compiler of a plugin. Needs no device. Writes the code to --output, or to a file in the
current folder with the name of FILE and the target. Prints the resources of each kernel. The plugin amdgpu_pm4 compiles OpenCL C
(x.cl) for AMD's gfx10.3 and gfx11 and needs clang 19.

Exit status: 0 built · 1 the compiler is missing or failed (its whole log is shown) · 2 usage or configuration.)",
     offline_options, "target include"},
    {"pm4 dump", pm4_dump, Argument::subject, "FILE", "print a PM4 command stream as text",
     R"(FILE contains PM4 packets as little-endian 32-bit words. Prints every packet with its fields, and registers by name. Unknown packets
are marked and printed as numbers. --target is the target of the stream: gfx1100 (default), gfx1030, …)",
     offline_options, "target"},
    {"simulate", simulate, Argument::command, "[--target NAME] -- COMMAND…",
     "run a program with the simulated AMD device present",
     R"(Runs COMMAND with a simulated AMD graphics card: a render node that libdrm and Mesa's drivers accept, whose compute shaders are
interpreted. --target: gfx1100 (default) or gfx1030. Kiln labels the device `simulated`. The exit status is that of COMMAND.

The simulator writes its messages to standard error, or to the file of KILN_SIM_LOG.)",
     "help version", "target"},
    {"report", report, Argument::subjects, "FILE…", "one page of charts and tables from what Kiln wrote",
     R"(Makes one HTML page from any mix of: the output of `kiln run --json`, a bench file, a tuning database (kiln tune export), a
cache (its folder, or the output of `kiln cache stats --json`), a trace (kiln run --trace). Kiln finds the kind of a file from its
contents. The page loads nothing from the network.

The page shows what the files contain: Kiln beside its peers, the time of a start by tier, where programs were found and how much
time that saved, devices compared job by job, the roofline, every tuned variant, and the lanes of the executor. Each chart has a
table of its figures.

    kiln run my.toml --json --output run.json
    kiln report run.json ~/.cache/kiln --output page.html

Exit status: 0 written · 1 it could not be written · 2 usage, or a file that is not as expected.)",
     "output help version", "title"},
};

}  // namespace

std::span<const VerbHelp> offline_verbs() noexcept { return offline_table; }

// `kiln pm4 dump FILE`: a command stream in words.
namespace {

constexpr std::uint64_t most_stream_bytes = std::uint64_t{64} << 20;

}  // namespace

int pm4_dump(const Options& options) {
  const auto stream = read_whole_file(options.subject, most_stream_bytes);
  if (!stream) {
    complain(stream.error().message);
    return exit_usage;
  }
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const auto& printers = session.registry().stream_printers();
  const auto found = printers.find("pm4");
  if (found == printers.end()) {
    complain("no loaded plugin reads PM4 streams: add amdgpu_pm4 to plugins.load");
    return exit_job_failed;
  }
  const auto printer = found->second.make(session.offline_context(found->second.plugin));
  if (!printer) return complain_of(printer.error());
  const auto text = (*printer)->print(std::as_bytes(std::span(*stream)), options.target);
  if (!text) return complain_of(text.error().within("file " + options.subject));
  if (options.json) return finish_json({{"schema", 1}, {"file", options.subject}, {"text", *text}}, options);
  return finish(*text, options);
}

// `kiln simulate -- COMMAND…`: another program, with the simulated AMD device present.
namespace {

constexpr std::array<std::string_view, 2> targets{"gfx1100", "gfx1030"};
constexpr std::string_view library = "libkiln_amdgpu_sim.so";

// Beside the libraries that this command was installed with.
std::filesystem::path simulator_library() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path().parent_path() / "lib" / library;
}

// In a list that colons part; what the user has set stays behind it.
void put_first(const char* list, std::string entry) {
  if (const char* others = std::getenv(list); others != nullptr && *others != '\0') entry += ":" + std::string(others);
  setenv(list, entry.c_str(), 1);
}

}  // namespace

int simulate(const Options& options) {
  const std::string target = options.target.empty() ? std::string(targets.front()) : options.target;
  if (std::ranges::find(targets, target) == targets.end()) {
    complain("--target " + visible(target) + ": no such simulated device: expected gfx1100 or gfx1030");
    return exit_usage;
  }
  const std::filesystem::path shim = simulator_library();
  if (shim.empty() || access(shim.c_str(), R_OK) != 0) {
    complain("the simulator " + visible(shim.string()) + ": cannot be read: " + std::strerror(errno));
    return exit_no_device;
  }
  const std::string folder = shim.parent_path().string();
  if (folder.find_first_of(":;$") != std::string::npos) {
    complain("the simulator " + visible(shim.string()) +
             ": cannot be preloaded from a folder with ':', ';' or '$' in its name");
    return exit_no_device;
  }
  // By name and search path: names in LD_PRELOAD are parted by blanks too, which folders may have.
  put_first("LD_LIBRARY_PATH", folder);
  put_first("LD_PRELOAD", std::string(library));
  setenv("KILN_SIM_TARGET", target.c_str(), 1);
  std::vector<char*> words;
  std::vector<std::string> command = options.subjects;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  // The command starts with the signals as a shell gives them.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execvp(words.front(), words.data());
  complain("command " + visible(command.front()) + ": cannot be started: " + std::strerror(errno));
  return exit_usage;
}

}  // namespace kiln::host
