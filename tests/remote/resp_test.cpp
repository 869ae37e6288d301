// Commands and replies of Redis, and the addresses of its servers: literal bytes on both sides of every limit.
#include "resp.hpp"
#include "connection.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using namespace remote_redis;

Result<std::optional<Reply>> read(const std::string& bytes, ReplyLimits limits = {}) {
  ReplyParser parser(limits);
  parser.add(bytes);
  return parser.next();
}

std::string fault_of(const std::string& bytes, ReplyLimits limits = {}) {
  const auto reply = read(bytes, limits);
  return reply ? "none" : reply.error().text();
}

bool is_incomplete(const std::string& bytes, ReplyLimits limits = {}) {
  const auto reply = read(bytes, limits);
  return reply && !*reply;
}

TEST_CASE("resp: a command is an array of bulk strings") {
  std::string bytes = "before";
  append_command(bytes, std::vector<std::string_view>{"SET", "", std::string_view("a\0\r\n", 4)});
  append_command(bytes, std::vector<std::string_view>{"PING"});
  CHECK(bytes == "before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n" + std::string("a\0\r\n", 4) + "\r\n*1\r\n$4\r\nPING\r\n");
}

TEST_CASE("resp: each kind of reply") {
  struct Case {
    std::string bytes;
    ReplyKind kind;
    std::string text;
    std::int64_t integer;
  };
  for (const Case& one : {
           Case{"+OK\r\n", ReplyKind::text, "OK", 0},
           Case{"+\r\n", ReplyKind::text, "", 0},
           Case{"-ERR no\r\n", ReplyKind::error, "ERR no", 0},
           Case{":42\r\n", ReplyKind::integer, "", 42},
           Case{":-1\r\n", ReplyKind::integer, "", -1},
           Case{":-7\r\n", ReplyKind::integer, "", -7},
           Case{":9223372036854775807\r\n", ReplyKind::integer, "", INT64_MAX},
           Case{"$0\r\n\r\n", ReplyKind::bulk, "", 0},
           Case{"$4\r\na\r\nb\r\n", ReplyKind::bulk, "a\r\nb", 0},
           Case{"$-1\r\n", ReplyKind::null, "", -1},
           Case{"*-1\r\n", ReplyKind::null, "", -1},
           Case{"*0\r\n", ReplyKind::array, "", 0},
       }) {
    INFO(one.bytes);
    const auto reply = read(one.bytes);
    REQUIRE(reply);
    REQUIRE(*reply);
    CHECK((*reply)->kind == one.kind);
    CHECK((*reply)->text == one.text);
    CHECK((*reply)->integer == one.integer);
    CHECK((*reply)->items.empty());
  }
}

TEST_CASE("resp: what is cut off is not complete") {
  for (const std::string bytes : {"", "+", "+OK", "+OK\r", ":4\r", "$3", "$3\r\n", "$3\r\nab", "$3\r\nabc",
                                  "$3\r\nabc\r", "*1\r\n", "*2\r\n:1\r\n"}) {
    INFO(bytes);
    CHECK(is_incomplete(bytes));
  }
}

TEST_CASE("resp: what is no reply") {
  struct Case {
    std::string bytes, fault;
  };
  for (const Case& one : {
           Case{"\r\n", "corrupt: reply is an empty line"},
           Case{"!5\r\n", "corrupt: not a RESP 2 reply: first byte is 33"},
           Case{"%2\r\n", "corrupt: not a RESP 2 reply: first byte is 37"},
           Case{"\xff"
                "1\r\n",
                "corrupt: not a RESP 2 reply: first byte is 255"},
           Case{":\r\n", "corrupt: not a RESP 2 reply: first byte is 58"},
           Case{":1x\r\n", "corrupt: not a RESP 2 reply: first byte is 58"},
           Case{":9223372036854775808\r\n", "corrupt: not a RESP 2 reply: first byte is 58"},
           Case{"$x\r\n", "corrupt: not a RESP 2 reply: first byte is 36"},
           Case{"$-2\r\n", "corrupt: reply has -2 bytes or items, expected 0 to 268435456"},
           Case{"*-2\r\n", "corrupt: reply has -2 bytes or items, expected 0 to 268435456"},
           Case{"$3\r\nabcde", "corrupt: bulk reply does not end with CR LF"},
           Case{"$3\r\nabc\rx", "corrupt: bulk reply does not end with CR LF"},
       }) {
    INFO(one.bytes);
    CHECK(fault_of(one.bytes) == one.fault);
  }
}

