// The compiler of this machine.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <kiln/config.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/log.hpp>

#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

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
