// Where the compiler's program is, and which version it is of.
//
// Thread-safety: from any thread. Ownership: values; notes are borrowed for the call.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/status.hpp>

#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {

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

}  // namespace kiln::amdgpu_pm4
