// read_text_file: a whole configuration, or why not. A pipe and a device are read too, so that it may come from
// /dev/stdin.
//
// Thread-safety: any thread. Ownership: the answer owns the text.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace kiln::config {

inline constexpr std::size_t most_text_bytes = 4u << 20u;

// not_found, io or invalid_argument (a folder, a pipe without a writer, or more than most_text_bytes). The message does
// not repeat the path.
Result<std::string> read_text_file(const std::filesystem::path& path);

}  // namespace kiln::config
