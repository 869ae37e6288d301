// What the Redis store sends, and what it makes of each reply, against servers with scripted replies; signing in, and
// TLS with addresses and certificates of clients.
#include "redis_store.hpp"
#include "remote/servers.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <mutex>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using namespace remote_redis;
using Catch::Contains;

std::string url_of(const RawServer& server) { return "redis://127.0.0.1:" + std::to_string(server.port()); }

// Gives each connection the replies in their order and closes it after the last one; keeps the requests.
struct ScriptedServer {
  explicit ScriptedServer(std::vector<std::string> replies)
      : server([this, replies = std::move(replies)](int connection, const std::atomic<bool>& stop) {
          for (const std::string& reply : replies) {
            const std::string text = read_request(connection, stop);
            if (text.empty()) return;
            {
              const std::lock_guard lock(mutex);
              requests.push_back(text);
            }
            send_text(connection, reply);
          }
          while (!stop && !read_request(connection, stop).empty()) {
          }
        }) {}

  std::unique_ptr<RedisStore> store(std::map<std::string, std::string> credentials = {}) const {
    return std::make_unique<RedisStore>(*address_of(url_of(server)), std::move(credentials));
  }

  std::mutex mutex;
  std::vector<std::string> requests;  // guarded by mutex
  RawServer server;
};

// What `call` says of a store whose server replies `reply`.
template <class Call>
std::string answer_to(const std::string& reply, Call call) {
  ScriptedServer server({reply});
  const auto store = server.store();
  return call(*store);
}

std::string words_of(const Status& status) { return status.text(); }
std::string words_of(const Result<bool>& result) { return result ? *result ? "true" : "false" : result.error().text(); }

const Digest key = Digest{};  // 32 bytes of zero
const std::string key_bytes(32, '\0');

