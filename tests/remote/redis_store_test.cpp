// The Redis store against redis-server, with and without TLS and ACLs, and against servers that misbehave.
#include "redis_store.hpp"
#include "remote/servers.hpp"
#include "resp.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <map>
#include <random>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using namespace remote_redis;
using Catch::Contains;

std::unique_ptr<RemoteStore> redis_store(const std::string& url, std::map<std::string, std::string> credentials = {}) {
  auto store = open_redis_store({{}, url, std::move(credentials), "plain"});
  if (!store) throw std::runtime_error(store.error().text());
  return std::move(*store);
}

std::string url_of(const RawServer& server) { return "redis://127.0.0.1:" + std::to_string(server.port()); }

TEST_CASE("redis store: it stores, returns and replaces objects") {
  const RedisServer redis;
  const auto store = redis_store(redis.url() + "/3");
  const auto one = some_bytes(16 << 10, 1), two = some_bytes(3 << 20, 2);
  CHECK(!*store->get("folder/one", limits_of(5s)));
  CHECK(store->put("folder/one", one, limits_of(5s)).text() == "ok");
  CHECK(**store->get("folder/one", limits_of(5s)) == one);
  CHECK(store->put("folder/one", two, limits_of(5s)).text() == "ok");
  CHECK(**store->get("folder/one", limits_of(10s)) == two);
  CHECK(!*redis_store(redis.url())->get("folder/one", limits_of(5s)));  // another database
  CHECK(!store->get("folder/one", limits_of(5s, 100)));                 // beyond the limit
}

TEST_CASE("redis store: a batch is pipelined and returns what is there") {
  const RedisServer redis;
  const auto store = redis_store(redis.url());
  std::vector<std::string> names;
  for (unsigned i = 0; i < 100; ++i) {
    names.push_back("folder/" + std::to_string(i));
    if (i % 4 != 0) REQUIRE(store->put(names.back(), some_bytes(500, i), limits_of(5s)).ok());
  }
  std::map<std::size_t, std::vector<std::byte>> found;
  CHECK(store
            ->get_many(names, limits_of(5s),
                       [&](std::size_t place, std::vector<std::byte> bytes) { found[place] = std::move(bytes); })
            .text() == "ok");
  CHECK(found.size() == 75);
  for (const auto& [place, bytes] : found) CHECK(bytes == some_bytes(500, static_cast<unsigned>(place)));
}

TEST_CASE("redis store: the objects of a batch are handed over as they arrive") {
  std::atomic<bool> seen{false};
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, "*3\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n");
    while (!stop && !seen) std::this_thread::sleep_for(1ms);
    send_text(connection, "*1\r\n$1\r\nb\r\n");
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  const std::vector<std::string> names(4, "folder/name");
  std::size_t objects = 0;
  const Status status = redis_store(url_of(server))->get_many(names, limits_of(10s), [&](std::size_t, const auto&) {
    ++objects;
    seen = true;
  });
  CHECK(status.text() == "ok");
  CHECK(objects == 4);
}

TEST_CASE("redis store: a batch of large objects is no reply beyond the limit") {
  const RedisServer redis;
  const auto store = redis_store(redis.url());
  const std::vector<std::byte> large(60 << 20);
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back("folder/" + std::to_string(i));
    REQUIRE(store->put(names.back(), large, limits_of(60s)).text() == "ok");
  }
  std::size_t objects = 0;
  const auto count = [&](std::size_t, const std::vector<std::byte>& bytes) { objects += bytes.size() == large.size(); };
  CHECK(store->get_many(names, limits_of(60s), count).text() == "ok");
  CHECK(objects == names.size());
}

