// What a plugin can do for people without a device: compile a kernel ahead of time (AheadCompiler), and put a stream of
// commands into words (StreamPrinter). Registered by name; the command's verbs `kernel build` and `pm4 dump` use them.
//
// Thread-safety: each object by one thread at a time. Ownership: who makes one owns it; it dies before the Registry.
#pragma once

#include <kiln/config.hpp>
#include <kiln/log.hpp>
#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

// What the makers of both are given.
struct OfflineContext {
  Log log;
  PluginSettings settings;  // the checked [plugin.NAME] section, defaults filled in
};

struct AheadSource {
  std::string text;
  std::string file;                     // its name in messages
  std::string target;                   // one of AheadCompiler::targets()
  std::vector<std::string> includes{};  // as UserKernelSpec has them
};

struct AheadKernel {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // in words, in the order to show them: "VGPRs", "24"
};

struct AheadProgram {
  ProgramBinary binary;
  std::string extension;  // what files of such bytes are called: "co"
  std::vector<AheadKernel> kernels;
};

class AheadCompiler {
 public:
  AheadCompiler() = default;
  AheadCompiler(const AheadCompiler&) = delete;
  AheadCompiler& operator=(const AheadCompiler&) = delete;
  virtual ~AheadCompiler();

  virtual std::vector<std::string> targets() const = 0;  // "gfx1100"
  // invalid_argument holds the compiler's whole log. unavailable: there is no compiler, with what was looked for.
  virtual Result<AheadProgram> compile(const AheadSource& source) noexcept = 0;
};

class StreamPrinter {
 public:
  StreamPrinter() = default;
  StreamPrinter(const StreamPrinter&) = delete;
  StreamPrinter& operator=(const StreamPrinter&) = delete;
  virtual ~StreamPrinter();

  // Any bytes: what is not known is said to be unknown. target: whose stream it is, as "gfx1030"; empty: the newest
  // known. invalid_argument: no stream at all, as of a size that none has; no such target.
  virtual Result<std::string> print(std::span<const std::byte> stream, std::string_view target) noexcept = 0;
};

using AheadCompilerFactory = std::function<Result<std::unique_ptr<AheadCompiler>>(const OfflineContext&)>;
using StreamPrinterFactory = std::function<Result<std::unique_ptr<StreamPrinter>>(const OfflineContext&)>;

}  // namespace kiln
