// read_input: the bytes of a file that a verb is about.
//
// Thread-safety: any thread. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <string>

namespace kiln::host {

// invalid_argument names the file and why it cannot be read, or both sizes where it has more than most_bytes.
Result<std::string> read_input(const std::string& file, std::uint64_t most_bytes);

}  // namespace kiln::host
