// libkiln_clang.so: Clang 19 as a library. The same driver that the command runs turns the same arguments into a
// compilation, and what it compiles is in memory alone: no file is read and none is written.
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Frontend/Utils.h>
#include <dlfcn.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <csetjmp>
#include <memory>
#include <mutex>

#include "amdgpu_pm4/toolchain/in_process/clang_module.hpp"

namespace {

using kiln::amdgpu_pm4::ClangAnswer;
using kiln::amdgpu_pm4::ClangModule;

constexpr const char* input_name = "/kernel.cl";

// Where LLVM goes on when it cannot: it would end the process. What the compilation had allocated is lost then, and
// nothing else: each has its own context.
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

void compile_into(ClangAnswer& answer, std::string_view text, std::span<const std::string> arguments) {
  llvm::raw_string_ostream said(answer.said);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  options->ShowColors = 0;
  options->ShowPresumedLoc = 1;                                                 // lines by the text's own markers
  auto* const printer = new clang::TextDiagnosticPrinter(said, options.get());  // owned by the engine
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> diagnostics =
      clang::CompilerInstance::createDiagnostics(options.get(), printer);

  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(new llvm::vfs::InMemoryFileSystem);
  files->addFile(input_name, 0, llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(text.data(), text.size())));

  std::vector<const char*> words{"clang"};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  words.push_back(input_name);
  clang::CreateInvocationOptions how;
  how.Diags = diagnostics;
  how.VFS = files;
  how.ProbePrecompiled = false;
  std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(words, how);
  if (invocation == nullptr) return;

  llvm::SmallVector<char, 0> object;
  {
    clang::CompilerInstance compiler;
    compiler.setInvocation(std::move(invocation));
    compiler.getFrontendOpts().DisableFree = false;  // the process goes on
    compiler.setDiagnostics(diagnostics.get());
    compiler.createFileManager(files);
    compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(object));
    compiler.setVerboseOutputStream(said);  // "1 warning generated."
    clang::EmitObjAction action;
    answer.compiled = compiler.ExecuteAction(action) && !object.empty();
  }
  said.flush();
  const auto* const bytes = reinterpret_cast<const std::byte*>(object.data());
  answer.object.assign(bytes, bytes + object.size());
}

ClangAnswer compile(std::string_view text, std::span<const std::string> arguments) noexcept {
  prepare_once();
  ClangAnswer answer;
  WayOut out;
  way_out = &out;
  if (setjmp(out.place) == 0) {
    compile_into(answer, text, arguments);
  } else {
    answer.compiled = false;
    answer.gave_up = true;
    answer.said += out.reason;
  }
  way_out = nullptr;
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
