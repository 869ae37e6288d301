// The main loops of kiln-probe.
//
// The child of a bench (kiln/bench.hpp): reads variants line by line (runtime/child_protocols.hpp), runs each and
// answers with its times.
//
// Thread-safety: main thread.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace kiln {

// Returns the exit status when the input ends. say: sends one whole line and returns whether it was sent.
int bench_child(std::istream& input, const std::function<bool(const std::string&)>& say);

// build_child: the main loop of a child process that builds programs for its parent.
//
// It takes its own rights away (base/os/sandbox.hpp), opens one device of one plugin, then builds one program at a
// time, each with an empty folder for the driver's cache. It ends when the parent closes the pipe or dies.
// Thread-safety: main thread only.

// Reads frames (runtime/child_protocols.hpp) from `input` and writes answers to `output` until the input ends. Returns
// the exit status.
int build_child(int input, int output);

}  // namespace kiln
