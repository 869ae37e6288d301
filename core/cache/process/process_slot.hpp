// The text of one slot of the file `processes`: which process has it, and what it is doing with which program.
//
// Thread-safety: pure. Ownership: values. Text of a fixed width, so that people can read the file and a process can
// overwrite one mark without touching another:
//
//   header  "process PID since SECONDS", blanks, newline                                            (128 bytes)
//   marks   20 times "loading  DIGEST SECONDS" or "building DIGEST SECONDS" or nothing, blanks, newline (96 each)
// Seconds are since 1970. Bytes that are no such text stand for nothing: whoever can write them is this user.
#pragma once

#include <kiln/digest.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr const char* processes_name = "processes";
inline constexpr std::size_t slot_header_bytes = 128;
inline constexpr std::size_t mark_bytes = 96;
inline constexpr std::size_t marks_per_slot = 20;
inline constexpr std::size_t slot_bytes = slot_header_bytes + marks_per_slot * mark_bytes;  // 2048

enum class Doing : std::uint8_t {
  invalid = 0,
  loading,   // its driver was given the stored bytes and has not answered yet
  building,  // it holds the lease
};

struct ProcessMark {
  Doing doing = Doing::invalid;
  Digest digest;
  std::int64_t since_s = 0;
};

using MarkText = std::array<char, mark_bytes>;

MarkText encode_mark(const ProcessMark& mark) noexcept;
MarkText no_mark() noexcept;
std::optional<ProcessMark> decode_mark(std::string_view text) noexcept;

// A whole slot without marks. pid 0: nobody's.
std::string encode_slot(long pid, std::int64_t since_s);
std::optional<long> pid_of_slot(std::string_view slot) noexcept;
std::vector<ProcessMark> marks_of_slot(std::string_view slot);

}  // namespace kiln
