// `kiln kernel build FILE --target NAME`: a kernel compiled ahead of time, without a device.
#include "base/os/atomic_file.hpp"
#include "config/environment.hpp"
#include "report/human.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/kernel_text.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

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
  if (known.empty()) return not_found("no loaded plugin compiles ahead of time: add amdgpu_pm4 to plugins.load");
  return invalid_argument("--target " + (target.empty() ? "is missing" : target) + ": expected one of " + known);
}

Status write_bytes(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  auto out = AtomicFile::create(file);
  if (!out) return out.error();
  if (Status status = out->write(bytes); !status.ok()) return status;
  return out->commit(config::user_state_folder());
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

}  // namespace kiln::host
