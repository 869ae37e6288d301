// Clang as a child process, and where it is found.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <kiln/clock.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/status.hpp>

#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

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