TEST_CASE("redis store: writers that add to the index at the same time lose nothing") {
  const RedisServer redis;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      const auto store = redis_store(redis.url());
      for (int i = 0; i < 25; ++i) {
        const RemoteIndex more{{sha256(std::to_string(writer) + "/" + std::to_string(i)), 7}};
        static_cast<void>(store->add_to_index("folder", more, limits_of(5s)));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto index = redis_store(redis.url())->index("folder", limits_of(5s));
  REQUIRE(index);
  CHECK((*index)->size() == 100);
  CHECK(std::ranges::is_sorted(**index, {}, &RemoteIndexEntry::key));
  CHECK((*index)->front().build_ns == 7);
  CHECK(!*redis_store(redis.url())->index("other", limits_of(5s)));
}

TEST_CASE("redis store: a lease belongs to one holder, who alone renews and releases it") {
  const RedisServer redis;
  const auto store = redis_store(redis.url());
  auto& leases = dynamic_cast<RemoteLeases&>(*store);
  CHECK(*leases.acquire("f/a.lease", "one", 60s, limits_of(5s)));
  CHECK(!*leases.acquire("f/a.lease", "two", 60s, limits_of(5s)));
  CHECK(!*leases.renew("f/a.lease", "two", 60s, limits_of(5s)));
  CHECK(leases.release("f/a.lease", "two", limits_of(5s)).ok());
  CHECK(!*leases.acquire("f/a.lease", "two", 60s, limits_of(5s)));
  CHECK(*leases.renew("f/a.lease", "one", 60s, limits_of(5s)));
  CHECK(leases.release("f/a.lease", "one", limits_of(5s)).ok());
  CHECK(*leases.acquire("f/a.lease", "two", 50ms, limits_of(5s)));
  std::this_thread::sleep_for(100ms);
  CHECK(*leases.acquire("f/a.lease", "three", 60s, limits_of(5s)));
  CHECK(!*leases.renew("f/a.lease", "two", 60s, limits_of(5s)));
}

TEST_CASE("redis store: a user of an ACL reads and cannot write, and a wrong password is an error") {
  const RedisServer redis({"--user", "reader", "on", ">secret", "~kiln:*", "+get", "+mget", "+hgetall", "+auth"});
  const auto reader = redis_store(redis.url(), {{"user", "reader"}, {"password", "secret"}});
  CHECK(redis_store(redis.url())->put("folder/one", some_bytes(10), limits_of(5s)).ok());
  CHECK(*reader->get("folder/one", limits_of(5s)));
  CHECK_THAT(reader->put("folder/one", some_bytes(10), limits_of(5s)).message, Contains("NOPERM"));
  const auto wrong = redis_store(redis.url(), {{"user", "reader"}, {"password", "hunter2"}});
  const auto got = wrong->get("folder/one", limits_of(5s));
  REQUIRE(!got);
  CHECK_THAT(got.error().message, Contains("AUTH or SELECT failed") && !Contains("hunter2"));
}

TEST_CASE("redis store: a connection that the server closed is replaced") {
  std::atomic<int> served{0};
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    // One answer for each connection; then it is closed.
    if (read_request(connection, stop).empty()) return;
    ++served;
    send_text(connection, "$3\r\nabc\r\n");
  });
  const auto store = redis_store(url_of(server));
  for (int i = 0; i < 3; ++i) {
    const auto got = store->get("f/a", limits_of(5s));
    REQUIRE(got);
    CHECK((*got)->size() == 3);
    std::this_thread::sleep_for(30ms);
  }
  CHECK(served == 3);
}

TEST_CASE("redis store: TLS needs a certificate for the host that the authority signed") {
  const TlsRedisServer redis;
  const auto store = redis_store(redis.url(), {{"authority", redis.authority()}});
  const auto one = some_bytes(300 << 10);
  CHECK(store->put("folder/one", one, limits_of(10s)).text() == "ok");
  CHECK(**store->get("folder/one", limits_of(10s)) == one);
  const auto unknown = redis_store(redis.url())->get("folder/one", limits_of(10s));
  REQUIRE(!unknown);
  CHECK_THAT(unknown.error().message, Contains("certificate verify failed"));
  const std::string by_address = "rediss://127.0.0.1:" + std::to_string(redis.port());
  CHECK(!redis_store(by_address, {{"authority", redis.authority()}})->get("folder/one", limits_of(10s)));
  CHECK(!redis_store(redis.url(), {{"authority", "/none"}})->get("folder/one", limits_of(10s)));
}

