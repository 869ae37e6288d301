#include "amdgpu_pm4/toolchain/in_process_clang.hpp"

#include <dlfcn.h>

#include "amdgpu_pm4/toolchain/child_clang.hpp"
#include "amdgpu_pm4/toolchain/clang_module.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::string note_name(const FileStamp& module) { return "opencl compiler in process: " + module.text; }

// A note is three lines: the path and the stamp of Clang's library, and its version. It holds as long as the
// library is the one that told it.
std::optional<std::string> recall(DriverNotes* notes, const FileStamp& module) {
  if (notes == nullptr) return std::nullopt;
  const auto kept = notes->find(note_name(module));
  if (!kept) return std::nullopt;
  const std::string text(reinterpret_cast<const char*>(kept->data()), kept->size());
  const std::size_t first = text.find('\n'), second = first == text.npos ? text.npos : text.find('\n', first + 1);
  if (second == text.npos) return std::nullopt;
  const std::string path = text.substr(0, first), stamp = text.substr(first + 1, second - first - 1);
  if (stamp_of(path).text != stamp) return std::nullopt;
  return text.substr(second + 1);
}

void keep(DriverNotes* notes, const FileStamp& module, const ClangModule& opened) {
  const FileStamp library = stamp_of(opened.library);
  if (notes == nullptr || library.path.empty()) return;
  const std::string text = library.path + "\n" + library.text + "\n" + opened.version;
  notes->keep(note_name(module), std::as_bytes(std::span(text)));
}

}  // namespace

Result<std::unique_ptr<InProcessClang>> InProcessClang::create(const std::filesystem::path& module, DriverNotes* notes,
                                                               DeviceLibrary library) {
  const FileStamp stamp = stamp_of(module.string());
  if (stamp.path.empty()) return unavailable("Clang module " + module.string() + " was not found");
  std::unique_ptr<InProcessClang> clang(new InProcessClang(module, std::move(library)));
  if (auto known = recall(notes, stamp)) {
    clang->version_ = std::move(*known);
    return clang;
  }
  const auto opened = clang->module();
  if (!opened) return opened.error();
  clang->version_ = opened->version;
  keep(notes, stamp, *opened);
  return clang;
}

Result<ClangModule> InProcessClang::module() noexcept {
  const std::lock_guard lock(mutex_);
  if (module_) return *module_;
  auto opened = open_clang_module(path_);
  if (opened) module_ = *opened;
  return opened;
}

Result<Compiled> InProcessClang::compile(const OpenClText& text, Target target, Deadline deadline) noexcept {
  if (target == Target::invalid) return invalid_argument("no target is set, expected one of " + target_names());
  if (deadline.passed()) return timed_out("the deadline passed before the compilation started");
  const auto opened = module();
  if (!opened) return opened.error();
  if (opened->version != version_) {
    return unavailable("Clang library has changed: version is " + std::string(opened->version) + ", expected " +
                       version_);
  }
  const Clock::time_point begin = Clock::now();
  ClangAnswer answer = opened->compile(text.text, arguments_for(text, target));
  if (answer.gave_up) return unavailable("Clang stopped with a fatal error: " + answer.said);
  if (!answer.compiled) {
    return invalid_argument(answer.said.empty() ? "Clang rejected the text without a message" : std::move(answer.said));
  }
  if (deadline.passed()) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(Clock::now() - begin).count();
    return timed_out("Clang timed out after " + std::to_string(seconds) + " s while compiling " + text.name +
                     " ([plugin.amdgpu_pm4] compile_timeout)");
  }
  return Compiled{std::move(answer.object), std::move(answer.said)};
}

namespace {

std::string linker_message() {
  const char* const message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

}  // namespace

std::filesystem::path clang_module_path() {
  Dl_info here{};
  // Any address inside this plugin tells where it was loaded from.
  if (dladdr(reinterpret_cast<const void*>(&clang_module_path), &here) == 0 || here.dli_fname == nullptr) return {};
  std::error_code error;
  const auto plugin = std::filesystem::absolute(here.dli_fname, error);
  return error ? std::filesystem::path() : plugin.parent_path().parent_path() / "libkiln_clang.so";
}

Result<ClangModule> open_clang_module(const std::filesystem::path& path) noexcept {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unavailable("Clang cannot be loaded: " + linker_message());
  const auto describe = reinterpret_cast<DescribeClangFn>(dlsym(library, describe_clang_symbol));
  if (describe == nullptr) return unavailable("Clang module is not of this version of Kiln: " + linker_message());
  ClangModule module{};
  describe(module);
  return module;
}

}  // namespace kiln::amdgpu_pm4