TEST_CASE("resp: a line has 65536 bytes at most, complete or not") {
  const std::string longest = "+" + std::string(65535, 'x');
  const std::string fault = "corrupt: reply has a line of more than 65536 bytes";
  CHECK(is_incomplete(longest));
  CHECK(fault_of(longest + "\r\n") == "none");
  CHECK(fault_of(longest + "x") == fault);
  CHECK(fault_of(longest + "x\r\n") == fault);
}

TEST_CASE("resp: the bytes of a reply") {
  const ReplyLimits limits{.bytes = 12, .items = 5};
  CHECK(fault_of("$6\r\nabcdef\r\n", limits) == "none");  // 12 bytes
  CHECK(fault_of("$7\r\nabcdefg\r\n", limits) == "corrupt: reply has more than 12 bytes");
  CHECK(fault_of("*2\r\n:1\r\n:2\r\n", limits) == "none");  // 12 bytes
  CHECK(fault_of("*2\r\n:1\r\n:23\r\n", limits) == "corrupt: reply has more than 12 bytes");
  CHECK(is_incomplete("$12\r\n", limits));
  CHECK(fault_of("$13\r\n", limits) == "corrupt: reply has 13 bytes or items, expected 0 to 12");
  // The limit is of each reply.
  ReplyParser parser(limits);
  parser.add("$6\r\nabcdef\r\n$6\r\nabcdef\r\n:1\r\n");
  for (int i = 0; i < 3; ++i) {
    const auto reply = parser.next();
    REQUIRE(reply);
    CHECK(*reply);
  }
}

TEST_CASE("resp: the items and the depth of a reply") {
  const ReplyLimits limits{.bytes = 1000, .items = 4};
  const std::string four = "*2\r\n*2\r\n:1\r\n:2\r\n:3\r\n";
  ReplyParser parser(limits);
  parser.add(four + four);
  for (int i = 0; i < 2; ++i) {  // the limit is of each reply
    const auto reply = parser.next();
    REQUIRE(reply);
    REQUIRE(*reply);
    REQUIRE((*reply)->items.size() == 2);
    REQUIRE((*reply)->items[0].items.size() == 2);
    CHECK((*reply)->items[0].items[1].integer == 2);
    CHECK((*reply)->items[1].integer == 3);
  }
  CHECK(parser.unread() == 0);
  CHECK(fault_of("*2\r\n*3\r\n", limits) ==
        "corrupt: reply has 5 items in 2 levels, expected at most 4 items in 4 levels");
  const std::string deepest = "*1\r\n*1\r\n*1\r\n*1\r\n";
  CHECK(fault_of(deepest + ":1\r\n", limits) == "none");
  CHECK(fault_of(deepest + "*1\r\n:1\r\n", {}) ==
        "corrupt: reply has 5 items in 5 levels, expected at most 2000000 items in 4 levels");
}

TEST_CASE("redis address: every part, with its default") {
  struct Case {
    std::string url, host, port, database;
    bool tls;
  };
  for (const Case& one : {
           Case{"redis://h", "h", "6379", "0", false},
           Case{"redis://h/", "h", "6379", "0", false},
           Case{"redis://h/7", "h", "6379", "7", false},
           Case{"redis://cache.example:1/12345", "cache.example", "1", "12345", false},
           Case{"rediss://h:65535", "h", "65535", "0", true},
           Case{"rediss://h:9090/9", "h", "9090", "9", true},
           Case{"redis://[::1]", "::1", "6379", "0", false},
           Case{"redis://[fe80::2]:6380/2", "fe80::2", "6380", "2", false},
       }) {
    INFO(one.url);
    const auto address = address_of(one.url);
    REQUIRE(address);
    CHECK(address->host == one.host);
    CHECK(address->port == one.port);
    CHECK(address->database == one.database);
    CHECK(address->tls == one.tls);
  }
  for (const std::string url : {"", "redis:h", "h:1", "redis://", "redis:///1", "redis://:1",
                                "redis://h:", "redis://h:1:", "redis://h:1-", "redis://h:123456", "redis://h/123456",
                                "redis://h/1/2", "redis://[::1", "redis://[]:1", "redis://[::1]:", "redis://[::1]:x",
                                "redis://[::1]x", "redis://[::1]x:1"}) {
    INFO(url);
    const auto address = address_of(url);
    REQUIRE(!address);
    CHECK(address.error().text() == "invalid_argument: remote " + url +
                                        ": expected redis://HOST:PORT/DATABASE, such as redis://cache.example:6379/0");
  }
}

}  // namespace
}  // namespace kiln::test
