// Toolchain: OpenCL C to code objects, with the arguments and the device library that compilations use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {

// DeviceLibrary: OpenCL C's built-in functions as LLVM bitcode (AMD's device libraries, Debian: rocm-device-libs). A
// text that calls one of them is linked with it; only what it calls becomes part of the code object.
//
// Thread-safety: pure functions and values. Ownership: owns its texts; the files are read by the compiler.
struct DeviceLibrary {
  std::filesystem::path folder;
  std::string identity;  // a digest of its files' contents, for programs' keys; empty: there is no library
  std::string why_not;   // where there is none: what was looked for

  bool present() const noexcept { return !identity.empty(); }
  // In the order in which they are linked.
  std::vector<std::string> files(Target target) const;
};

// `wanted`: a folder, or "auto": the first of the usual folders that has every file. `notes` may be null; they spare
// the next process reading the files for their digest.
DeviceLibrary find_device_library(const std::string& wanted, DriverNotes* notes);

// Toolchain: a compiler from OpenCL C to AMD code objects, and compile_kernel(), the way from a KernelSource to one.
//
// Thread-safety: every method from any thread, also from several at once. Ownership: texts and bytes are copied.
// What comes out depends on the compiler's version, the prelude, the arguments and the device library, and on nothing
// else of the machine: no headers, no configuration files, no environment. identity_of() names all four, for keys.

struct Compiled {
  std::vector<std::byte> object;
  std::string said;  // the compiler's warnings, behind the text's own; usually empty
};

class Toolchain {
 public:
  explicit Toolchain(DeviceLibrary library) : library_(std::move(library)) {}
  Toolchain(const Toolchain&) = delete;
  Toolchain& operator=(const Toolchain&) = delete;
  virtual ~Toolchain();

  // As the compiler itself says: "Debian clang version 19.1.7 (3~deb12u1)".
  virtual const std::string& version() const noexcept = 0;
  // `text` is complete, as assemble() writes it. invalid_argument: the compiler refuses it; the message is all that it
  // said. unavailable: the compiler cannot be started, crashed or answered something else. timeout: the deadline
  // passed.
  virtual Result<Compiled> compile(const OpenClText& text, Target target, Deadline deadline) noexcept = 0;

  const DeviceLibrary& library() const noexcept { return library_; }

 protected:
  // Those of the command for this text: with the library where it calls it and the library is present.
  std::vector<std::string> arguments_for(const OpenClText& text, Target target) const;

 private:
  const DeviceLibrary library_;
};

// Compiles; again with the library where something is undeclared without it. Says where a library that is missing may
// be the reason of an error.
Result<Compiled> compile_text(Toolchain& toolchain, const OpenClText& text, Target target, Deadline deadline) noexcept;

// One line for a program's key.
std::string identity_of(const Toolchain& toolchain);

// invalid_argument: what kernel `entry` calls calls itself. Neither LLVM nor the device knows how deep that goes, so
// the stack would run over. `name` as below.
Status check_calls(const KernelSource& source, std::string_view entry, std::string_view name);

// Assembles, compiles, and reads what came out. `name` stands in the compiler's messages. invalid_argument also where
// the object has no kernel source.entry ("main" means the only one there is), naming those it has, and where functions
// call themselves.
Result<Compiled> compile_kernel(Toolchain& toolchain, const KernelSource& source, std::string_view name, Target target,
                                Deadline deadline) noexcept;

// The arguments that decide which code Clang writes.
//
// Thread-safety: a pure function. Ownership: values.

// Without input and output. REQUIRES: target is not invalid.
std::vector<std::string> clang_arguments(Target target);
// Those that link a text with the library as well.
std::vector<std::string> clang_arguments(Target target, const DeviceLibrary& library);

// The compiler of this machine.

// open_toolchain(): the compiler of this machine, as [plugin.amdgpu_pm4] asks for it.
//
// Thread-safety: from any thread. Ownership: the caller owns what is made; notes and log outlive it.
// Automatic: Clang as a library where its module and the library are there, else a clang started for every kernel. Both
// get the same arguments and the same text, so that programs built by one are found by the other.

enum class CompilerPlace : std::uint8_t { invalid = 0, automatic, in_process, child };

struct ToolchainSettings {
  CompilerPlace place = CompilerPlace::automatic;
  std::string program = "clang-19";   // for the child: a path, or a name to look for in PATH
  std::chrono::seconds deadline{60};  // of one kernel
  std::filesystem::path module;       // Clang's module; empty: beside the plugin
  std::string library = "auto";       // the device library's folder; "auto": where packages install it
};

std::vector<ConfigKey> toolchain_keys();
// invalid_argument names the key and its value.
Result<ToolchainSettings> read_toolchain_settings(const PluginSettings& section);

// unavailable: no compiler, with everything that was looked for. notes may be null: then versions are asked anew.
Result<std::unique_ptr<Toolchain>> open_toolchain(const ToolchainSettings& settings, DriverNotes* notes, Log log);

}  // namespace kiln::amdgpu_pm4
