// read_text_file: a whole small text file, or why not.
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

// streams: pipes and devices too, so that a configuration may come from /dev/stdin.
enum class FileKinds : std::uint8_t { invalid = 0, regular, streams };

// not_found, io or invalid_argument (the wrong kind, or more than most_text_bytes). The message does not repeat the
// path.
Result<std::string> read_text_file(const std::filesystem::path& path, FileKinds kinds);

}  // namespace kiln::config
