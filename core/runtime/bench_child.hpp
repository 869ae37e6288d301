// The child of a bench (kiln/bench.hpp): reads variants line by line (runtime/bench_protocol.hpp), runs each and answers
// with its times.
//
// Thread-safety: main thread.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace kiln {

// Returns the exit status when the input ends. say: sends one whole line and returns whether it was sent.
int bench_child(std::istream& input, const std::function<bool(const std::string&)>& say);

}  // namespace kiln
