// Sandbox: takes rights from this process for good, before it runs a compiler on code that may be hostile.
//
// Afterwards the process reads only the given files and the system's own: libraries, GPU device nodes, /sys, and of /proc
// its own folder and facts of the machine. It writes only to the given folders, and cannot open sockets, start processes,
// or signal, trace or read other processes. It keeps its memory, threads and open descriptors. Metadata of files (stat) stays visible.
// Thread-safety: call it before the process has other threads: those would keep their access to files.
//
//   SandboxRules rules;
//   rules.readable = {"/home/u/mesa/lib/libgallium.so"};
//   rules.writable = {scratch};
//   for (const std::string& gap : enter_sandbox(rules)) report(gap);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

struct SandboxRules {
  // Files and folders beside those of the system. Missing ones are ignored.
  std::vector<std::filesystem::path> readable;
  std::vector<std::filesystem::path> writable;
  // Not readable, even below a folder of the system: the user's home, the signing key.
  std::vector<std::filesystem::path> hidden;
};

// Returns what the kernel does not enforce, with the reason; empty: everything is enforced.
std::vector<std::string> enter_sandbox(const SandboxRules& rules);

}  // namespace kiln
