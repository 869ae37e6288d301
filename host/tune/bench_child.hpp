// The child of `kiln tune`: reads variants from standard input, runs each, answers with its times.
//
// Thread-safety: main thread. `say` takes one whole line and answers whether it was sent.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace kiln::host {

// Until the input ends. The exit status.
int bench_child(std::istream& input, const std::function<bool(const std::string&)>& say);

}  // namespace kiln::host
