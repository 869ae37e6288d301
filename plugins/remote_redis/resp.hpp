// RESP: commands and replies of the Redis protocol, version 2.
//
// The server is not trusted: a reply that is longer or deeper than its limits is an error.
// Thread-safety: one thread at a time for each parser. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::remote_redis {

enum class ReplyKind : std::uint8_t { invalid = 0, text, error, integer, bulk, null, array };

struct Reply {
  ReplyKind kind = ReplyKind::invalid;
  std::string text;            // of text, error and bulk
  std::int64_t integer = 0;    // of integer
  std::vector<Reply> items{};  // of array
};

struct ReplyLimits {
  std::uint64_t bytes = 256ull << 20;  // of a whole reply
  std::size_t items = 2'000'000;       // of all arrays of a reply
};

// A command as an array of bulk strings.
void append_command(std::string& to, std::span<const std::string_view> words);

// Collects bytes of a connection and returns complete replies.
class ReplyParser {
 public:
  explicit ReplyParser(ReplyLimits limits = {}) : limits_(limits) {}

  void add(std::string_view bytes) { buffer_.append(bytes); }
  // nullopt: the next reply is not complete. corrupt: not this protocol, or beyond a limit.
  Result<std::optional<Reply>> next();
  std::size_t unread() const noexcept { return buffer_.size() - at_; }

 private:
  struct OpenArray {
    Reply reply;
    std::size_t missing = 0;  // items
  };

  // Reads one reply without the items of an array. False: more bytes are needed.
  Result<bool> read_one(Reply& reply, std::size_t& count);
  std::optional<std::string_view> line(std::size_t& at) const;
  void drop_read();

  const ReplyLimits limits_;
  std::string buffer_;
  std::size_t at_ = 0;            // of the next byte that was not read
  std::vector<OpenArray> open_;   // arrays whose items are not complete, outermost first
  std::size_t items_ = 0;         // of all open arrays
  std::uint64_t read_bytes_ = 0;  // of the reply that is not complete
};

}  // namespace kiln::remote_redis
