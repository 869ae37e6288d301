// libkiln_clang.so: Clang 19 as a library. The same driver that the command runs turns the same arguments into a
// compilation, and what it compiles is in memory alone: of files only the bitcode that the arguments name is read.
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Frontend/Utils.h>
#include <dlfcn.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <csetjmp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/toolchain/clang_module.hpp"

namespace {

using kiln::amdgpu_pm4::ClangAnswer;
using kiln::amdgpu_pm4::ClangModule;

constexpr const char* input_name = "/kernel.cl";

// Where LLVM goes on when it cannot: it would end the process. No frame between here and there is left in order, so
// what a compilation holds is in a Compilation, which outlives those frames.
struct WayOut {
  std::jmp_buf place;
  std::string reason;
};
thread_local WayOut* way_out = nullptr;

void leave(void*, const char* reason, bool) {
  if (way_out == nullptr) return;  // no compilation of ours
  way_out->reason = reason;
  std::longjmp(way_out->place, 1);
}

void prepare_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(leave);
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
  });
}

// The arguments' -mllvm options are LLVM's for the whole process: each compilation has the same ones.
void set_llvm_options(const std::vector<std::string>& options) {
  static std::once_flag once;
  std::call_once(once, [&options] {
    std::vector<const char*> words{"clang"};
    for (const std::string& option : options) words.push_back(option.c_str());
    llvm::cl::ParseCommandLineOptions(static_cast<int>(words.size()), words.data(), "", &llvm::nulls());
  });
}

// One text's way through Clang, and all that it allocates for it.
class Compilation {
 public:
  bool run(std::string_view text, std::span<const std::string> arguments);
  std::string take_said() { return std::move(said_text_); }
  std::span<const std::byte> object() const { return std::as_bytes(std::span(object_.data(), object_.size())); }

 private:
  std::string said_text_;
  llvm::raw_string_ostream said_{said_text_};
  std::vector<const char*> words_{"clang"};
  clang::CreateInvocationOptions how_;
  llvm::SmallVector<char, 0> object_;
  std::unique_ptr<clang::CompilerInstance> compiler_;
  std::unique_ptr<clang::EmitObjAction> action_;  // ends before the compiler that it acts on
};

bool Compilation::run(std::string_view text, std::span<const std::string> arguments) {
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  options->ShowColors = 0;
  options->ShowPresumedLoc = 1;                                                  // lines by the text's own markers
  auto* const printer = new clang::TextDiagnosticPrinter(said_, options.get());  // owned by the engine
  how_.Diags = clang::CompilerInstance::createDiagnostics(options.get(), printer);

  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(new llvm::vfs::InMemoryFileSystem);
  files->addFile(input_name, 0, llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(text.data(), text.size())));
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string& path = arguments[i + 1];
    if (!path.ends_with(".bc")) continue;
    auto contents = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (contents) files->addFile(path, 0, std::move(*contents));  // else the compilation says that it is missing
  }
  how_.VFS = files;
  how_.ProbePrecompiled = false;

  for (const std::string& argument : arguments) words_.push_back(argument.c_str());
  words_.push_back(input_name);
  std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(words_, how_);
  if (invocation == nullptr) return false;
  set_llvm_options(invocation->getFrontendOpts().LLVMArgs);

  compiler_ = std::make_unique<clang::CompilerInstance>();
  compiler_->setInvocation(std::move(invocation));
  compiler_->getFrontendOpts().DisableFree = false;  // the process goes on
  compiler_->setDiagnostics(how_.Diags.get());
  compiler_->createFileManager(files);
  compiler_->setOutputStream(std::make_unique<llvm::raw_svector_ostream>(object_));
  compiler_->setVerboseOutputStream(said_);  // "1 warning generated."
  action_ = std::make_unique<clang::EmitObjAction>();
  return compiler_->ExecuteAction(*action_) && !object_.empty();
}

// Keeps what LLVM gave up on for the life of the process: it stopped in the midst of changing it, so that no destructor
// of it may run. Each has its own context, so the next compilation meets nothing of it.
void abandon(std::unique_ptr<Compilation> compilation) {
  static std::mutex mutex;
  static auto* const abandoned = new std::vector<std::unique_ptr<Compilation>>;  // not destroyed at the end either
  const std::lock_guard lock(mutex);
  abandoned->push_back(std::move(compilation));
}

// Whether `compilation` ran to its end, to `compiled` or not. A function of its own: it alone is returned to twice.
[[gnu::noinline]] bool ran(Compilation& compilation, std::string_view text, std::span<const std::string> arguments,
                           WayOut& out, bool& compiled) {
  if (setjmp(out.place) != 0) return false;
  compiled = compilation.run(text, arguments);
  return true;
}

ClangAnswer compile(std::string_view text, std::span<const std::string> arguments) noexcept {
  prepare_once();
  ClangAnswer answer;
  auto compilation = std::make_unique<Compilation>();
  WayOut out;
  way_out = &out;
  answer.gave_up = !ran(*compilation, text, arguments, out, answer.compiled);
  way_out = nullptr;
  answer.said = compilation->take_said();
  if (answer.gave_up) {
    answer.said += out.reason;
    abandon(std::move(compilation));
  } else {
    answer.object.assign(compilation->object().begin(), compilation->object().end());
  }
  return answer;
}

const char* library_file() {
  Dl_info library{};
  // A function of Clang's own library: where it was loaded from.
  const auto address = reinterpret_cast<const void*>(&clang::getClangFullRepositoryVersion);
  return dladdr(address, &library) == 0 || library.dli_fname == nullptr ? "" : library.dli_fname;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void kiln_describe_clang(ClangModule& module) {
  static const std::string version = clang::getClangFullVersion();
  module.version = version.c_str();
  module.library = library_file();
  module.compile = compile;
}
