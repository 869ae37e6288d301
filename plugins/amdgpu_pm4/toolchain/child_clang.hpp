// run_child(): another program, run with bytes on its standard input, for its output and what it says.
//
// Thread-safety: from any thread, also several at once. Ownership: values; no process and no descriptor outlives a
// call. Started by posix_spawn in a process group of its own, with PATH, LD_LIBRARY_PATH and LC_ALL=C as its whole
// environment. What is still running at the deadline, or has written more than is allowed, is killed with its group.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

struct ChildRequest {
  std::string program;  // a path
  std::vector<std::string> arguments;
  std::span<const std::byte> input;
  std::size_t most_output = std::size_t{64} << 20;  // more is an error
  std::size_t most_said = std::size_t{1} << 20;     // more is left out, and that is said
  Deadline deadline;
};

struct ChildResult {
  int exit_code = 0;
  int signal = 0;  // that ended it; 0: it exited
  std::vector<std::byte> output;
  std::string said;  // on standard error
};

// unavailable: it cannot be started, with the system's reason, or it wrote more than most_output. timeout: the deadline
// passed; the message ends with what it had said.
Result<ChildResult> run_child(const ChildRequest& request) noexcept;

// Clang as a child process, and where it is found.

// Where the compiler's program is, and which version it is of.
//
// Thread-safety: from any thread. Ownership: values; notes are borrowed for the call.

struct FileStamp {  // changes whenever the file is another
  std::string path;
  std::string text;  // path, size, time and number of the file, in one line
};

// With an empty path where there is no such file.
FileStamp stamp_of(const std::string& path);

// `wanted` is a path, or a name that is looked for in the folders of `path_list`; relative ones among them are left
// out. unavailable, naming what was looked for and where.
Result<FileStamp> find_compiler(const std::string& wanted, std::string_view path_list);

// The first line of what it answers to --version. Kept in the notes under the file's stamp, so that later processes
// need not start it. unavailable: it answers nothing of the kind, or not by the deadline.
Result<std::string> version_of(const FileStamp& compiler, DriverNotes* notes, Deadline deadline);

// ChildClang: the Toolchain that starts a clang for every kernel. A compiler that crashes or hangs takes nothing with
// it.
//
// Thread-safety: as Toolchain. Ownership: owns nothing between calls.
class ChildClang final : public Toolchain {
 public:
  ChildClang(FileStamp compiler, std::string version, DeviceLibrary library)
      : Toolchain(std::move(library)), compiler_(std::move(compiler)), version_(std::move(version)) {}

  const std::string& version() const noexcept override { return version_; }
  Result<Compiled> compile(const OpenClText& text, Target target, Deadline deadline) noexcept override;

 private:
  const FileStamp compiler_;
  const std::string version_;
};

}  // namespace kiln::amdgpu_pm4
