// DeviceLibrary: OpenCL C's built-in functions as LLVM bitcode (AMD's device libraries, Debian: rocm-device-libs). A
// text that calls one of them is linked with it; only what it calls becomes part of the code object.
//
// Thread-safety: pure functions and values. Ownership: owns its texts; the files are read by the compiler.
#pragma once

#include <kiln/driver_notes.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

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

}  // namespace kiln::amdgpu_pm4
