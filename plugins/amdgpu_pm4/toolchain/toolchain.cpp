#include "amdgpu_pm4/toolchain/toolchain.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

#include <kiln/digest.hpp>
#include <kiln/regular_file.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/toolchain/child_clang.hpp"
#include "amdgpu_pm4/toolchain/in_process_clang.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

Status check_entry(const CodeObject& code, const std::string& entry) {
  if (find_kernel(code, entry) != nullptr || (entry == "main" && code.kernels.size() == 1)) return {};
  std::string there;
  const bool chosen = entry != "main";
  for (std::size_t i = 0; i < code.kernels.size(); ++i) {
    const bool is_last = i + 1 == code.kernels.size();
    there += (i == 0 ? "" : is_last && !chosen ? " and " : ", ") + code.kernels[i].name;
  }
  if (!chosen) {
    return invalid_argument("the text has several kernels, " + there + ": choose one with entry = \"" +
                            code.kernels[0].name + "\"");
  }
  return invalid_argument("entry '" + entry + "' is not a kernel of the text: expected one of " + there);
}

std::string file_of(const KernelSource& source, std::string_view name) {
  return source.files.empty() ? std::string(name) : source.files[0];
}

// "function 'even' calls 'odd', which calls 'even'"
std::string in_words(const std::vector<std::string>& cycle) {
  std::string text = "function '" + cycle[0] + "' calls ";
  if (cycle.size() == 1) return text + "itself";
  for (std::size_t i = 1; i < cycle.size(); ++i) text += "'" + cycle[i] + "', which calls ";
  return text + "'" + cycle[0] + "'";
}

Result<Compiled> compile_all(Toolchain& toolchain, const KernelSource& source, std::string_view name, Target target,
                             Deadline deadline) {
  const auto text = assemble(source, name);
  if (!text) return text.error();
  return compile_text(toolchain, *text, target, deadline);
}

}  // namespace

Toolchain::~Toolchain() = default;

std::string identity_of(const Toolchain& toolchain) {
  KeyEncoder recipe;
  recipe.field("prelude", prelude());
  // The target is part of the device's identity: any one stands for the arguments.
  for (const std::string& argument : clang_arguments(Target::gfx1100)) recipe.field("argument", argument);
  recipe.field("library", toolchain.library().identity);
  return toolchain.version() + ", recipe " + recipe.digest().hex().substr(0, 16);
}

std::vector<std::string> Toolchain::arguments_for(const OpenClText& text, Target target) const {
  return text.calls_library && library_.present() ? clang_arguments(target, library_) : clang_arguments(target);
}

namespace {

Result<Compiled> compile_linked(Toolchain& toolchain, const OpenClText& text, Target target, Deadline deadline) {
  auto compiled = toolchain.compile(text, target, deadline);
  if (compiled) return compiled;
  Status status = compiled.error();
  const bool undeclared =
      status.code == StatusCode::invalid_argument && status.message.find("undeclared identifier") != std::string::npos;
  if (toolchain.library().present()) {
    if (!undeclared || text.calls_library) return compiled;
    // Perhaps a call that calls_library() did not see.
    OpenClText calling = text;
    calling.calls_library = true;
    return toolchain.compile(calling, target, deadline);
  }
  if (undeclared) {
    status.message += "OpenCL C's function library is missing (" + toolchain.library().why_not +
                      "), so its functions are undeclared. Install Debian's rocm-device-libs, or set "
                      "[plugin.amdgpu_pm4] device_library";
  }
  return status;
}

}  // namespace

Result<Compiled> compile_text(Toolchain& toolchain, const OpenClText& text, Target target, Deadline deadline) noexcept {
  auto compiled = compile_linked(toolchain, text, target, deadline);
  if (!compiled) {
    // The compiler names the replacement of what is refused.
    Status status = compiled.error();
    for (std::size_t at = 0; (at = status.message.find(replacement_prefix, at)) != std::string::npos;) {
      status.message.erase(at, replacement_prefix.size());
    }
    return status;
  }
  compiled->said.insert(0, text.warning);
  return compiled;
}

