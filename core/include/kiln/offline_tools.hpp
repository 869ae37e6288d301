// Offline tools: plugin interfaces without a device, namely an ahead-of-time compiler and a printer of command streams.
//
// Plugins register them by name; `kernel build` and `pm4 dump` use them.
// Thread-safety: each object from one thread at a time. Ownership: the creator owns the object and destroys it before
// the Registry.
//
//   auto program = compiler.compile({.text = text, .file = "blur.cl", .target = "gfx1100"});
//   if (!program) return program.error();  // has the compiler's log
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
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

namespace [[gnu::visibility("default")]] kiln {

// Arguments of both factories.
struct OfflineContext {
  Log log;
  PluginSettings settings;  // the checked [plugin.NAME] section, defaults filled in
};

struct AheadSource {
  std::string text;
  std::string file;                     // name in messages
  std::string target;                   // one of AheadCompiler::targets()
  std::vector<std::string> includes{};  // as in UserKernelSpec
};

struct AheadKernel {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // properties in display order: "VGPRs", "24"
};

struct AheadProgram {
  ProgramBinary binary;
  std::string extension;  // file name extension: "co"
  std::vector<AheadKernel> kernels;
};

class AheadCompiler {
 public:
  AheadCompiler() = default;
  AheadCompiler(const AheadCompiler&) = delete;
  AheadCompiler& operator=(const AheadCompiler&) = delete;
  virtual ~AheadCompiler();

  virtual std::vector<std::string> targets() const = 0;  // such as "gfx1100"
  // invalid_argument: the source does not compile; the error has the complete log of the compiler. unavailable: no compiler
  // was found; the error has the searched names.
  virtual Result<AheadProgram> compile(const AheadSource& source) noexcept = 0;
  // Opens a device that builds, loads and serializes programs for all devices of the target, with the same keys. It has no
  // buffers and runs only empty grids. unsupported: keys for the target need a real device.
  virtual Result<std::unique_ptr<Device>> open(const std::string& target) noexcept;
};

class StreamPrinter {
 public:
  StreamPrinter() = default;
  StreamPrinter(const StreamPrinter&) = delete;
  StreamPrinter& operator=(const StreamPrinter&) = delete;
  virtual ~StreamPrinter();

  // Accepts any bytes and prints unknown commands as unknown. target: the device, such as "gfx1030"; empty: the newest known
  // device. invalid_argument: impossible stream size, or unknown target.
  virtual Result<std::string> print(std::span<const std::byte> stream, std::string_view target) noexcept = 0;
};

using AheadCompilerFactory = std::function<Result<std::unique_ptr<AheadCompiler>>(const OfflineContext&)>;
using StreamPrinterFactory = std::function<Result<std::unique_ptr<StreamPrinter>>(const OfflineContext&)>;

}  // namespace kiln
