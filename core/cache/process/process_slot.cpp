#include "cache/process/process_slot.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t word_bytes = 9;  // "building " and "loading  "
constexpr std::size_t digest_digits = 64;
constexpr std::size_t seconds_at = word_bytes + digest_digits + 1;
constexpr std::string_view process_word = "process ";

std::string_view word_of(Doing doing) noexcept { return doing == Doing::loading ? "loading  " : "building "; }

Doing doing_of(std::string_view word) noexcept {
  if (word == word_of(Doing::loading)) return Doing::loading;
  return word == word_of(Doing::building) ? Doing::building : Doing::invalid;
}

void put_hex(char* to, const Digest& digest) noexcept {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::uint8_t byte : digest.bytes) {
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
  }
}

template <class Number>
std::optional<Number> number_at(std::string_view text, std::size_t at) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

MarkText no_mark() noexcept {
  MarkText text;
  text.fill(' ');
  text.back() = '\n';
  return text;
}

MarkText encode_mark(const ProcessMark& mark) noexcept {
  MarkText text = no_mark();
  std::memcpy(text.data(), word_of(mark.doing).data(), word_bytes);
  put_hex(text.data() + word_bytes, mark.digest);
  std::to_chars(text.data() + seconds_at, text.data() + text.size() - 1, mark.since_s);
  return text;
}

std::optional<ProcessMark> decode_mark(std::string_view text) noexcept {
  if (text.size() != mark_bytes) return std::nullopt;
  const Doing doing = doing_of(text.substr(0, word_bytes));
  const auto digest = Digest::from_hex(text.substr(word_bytes, digest_digits));
  const auto since = number_at<std::int64_t>(text, seconds_at);
  if (doing == Doing::invalid || !digest || !since) return std::nullopt;
  return ProcessMark{doing, *digest, *since};
}

std::string encode_slot(long pid, std::int64_t since_s) {
  std::string slot(slot_bytes, ' ');
  if (pid > 0) {
    const std::string header = std::string(process_word) + std::to_string(pid) + " since " + std::to_string(since_s);
    slot.replace(0, header.size(), header);
  }
  slot[slot_header_bytes - 1] = '\n';
  for (std::size_t mark = 1; mark <= marks_per_slot; ++mark) slot[slot_header_bytes + mark * mark_bytes - 1] = '\n';
  return slot;
}

std::optional<long> pid_of_slot(std::string_view slot) noexcept {
  if (slot.size() < slot_header_bytes || !slot.starts_with(process_word)) return std::nullopt;
  return number_at<long>(slot.substr(0, slot_header_bytes), process_word.size());
}

std::vector<ProcessMark> marks_of_slot(std::string_view slot) {
  std::vector<ProcessMark> marks;
  for (std::size_t at = slot_header_bytes; at + mark_bytes <= std::min(slot.size(), slot_bytes); at += mark_bytes) {
    if (const auto mark = decode_mark(slot.substr(at, mark_bytes))) marks.push_back(*mark);
  }
  return marks;
}

}  // namespace kiln
