#include "resp.hpp"

#include <charconv>

namespace kiln::remote_redis {
namespace {

constexpr unsigned most_depth = 4;
constexpr std::size_t most_line = 64 << 10;

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void append_command(std::string& to, std::span<const std::string_view> words) {
  to += "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    to += "$" + std::to_string(word.size()) + "\r\n";
    to += word;
    to += "\r\n";
  }
}

std::optional<std::string_view> ReplyParser::line(std::size_t& at) const {
  const std::size_t end = buffer_.find("\r\n", at);
  if (end == std::string::npos) return std::nullopt;
  const std::string_view text = std::string_view(buffer_).substr(at, end - at);
  at = end + 2;
  return text;
}

Result<bool> ReplyParser::read_one(Reply& reply, std::size_t& count) {
  std::size_t at = at_;
  const auto first = line(at);
  if (!first) {
    if (unread() > most_line) return corrupt("reply has a line of more than 65536 bytes");
    return false;
  }
  if (first->size() > most_line) return corrupt("reply has a line of more than 65536 bytes");
  if (first->empty()) return corrupt("reply is an empty line");
  const char kind = first->front();
  const std::string_view rest = first->substr(1);
  if (kind == '+' || kind == '-') {
    reply.kind = kind == '+' ? ReplyKind::text : ReplyKind::error;
    reply.text = rest;
    at_ = at;
    return true;
  }
  const auto number = integer_of(rest);
  if (!number || (kind != ':' && kind != '$' && kind != '*')) {
    return corrupt("not a RESP 2 reply: first byte is " + std::to_string(static_cast<unsigned char>(kind)));
  }
  if (kind == ':' || *number == -1) {
    reply.kind = kind == ':' ? ReplyKind::integer : ReplyKind::null;
    reply.integer = *number;
    at_ = at;
    return true;
  }
  if (*number < 0 || static_cast<std::uint64_t>(*number) > limits_.bytes) {
    return corrupt("reply has " + std::to_string(*number) + " bytes or items, expected 0 to " +
                   std::to_string(limits_.bytes));
  }
  const auto size = static_cast<std::size_t>(*number);
  if (kind == '*') {
    reply.kind = ReplyKind::array;
    count = size;
    at_ = at;
    return true;
  }
  if (buffer_.size() - at < size + 2) return false;
  if (buffer_.compare(at + size, 2, "\r\n") != 0) return corrupt("bulk reply does not end with CR LF");
  reply.kind = ReplyKind::bulk;
  reply.text.assign(buffer_, at, size);
  at_ = at + size + 2;
  return true;
}

void ReplyParser::drop_read() {
  constexpr std::size_t worth_moving = 256 << 10;
  if (at_ != buffer_.size() && at_ < worth_moving) return;
  buffer_.erase(0, at_);
  at_ = 0;
}

Result<std::optional<Reply>> ReplyParser::next() {
  while (true) {
    Reply reply;
    std::size_t count = 0;
    const std::size_t before = at_;
    const auto complete = read_one(reply, count);
    if (!complete) return complete.error();
    read_bytes_ += at_ - before;
    if (read_bytes_ > limits_.bytes) {
      return corrupt("reply has more than " + std::to_string(limits_.bytes) + " bytes");
    }
    if (!*complete) {
      drop_read();
      return std::optional<Reply>();
    }
    if (count != 0) {
      items_ += count;
      if (items_ > limits_.items || open_.size() == most_depth) {
        return corrupt("reply has " + std::to_string(items_) + " items in " + std::to_string(open_.size() + 1) +
                       " levels, expected at most " + std::to_string(limits_.items) + " items in " +
                       std::to_string(most_depth) + " levels");
      }
      open_.push_back({std::move(reply), count});
      continue;
    }
    while (!open_.empty()) {
      open_.back().reply.items.push_back(std::move(reply));
      if (--open_.back().missing != 0) break;
      reply = std::move(open_.back().reply);
      open_.pop_back();
    }
    if (!open_.empty()) continue;
    items_ = 0;
    read_bytes_ = 0;
    drop_read();
    return std::optional(std::move(reply));
  }
}

}  // namespace kiln::remote_redis