Status check_calls(const KernelSource& source, std::string_view entry, std::string_view name) {
  const std::vector<std::string> cycle = call_cycle(source.text, entry, source.constants);
  if (cycle.empty()) return {};
  return invalid_argument(file_of(source, name) + ": " + in_words(cycle) + "; OpenCL C does not support recursion");
}

Result<Compiled> compile_kernel(Toolchain& toolchain, const KernelSource& source, std::string_view name, Target target,
                                Deadline deadline) noexcept {
  auto compiled = compile_all(toolchain, source, name, target, deadline);
  if (!compiled && compiled.error().message.find("is not offered") != std::string::npos) {
    // Perhaps by functions alone that the entry does not reach.
    if (auto reachable = only_reachable(source.text, source.entry)) {
      KernelSource less = source;
      less.text = std::move(*reachable);
      compiled = compile_all(toolchain, less, name, target, deadline);
    }
  }
  if (!compiled) return compiled.error();
  const auto code = read_code_object(compiled->object);
  if (!code) {
    // What is not offered is the text's own.
    if (code.error().code == StatusCode::unsupported) return code.error().within(file_of(source, name));
    return code.error().within("output of the compiler for " + std::string(name));
  }
  if (code->target != target) {
    return internal_error("the compiler wrote code for " + std::string(to_string(code->target)) + ", expected " +
                          std::string(to_string(target)));
  }
  if (Status status = check_entry(*code, source.entry); !status.ok()) return status;
  const bool is_named = find_kernel(*code, source.entry) != nullptr;
  if (Status status = check_calls(source, is_named ? source.entry : code->kernels[0].name, name); !status.ok()) {
    return status;
  }
  return compiled;
}

std::vector<std::string> clang_arguments(Target target) {
  return {
      "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + std::string(to_string(target)), "-O3",
      "-mcode-object-version=5", "-c",
      // A product and the sum that it goes into, within one expression, are one fused operation; across statements
      // nothing is. So "sum += x * w" rounds once on every target and at every level of optimization, and a reference
      // that adds up by fma() in the text's order agrees in every bit. Divisions and roots are rounded correctly too.
      "-ffp-contract=on", "-cl-fp32-correctly-rounded-divide-sqrt",
      // An "inline" function is defined, too: where it is not inlined, C99 would look for it in another file.
      "-fgnu89-inline",
      // Functions are for this text's kernels alone: those that no kernel calls are not compiled.
      "-mllvm", "-amdgpu-internalize-symbols",
      // Private arrays stay out of local memory: code there reads a dispatch packet, which is not offered.
      "-mllvm", "-disable-promote-alloca-to-lds",
      // Grids are of whole workgroups: nothing is spent on a partial last one.
      "-cl-uniform-work-group-size",
      // Arguments keep their names, for messages.
      "-cl-kernel-arg-info",
      // Nothing of the machine takes part: device libraries, headers, configuration files. A crash leaves no files.
      "-nogpulib", "-nostdinc", "-cl-no-stdinc", "--no-default-config", "-fno-crash-diagnostics",
      "-fno-color-diagnostics", "-fdebug-compilation-dir=."};
}

std::vector<std::string> clang_arguments(Target target, const DeviceLibrary& library) {
  std::vector<std::string> arguments = clang_arguments(target);
  // The compiler itself declares OpenCL C's functions, each where the text first names it.
  arguments.insert(arguments.end(), {"-Xclang", "-fdeclare-opencl-builtins", "-DKILN_LIBRARY_"});
  for (std::string& file : library.files(target)) {
    arguments.insert(arguments.end(), {"-Xclang", "-mlink-builtin-bitcode", "-Xclang", std::move(file)});
  }
  return arguments;
}

