// The child that builds programs for its parent: opens one device of one plugin, then builds what it is asked for, one
// program at a time, each with an empty folder for the driver's own cache.
//
// Thread-safety: main thread. It ends when its parent closes the pipe or dies.
#pragma once

namespace kiln {

// Reads frames (runtime/build_protocol.hpp) from one descriptor and answers on the other, until the input
// ends. The exit status.
int build_child(int input, int output);

}  // namespace kiln
