// build_child: the main loop of a child process that builds programs for its parent.
//
// It takes its own rights away (base/os/sandbox.hpp), opens one device of one plugin, then builds one program at a
// time, each with an empty folder for the driver's cache. It ends when the parent closes the pipe or dies.
// Thread-safety: main thread only.
#pragma once

namespace kiln {

// Reads frames (runtime/build_protocol.hpp) from `input` and writes answers to `output` until the input ends. Returns
// the exit status.
int build_child(int input, int output);

}  // namespace kiln