namespace {

constexpr std::uint64_t most_file_bytes = 256 << 20;
constexpr std::array usual_folders = {"/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/amdgcn/bitcode",
                                      "/opt/rocm/amdgcn/bitcode"};

// The functions, then the constants that choose among their variants: denormals stay, divisions and roots are rounded
// correctly, NaN and infinity are numbers to reckon with.
constexpr std::array common_files = {"opencl.bc",
                                     "ocml.bc",
                                     "ockl.bc",
                                     "oclc_abi_version_500.bc",
                                     "oclc_correctly_rounded_sqrt_on.bc",
                                     "oclc_daz_opt_off.bc",
                                     "oclc_finite_only_off.bc",
                                     "oclc_unsafe_math_off.bc",
                                     "oclc_wavefrontsize64_off.bc"};
constexpr const char* isa_gfx1030 = "oclc_isa_version_1030.bc";
// Of the functions that are offered, the variants for gfx11 and later are those for gfx1036.
constexpr const char* isa_later = "oclc_isa_version_1036.bc";

std::vector<std::string> all_names() {
  std::vector<std::string> names(common_files.begin(), common_files.end());
  names.insert(names.end(), {isa_gfx1030, isa_later});
  return names;
}

// Empty: a file is missing or cannot be read.
std::string digest_of(const std::filesystem::path& folder) {
  KeyEncoder contents;
  for (const std::string& name : all_names()) {
    const Result<std::string> bytes = read_whole_file(folder / name, most_file_bytes);
    if (!bytes || bytes->empty()) return {};
    contents.field(name, sha256(*bytes).hex());
  }
  return contents.digest().hex();
}

// Names the files with their sizes and times: while it is the same, so are their contents. Empty: a file is missing.
std::string stamps_of(const std::filesystem::path& folder) {
  std::string stamps = "opencl library:";
  for (const std::string& name : all_names()) {
    const FileStamp stamp = stamp_of((folder / name).string());
    if (stamp.path.empty()) return {};
    stamps += " " + stamp.text;
  }
  return stamps;
}

std::string identity_of_folder(const std::filesystem::path& folder, DriverNotes* notes) {
  const std::string stamps = stamps_of(folder);
  if (stamps.empty() || notes == nullptr) return stamps.empty() ? std::string() : digest_of(folder);
  const std::string note = "opencl library: " + sha256(stamps).hex();
  if (const auto kept = notes->find(note); kept && !kept->empty()) {
    return {reinterpret_cast<const char*>(kept->data()), kept->size()};
  }
  std::string digest = digest_of(folder);
  if (!digest.empty()) notes->keep(note, std::as_bytes(std::span(digest)));
  return digest;
}

}  // namespace

std::vector<std::string> DeviceLibrary::files(Target target) const {
  std::vector<std::string> paths;
  for (const char* const name : common_files) paths.push_back((folder / name).string());
  paths.push_back((folder / (target == Target::gfx1030 ? isa_gfx1030 : isa_later)).string());
  return paths;
}