TEST_CASE("redis store: a TLS server that is killed is an error, and no signal ends the process") {
  TlsRedisServer redis;
  const auto store = redis_store(redis.url(), {{"authority", redis.authority()}});
  REQUIRE(store->put("folder/one", some_bytes(100), limits_of(10s)).ok());
  const auto before = signal(SIGPIPE, SIG_DFL);
  redis.stop();
  for (int i = 0; i < 3; ++i) CHECK(!store->get("folder/one", limits_of(2s)));
  signal(SIGPIPE, before);
}

TEST_CASE("redis store: nothing listens, or the server is silent") {
  CHECK(redis_store("redis://127.0.0.1:1")->get("f/a", limits_of(2s)).error().code == StatusCode::unavailable);
  RawServer server([](int, const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  CHECK(redis_store(url_of(server))->get("f/a", limits_of(100ms)).error().code == StatusCode::timeout);
  std::atomic<bool> stop{true};
  RemoteLimits limits = limits_of(60s);
  limits.stop = &stop;
  CHECK(redis_store(url_of(server))->get("f/a", limits).error().code == StatusCode::cancelled);
}

TEST_CASE("redis store: answers that are no RESP, too large, or of another type are failures") {
  const std::string answer = GENERATE(as<std::string>{}, "HTTP/1.1 400 Bad Request\r\n\r\n", "$10000000000\r\n",
                                      "*3000000\r\n", ":5\r\n", "+OK\r\n", "-ERR something\r\n", "$-5\r\n",
                                      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "$3\r\nabcdef\r\n", "\r\n");
  INFO(answer);
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, answer);
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  const auto got = redis_store(url_of(server))->get("f/a", limits_of(300ms));
  CHECK(!got);
}

TEST_CASE("redis store: a server that drips is left at the deadline") {
  RawServer server([](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    drip(connection, "$100000\r\n" + std::string(100'000, 'x'), 10ms, stop);
  });
  CHECK(redis_store(url_of(server))->get("f/a", limits_of(150ms)).error().code == StatusCode::timeout);
}

TEST_CASE("redis address: host, port and database, and nothing else") {
  CHECK(address_of("redis://h")->port == "6379");
  CHECK(address_of("redis://h:1/2")->database == "2");
  CHECK(address_of("rediss://[::1]:7/")->host == "::1");
  CHECK(address_of("rediss://[::1]:7")->port == "7");
  CHECK(address_of("rediss://h")->tls);
  for (const std::string& url :
       std::vector<std::string>{"redis://", "redis://:1", "redis://h:x", "redis://h:1/x", "redis://h:123456"}) {
    INFO(url);
    CHECK(!address_of(url));
  }
}

TEST_CASE("resp: replies are read in any division of their bytes") {
  const std::string text =
      "+OK\r\n:42\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n$1\r\nx\r\n*2\r\n:1\r\n$0\r\n\r\n-ERR no\r\n*0\r\n";
  for (std::size_t step = 1; step < text.size(); ++step) {
    ReplyParser parser;
    std::vector<Reply> replies;
    for (std::size_t at = 0; at < text.size(); at += step) {
      parser.add(std::string_view(text).substr(at, step));
      while (true) {
        const auto reply = parser.next();
        REQUIRE(reply);
        if (!*reply) break;
        replies.push_back(**reply);
      }
    }
    REQUIRE(replies.size() == 8);
    CHECK(replies[2].text == "a\r\n");
    CHECK(replies[3].kind == ReplyKind::null);
    REQUIRE(replies[5].items.size() == 2);
    CHECK(replies[5].items[1].items.at(1).text.empty());
    CHECK(replies[6].kind == ReplyKind::error);
    CHECK(replies[7].kind == ReplyKind::array);
    CHECK(parser.unread() == 0);
  }
}

TEST_CASE("resp: random bytes never crash the parser or take much memory") {
  std::mt19937 random(1);
  const std::string_view alphabet = "+-:$*0123456789\r\n\r\nab";
  for (int round = 0; round < 3000; ++round) {
    ReplyParser parser({1 << 16, 1000});
    for (int part = 0; part < 20; ++part) {
      std::string bytes;
      for (unsigned count = random() % 16; count != 0; --count) bytes += alphabet[random() % alphabet.size()];
      parser.add(bytes);
      bool more = true;
      while (more) {
        const auto reply = parser.next();
        more = reply && *reply;
        if (!reply) {
          part = 20;
          break;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::test