TEST_CASE("redis replies: the commands that are sent") {
  using Requests = std::vector<std::string>;
  const RemoteLimits limits = limits_of(10s);
  ScriptedServer server(
      {"$-1\r\n", "*2\r\n$-1\r\n$-1\r\n", "+OK\r\n", "*0\r\n", ":1\r\n", "+OK\r\n", ":1\r\n", ":1\r\n"});
  const auto store = server.store();
  const auto got = store->get("f/a", limits);
  REQUIRE(got);
  CHECK(!*got);
  CHECK(store->get_many(std::vector<std::string>{"f/a", "f/b"}, limits, [](std::size_t, const auto&) { FAIL(); }).ok());
  CHECK(store->put("f/a", some_bytes(0), limits).ok());
  const auto index = store->index("f", limits);
  REQUIRE(index);
  CHECK(!*index);
  CHECK(store->add_to_index("f", {}, limits).ok());  // sends nothing
  CHECK(store->add_to_index("f", {{key, 12}}, limits).ok());
  CHECK(words_of(store->acquire("f/a.lease", "me", 1500ms, limits)) == "true");
  CHECK(words_of(store->renew("f/a.lease", "me", 1500ms, limits)) == "true");
  CHECK(store->release("f/a.lease", "me", limits).ok());
  CHECK(server.server.connections() == 1);
  const std::string lease = "$14\r\nkiln:f/a.lease\r\n$2\r\nme\r\n";
  const std::string is_mine = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call(";
  const std::lock_guard lock(server.mutex);
  CHECK(server.requests ==
        Requests{"*2\r\n$3\r\nGET\r\n$8\r\nkiln:f/a\r\n", "*3\r\n$4\r\nMGET\r\n$8\r\nkiln:f/a\r\n$8\r\nkiln:f/b\r\n",
                 "*5\r\n$3\r\nSET\r\n$8\r\nkiln:f/a\r\n$0\r\n\r\n$2\r\nEX\r\n$7\r\n2592000\r\n",
                 "*2\r\n$7\r\nHGETALL\r\n$12\r\nkiln:f/index\r\n",
                 "*4\r\n$4\r\nHSET\r\n$12\r\nkiln:f/index\r\n$32\r\n" + key_bytes + "\r\n$2\r\n12\r\n",
                 "*6\r\n$3\r\nSET\r\n" + lease + "$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1500\r\n",
                 "*6\r\n$4\r\nEVAL\r\n$105\r\n" + is_mine +
                     "'pexpire',KEYS[1],ARGV[2]) else return 0 end\r\n$1\r\n1\r\n" + lease + "$4\r\n1500\r\n",
                 "*5\r\n$4\r\nEVAL\r\n$93\r\n" + is_mine + "'del',KEYS[1]) else return 0 end\r\n$1\r\n1\r\n" + lease});
}

TEST_CASE("redis replies: an object that is read") {
  const auto get = [](std::uint64_t most_bytes) {
    return [most_bytes](RedisStore& store) {
      const auto got = store.get("f/a", limits_of(10s, most_bytes));
      if (!got) return got.error().text();
      return *got ? std::to_string((*got)->size()) : "none";
    };
  };
  CHECK(answer_to("$3\r\nabc\r\n", get(3)) == "3");
  CHECK(answer_to("$3\r\nabc\r\n", get(2)) == "unavailable: Redis: object has 3 bytes, expected at most 2");
  CHECK(answer_to("$-1\r\n", get(3)) == "none");
  CHECK(answer_to("-ERR no\r\n", get(3)) == "unavailable: Redis: GET: ERR no");
  CHECK(answer_to("+abc\r\n", get(3)) == "unavailable: Redis: GET: unexpected type of reply");
  CHECK(answer_to("$3\r\nabcde", get(3)) == "unavailable: Redis: bulk reply does not end with CR LF");
  CHECK(answer_to("$3\r\nab", [](RedisStore& store) { return store.get("f/a", limits_of(50ms)).error().text(); }) ==
        "timeout: Redis: the reply timed out");
}

TEST_CASE("redis replies: a batch has an item for each name, and what is too large is left out") {
  const auto get = [](RedisStore& store) {
    std::string found;
    const Status status = store.get_many(std::vector<std::string>{"f/a", "f/b", "f/c"}, limits_of(10s, 3),
                                         [&](std::size_t place, const std::vector<std::byte>& bytes) {
                                           found += std::to_string(place) + ":" + std::to_string(bytes.size()) + " ";
                                         });
    return found + status.text();
  };
  CHECK(answer_to("*3\r\n$3\r\nabc\r\n$-1\r\n$1\r\na\r\n", get) == "0:3 2:1 ok");
  CHECK(answer_to("*3\r\n$4\r\nabcd\r\n+abc\r\n$0\r\n\r\n", get) == "2:0 ok");
  CHECK(answer_to("*2\r\n$3\r\nabc\r\n$-1\r\n", get) == "unavailable: Redis: MGET: unexpected type of reply");
  CHECK(answer_to("*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", get) == "unavailable: Redis: MGET: unexpected type of reply");
  CHECK(answer_to("$3\r\nabc\r\n", get) == "unavailable: Redis: MGET: unexpected type of reply");
  CHECK(answer_to("-ERR no\r\n", get) == "unavailable: Redis: MGET: ERR no");
}

TEST_CASE("redis replies: an object that is written") {
  const auto put = [](RedisStore& store) { return words_of(store.put("f/a", some_bytes(3), limits_of(10s))); };
  CHECK(answer_to("+OK\r\n", put) == "ok");
  CHECK(answer_to("-OOM much\r\n", put) == "unsupported: Redis: SET: OOM much");
  CHECK(answer_to(":1\r\n", put) == "unavailable: Redis: SET: unexpected type of reply");
}

TEST_CASE("redis replies: an index, without what is no entry") {
  const auto index = [](RedisStore& store) {
    const auto got = store.index("f", limits_of(10s));
    if (!got) return got.error().text();
    if (!*got) return std::string("none");
    std::string words;
    for (const RemoteIndexEntry& entry : **got) words += entry.key.hex() + "=" + std::to_string(entry.build_ns) + " ";
    return words;
  };
  const std::string one = "$32\r\n" + std::string(32, '\x11') + "\r\n$2\r\n12\r\n";
  const std::string words = "1111111111111111111111111111111111111111111111111111111111111111=12 ";
  CHECK(answer_to("*2\r\n" + one, index) == words);
  CHECK(answer_to("*3\r\n" + one + "$32\r\n" + key_bytes + "\r\n", index) == words);
  CHECK(
      answer_to("*6\r\n$31\r\n" + std::string(31, 'a') + "\r\n$1\r\n1\r\n$32\r\n" + key_bytes + "\r\n$1\r\nx\r\n" + one,
                index) == words);
  CHECK(answer_to("*0\r\n", index) == "none");
  CHECK(answer_to("$3\r\nabc\r\n", index) == "unavailable: Redis: HGETALL: unexpected type of reply");
  const auto add = [](RedisStore& store) { return words_of(store.add_to_index("f", {{key, 12}}, limits_of(10s))); };
  CHECK(answer_to(":0\r\n", add) == "ok");
  CHECK(answer_to("-ERR no\r\n", add) == "unavailable: Redis: HSET: ERR no");
}

TEST_CASE("redis replies: a lease") {
  const auto acquire = [](RedisStore& store) { return words_of(store.acquire("f/a", "me", 1s, limits_of(10s))); };
  CHECK(answer_to("+OK\r\n", acquire) == "true");
  CHECK(answer_to("$-1\r\n", acquire) == "false");
  CHECK(answer_to(":1\r\n", acquire) == "unavailable: Redis: SET NX: unexpected type of reply");
  const auto renew = [](RedisStore& store) { return words_of(store.renew("f/a", "me", 1s, limits_of(10s))); };
  CHECK(answer_to(":1\r\n", renew) == "true");
  CHECK(answer_to(":0\r\n", renew) == "false");
  CHECK(answer_to("+OK\r\n", renew) == "unavailable: Redis: EVAL: unexpected type of reply");
  const auto release = [](RedisStore& store) { return words_of(store.release("f/a", "me", limits_of(10s))); };
  CHECK(answer_to(":0\r\n", release) == "ok");
  CHECK(answer_to("-NOPERM no\r\n", release) == "unavailable: Redis: EVAL: NOPERM no");
}

TEST_CASE("redis replies: a request that got a reply is not sent again") {
  // The second request is two commands, of which one is answered.
  RawServer server([](int connection, const std::atomic<bool>& stop) {
    if (read_request(connection, stop).empty()) return;
    send_text(connection, "$-1\r\n");
    if (read_request(connection, stop).empty()) return;
    send_text(connection, "*3\r\n$-1\r\n$-1\r\n$1\r\na\r\n");
  });
  RedisStore store(*address_of(url_of(server)), {});
  REQUIRE(store.get("f/a", limits_of(10s)));
  std::vector<std::size_t> places;
  const Status status = store.get_many(std::vector<std::string>(4, "f/a"), limits_of(10s),
                                       [&](std::size_t place, const auto&) { places.push_back(place); });
  CHECK(status.code == StatusCode::unavailable);
  CHECK(places == std::vector<std::size_t>{2});
  CHECK(server.connections() == 1);
}

TEST_CASE("redis replies: signing in with what the credentials have") {
  const auto sent = [](const std::map<std::string, std::string>& credentials, const std::string& database) {
    ScriptedServer server({"+OK\r\n", "$-1\r\n"});
    RedisStore store(*address_of(url_of(server.server) + database), credentials);
    CHECK(store.get("f/a", limits_of(10s)));
    const std::lock_guard lock(server.mutex);
    return server.requests.front();
  };
  CHECK(sent({{"password", "secret"}}, "") == "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
  CHECK(sent({{"user", "u"}, {"password", "secret"}}, "/0") == "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$6\r\nsecret\r\n");
  CHECK(sent({{"user", "u"}}, "/7") == "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n");
  ScriptedServer refuses({"-WRONGPASS no\r\n"});
  const auto refused = refuses.store({{"password", "secret"}})->get("f/a", limits_of(10s));
  REQUIRE(!refused);
  CHECK(refused.error().text() == "unavailable: Redis: AUTH or SELECT failed: WRONGPASS no");
}

TEST_CASE("redis replies: a server that reads nothing is left at the deadline") {
  RawServer server([](int, const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  RedisStore store(*address_of(url_of(server)), {});
  const std::vector<std::byte> large(40 << 20);
  CHECK(store.put("f/a", large, limits_of(100ms)).text() == "timeout: Redis: the request timed out");
}

TEST_CASE("redis replies: a name of a host is looked up until the call is stopped") {
  std::atomic<bool> stop{true};
  RemoteLimits limits = limits_of(60s);
  limits.stop = &stop;
  RedisStore store({.host = "localhost", .port = "1"}, {});
  const auto got = store.get("f/a", limits);
  REQUIRE(!got);
  CHECK(got.error().text() == "cancelled: Redis: stopped");
}

TEST_CASE("redis replies: what is no TLS handshake") {
  const auto handshake = [](const std::string& reply, bool closes) {
    RawServer server([&](int connection, const std::atomic<bool>& stop) {
      send_text(connection, reply);
      while (!closes && !stop) std::this_thread::sleep_for(5ms);
    });
    RedisStore store({.host = "127.0.0.1", .port = std::to_string(server.port()), .tls = true}, {});
    const auto got = store.get("f/a", limits_of(reply.empty() && !closes ? 100ms : 10s));
    return got ? "none" : got.error().text();
  };
  CHECK(handshake("", false) == "timeout: Redis: the TLS handshake timed out");
  CHECK_THAT(handshake("HTTP/1.1 400 Bad Request\r\n\r\n", false),
             Catch::StartsWith("unavailable: TLS: handshake: error:"));
  CHECK_THAT(handshake("", true), Catch::StartsWith("unavailable: TLS: handshake: "));
}

TEST_CASE("redis replies: TLS with an address, and with a certificate of the client") {
  const TlsRedisServer redis(TlsRedisServer::Named::address);
  const std::string at = redis.folder().string() + "/";
  const auto get = [&](const std::string& host, std::map<std::string, std::string> more) {
    more["authority"] = at + "ca.crt";
    RedisStore store({.host = host, .port = std::to_string(redis.port()), .tls = true}, std::move(more));
    const auto got = store.get("f/a", limits_of(10s));
    return got ? *got ? "object" : "none" : got.error().text();
  };
  const std::string certificate = at + "server.crt", key_file = at + "server.key";
  CHECK(get("127.0.0.1", {{"certificate", certificate}, {"private_key", key_file}}) == "none");
  CHECK_THAT(get("127.0.0.2", {{"certificate", certificate}, {"private_key", key_file}}),
             Contains("certificate verify failed"));
  CHECK_THAT(get("127.0.0.1", {}), Catch::StartsWith("unavailable: "));
  CHECK_THAT(get("127.0.0.1", {{"certificate", at + "none"}}),
             Catch::StartsWith("invalid_argument: TLS: certificate " + at + "none: error:"));
  CHECK_THAT(get("127.0.0.1", {{"certificate", certificate}, {"private_key", at + "none"}}),
             Catch::StartsWith("invalid_argument: TLS: private key " + at + "none: error:"));
}

}  // namespace
}  // namespace kiln::test