DeviceLibrary find_device_library(const std::string& wanted, DriverNotes* notes) {
  std::vector<std::filesystem::path> folders;
  if (wanted == "auto") {
    folders.assign(usual_folders.begin(), usual_folders.end());
  } else {
    folders.emplace_back(wanted);
  }
  std::string looked;
  for (const std::filesystem::path& folder : folders) {
    std::string identity = identity_of_folder(folder, notes);
    if (!identity.empty()) return {folder, std::move(identity), {}};
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  return {{}, {}, "not found in " + looked};
}

namespace {

constexpr std::chrono::seconds version_deadline{20};

CompilerPlace place_named(std::string_view name) {
  if (name == "auto") return CompilerPlace::automatic;
  if (name == "in_process") return CompilerPlace::in_process;
  return name == "child" ? CompilerPlace::child : CompilerPlace::invalid;
}

Result<std::unique_ptr<Toolchain>> open_child(const ToolchainSettings& settings, DriverNotes* notes,
                                              DeviceLibrary library) {
  const char* const folders = std::getenv("PATH");
  auto compiler = find_compiler(settings.program, folders == nullptr ? "" : folders);
  if (!compiler) return compiler.error();
  auto version = version_of(*compiler, notes, Deadline::after(version_deadline));
  if (!version) return version.error();
  return std::unique_ptr<Toolchain>(
      std::make_unique<ChildClang>(std::move(*compiler), std::move(*version), std::move(library)));
}

Result<std::unique_ptr<Toolchain>> open_in_process(const ToolchainSettings& settings, DriverNotes* notes,
                                                   DeviceLibrary library) {
  auto clang = InProcessClang::create(settings.module.empty() ? clang_module_path() : settings.module, notes,
                                      std::move(library));
  if (!clang) return clang.error();
  return std::unique_ptr<Toolchain>(std::move(*clang));
}

}  // namespace

std::vector<ConfigKey> toolchain_keys() {
  const ToolchainSettings usual;
  return {{"compiler",
           ConfigType::text,
           std::string("auto"),
           "Where OpenCL C is compiled: 'in_process' by Clang as a library, 'child' by a clang started for every "
           "kernel; 'auto' is in_process where that library is there, else child",
           {},
           {},
           {"auto", "in_process", "child"}},
          {"clang",
           ConfigType::text,
           usual.program,
           "The clang to start: a path, or a name to look for in PATH; one that knows the device's target",
           {},
           {},
           {}},
          {"device_library",
           ConfigType::text,
           usual.library,
           "The folder of OpenCL C's function library as bitcode (Debian: rocm-device-libs); 'auto': where packages "
           "install it",
           {},
           {},
           {}},
          {"compile_timeout",
           ConfigType::integer,
           std::int64_t{usual.deadline.count()},
           "Seconds that compiling one kernel may take; a clang that was started for it is ended then",
           1,
           3600,
           {}}};
}

Result<ToolchainSettings> read_toolchain_settings(const PluginSettings& section) {
  ToolchainSettings settings;
  const auto find = [&section](const char* key) {
    const auto at = section.find(key);
    return at == section.end() ? nullptr : &at->second;
  };
  if (const ConfigValue* const value = find("compiler")) {
    const auto* const name = std::get_if<std::string>(value);
    settings.place = name == nullptr ? CompilerPlace::invalid : place_named(*name);
    if (settings.place == CompilerPlace::invalid) {
      return invalid_argument("compiler: found " + (name == nullptr ? "no text" : "'" + *name + "'") +
                              ", expected auto, in_process or child");
    }
  }
  if (const ConfigValue* const value = find("clang")) {
    const auto* const program = std::get_if<std::string>(value);
    if (program == nullptr || program->empty()) return invalid_argument("clang: expected a path or a name");
    settings.program = *program;
  }
  if (const ConfigValue* const value = find("device_library")) {
    const auto* const folder = std::get_if<std::string>(value);
    if (folder == nullptr || folder->empty()) return invalid_argument("device_library: expected a folder or 'auto'");
    settings.library = *folder;
  }
  if (const ConfigValue* const value = find("compile_timeout")) {
    const auto* const seconds = std::get_if<std::int64_t>(value);
    if (seconds == nullptr || *seconds < 1) return invalid_argument("compile_timeout: expected at least 1 second");
    settings.deadline = std::chrono::seconds(*seconds);
  }
  return settings;
}

Result<std::unique_ptr<Toolchain>> open_toolchain(const ToolchainSettings& settings, DriverNotes* notes, Log log) {
  DeviceLibrary library = find_device_library(settings.library, notes);
  if (!library.present()) {
    log.write(LogLevel::info, "amdgpu_pm4", "OpenCL C's function library is missing: " + library.why_not);
  }
  if (settings.place == CompilerPlace::child) return open_child(settings, notes, std::move(library));
  auto in_process = open_in_process(settings, notes, library);
  if (in_process || settings.place == CompilerPlace::in_process) return in_process;
  log.write(LogLevel::info, "amdgpu_pm4", in_process.error().message + "; a clang is started for every kernel");
  auto child = open_child(settings, notes, std::move(library));
  if (child) return child;
  return unavailable(child.error().message + "; and " + in_process.error().message);
}

}  // namespace kiln::amdgpu_pm4
