// The HTTP store against nginx, and against servers that refuse, hang, drip, redirect and send garbage.
#include "http_store.hpp"
#include "remote/servers.hpp"
#include "sigv4.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <span>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;
using remote_http::open_http_store;

std::unique_ptr<RemoteStore> http_store(const std::string& url, std::map<std::string, std::string> credentials = {},
                                        const std::string& layout = "plain") {
  auto store = open_http_store({{}, url, std::move(credentials), layout});
  if (!store) throw std::runtime_error(store.error().text());
  return std::move(*store);
}

std::string url_of(const RawServer& server) { return "http://127.0.0.1:" + std::to_string(server.port()) + "/kiln"; }

RawServer::Serve answering(std::string answer) {
  return [answer = std::move(answer)](int connection, const std::atomic<bool>& stop) {
    while (!read_request(connection, stop).empty() && !stop) send_text(connection, answer);
  };
}

TEST_CASE("http store: nginx stores, returns and replaces objects") {
  const NginxServer nginx;
  const auto store = http_store(nginx.url());
  const auto one = some_bytes(16 << 10, 1), two = some_bytes(70 << 10, 2);
  CHECK(!*store->get("folder/one", limits_of(5s)));
  CHECK(store->put("folder/one", one, limits_of(5s)).text() == "ok");
  CHECK(**store->get("folder/one", limits_of(5s)) == one);
  CHECK(store->put("folder/one", two, limits_of(5s)).text() == "ok");
  CHECK(**store->get("folder/one", limits_of(5s)) == two);
  const RemoteIndex index{{sha256("a"), 5}};
  CHECK(!*store->index("folder", limits_of(5s)));
  CHECK(store->add_to_index("folder", index, limits_of(5s)).text() == "ok");
  CHECK(**store->index("folder", limits_of(5s)) == index);
}

TEST_CASE("http store: a batch returns what is there") {
  const NginxServer nginx;
  const auto store = http_store(nginx.url());
  std::vector<std::string> names;
  for (unsigned i = 0; i < 50; ++i) {
    names.push_back("folder/" + std::to_string(i));
    if (i % 3 != 0) REQUIRE(store->put(names.back(), some_bytes(1000, i), limits_of(5s)).ok());
  }
  std::map<std::size_t, std::vector<std::byte>> found;
  const Status status = store->get_many(
      names, limits_of(10s), [&](std::size_t place, std::vector<std::byte> bytes) { found[place] = std::move(bytes); });
  CHECK(status.text() == "ok");
  CHECK(found.size() == 33);
  for (const auto& [place, bytes] : found) CHECK(bytes == some_bytes(1000, static_cast<unsigned>(place)));
}

TEST_CASE("http store: a server that refuses writes says so") {
  const NginxServer nginx("dav_methods off;");
  const auto store = http_store(nginx.url());
  CHECK_THAT(store->put("folder/one", some_bytes(10), limits_of(5s)).message, Contains("405"));
}

TEST_CASE("http store: an object that is too large for the server is told from a server that refuses every write") {
  const NginxServer nginx("dav_methods PUT; create_full_put_path on; client_max_body_size 8k;");
  const auto store = http_store(nginx.url());
  const Status refused = store->put("folder/large", some_bytes(16 << 10), limits_of(5s));
  CHECK(refused.code == StatusCode::invalid_argument);
  CHECK_THAT(refused.message, Contains("413") && Contains("16384 bytes"));
  CHECK(store->put("folder/small", some_bytes(1 << 10), limits_of(5s)).text() == "ok");
}

TEST_CASE("http store: nothing listens") {
  const auto store = http_store("http://127.0.0.1:1/kiln");
  CHECK(store->get("folder/one", limits_of(2s)).error().code == StatusCode::unavailable);
}

TEST_CASE("http store: a server that hangs or drips is left at the deadline, and at once when stopped") {
  const bool drips = GENERATE(false, true);
  RawServer server([drips](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    if (drips) {
      drip(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'), 20ms, stop);
    }
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  const auto store = http_store(url_of(server));
  auto start = Clock::now();
  CHECK(store->get("folder/one", limits_of(100ms)).error().code == StatusCode::timeout);
  CHECK(Clock::now() - start < 5s);
  std::atomic<bool> stop{false};
  RemoteLimits limits = limits_of(60s);
  limits.stop = &stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop = true;
  });
  start = Clock::now();
  CHECK(store->get("folder/one", limits).error().code == StatusCode::cancelled);
  CHECK(Clock::now() - start < 10s);
  stopper.join();
}

TEST_CASE("http store: a redirect is not followed, and the other host sees nothing") {
  RawServer other(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  RawServer server(answering("HTTP/1.1 302 Found\r\nLocation: " + url_of(other) + "\r\nContent-Length: 0\r\n\r\n"));
  const auto store = http_store(url_of(server), {{"user", "u"}, {"password", "secret"}});
  CHECK_THAT(store->get("folder/one", limits_of(5s)).error().message, Contains("302") && Contains("redirect"));
  CHECK(other.connections() == 0);
}

TEST_CASE("http store: a body beyond the limit is not read, whether it is declared or not") {
  const std::string declared = "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n";
  const std::string endless = "HTTP/1.1 200 OK\r\n\r\n";
  const std::string head = GENERATE_COPY(declared, endless);
  std::atomic<std::size_t> sent{0};
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, head);
    const std::string block(64 << 10, 'x');
    for (int i = 0; i < 1000 && !stop; ++i) {
      send_text(connection, block);
      sent += block.size();
    }
  });
  const auto store = http_store(url_of(server));
  const auto got = store->get("folder/one", limits_of(10s, 1 << 20));
  REQUIRE(!got);
  CHECK_THAT(got.error().message, Contains("1048576"));
}

TEST_CASE("http store: answers that are no HTTP, or cut off, are failures") {
  const std::string answer =
      GENERATE(as<std::string>{}, "garbage\r\n\r\n", "\x00\xff\x01", "HTTP/1.1 abc\r\n\r\n",
               "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n");
  INFO(answer);
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, answer);
  });
  CHECK(!http_store(url_of(server))->get("folder/one", limits_of(2s)));
}

// The address sanitizer sees it where an easy handle serves twice: libcurl 7.88 would read a freed header.
TEST_CASE("http store: an answer that begins with a folded line reads nothing of the answer before") {
  std::atomic<int> answers{0};
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, answers++ == 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1x"
                                         : "HTTP/1.1 200\n \rOKContent-Length: 10\r\n\r\n1x");
  });
  const auto store = http_store(url_of(server));
  REQUIRE(store->get("folder/one", limits_of(2s)));
  const auto second = store->get("folder/one", limits_of(2s));
  CHECK(answers == 2);
  if (second && *second) CHECK((*second)->size() <= 2);
}

TEST_CASE("http store: a body that is cut off is a failure") {
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
  });
  CHECK(!http_store(url_of(server))->get("folder/one", limits_of(2s)));
}

TEST_CASE("http store: a write on a connection that the server closes at that moment is sent again") {
  const auto object = some_bytes(200'000);
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    const std::string text = read_request(connection, stop);
    const std::size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) return;
    std::string body(object.size() + head + 4 - text.size(), 'x');
    if (recv(connection, body.data(), body.size(), MSG_WAITALL) != static_cast<ssize_t>(body.size())) return;
    send_text(connection, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    recv(connection, body.data(), 1, 0);  // of the next request, which gets no answer
    std::this_thread::sleep_for(50ms);    // until nothing more of it can be sent
  });
  const auto store = http_store(url_of(server));
  for (int i = 0; i < 3; ++i) CHECK(store->put("folder/one", object, limits_of(5s)).text() == "ok");
  CHECK(server.connections() == 3);
}

TEST_CASE("http store: Retry-After is passed on") {
  RawServer server(answering("HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"));
  const auto store = http_store(url_of(server));
  CHECK(!store->get("folder/one", limits_of(5s)));
  CHECK(store->retry_after() == 120s);
}

TEST_CASE("http store: Retry-After of an earlier answer is not that of a later failure") {
  const bool hangs = GENERATE(false, true);
  std::atomic<int> requests{0};
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    while (!read_request(connection, stop).empty() && !stop) {
      if (requests++ == 0) {
        send_text(connection, "HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n");
        continue;
      }
      while (hangs && !stop) std::this_thread::sleep_for(5ms);
      return;  // closes the connection without an answer
    }
  });
  const auto store = http_store(url_of(server));
  CHECK(!store->get("folder/one", limits_of(5s)));
  REQUIRE(store->retry_after() == 120s);
  CHECK(!store->get("folder/one", limits_of(hangs ? 100ms : 5s)));
  CHECK(store->retry_after() == 0s);
}

TEST_CASE("http store: what each status of an answer means") {
  using remote_http::Answer;
  struct Case {
    long status;
    Answer read, written;
  };
  for (const Case& one : {
           Case{200, Answer::object, Answer::object},
           Case{201, Answer::failed, Answer::object},
           Case{202, Answer::failed, Answer::failed},
           Case{204, Answer::failed, Answer::object},
           Case{206, Answer::failed, Answer::failed},
           Case{301, Answer::failed, Answer::failed},
           Case{403, Answer::failed, Answer::failed},
           Case{404, Answer::absent, Answer::no_folder},
           Case{409, Answer::failed, Answer::no_folder},
           Case{410, Answer::absent, Answer::absent},
           Case{429, Answer::busy, Answer::busy},
           Case{500, Answer::failed, Answer::failed},
           Case{503, Answer::busy, Answer::busy},
       }) {
    INFO(one.status);
    CHECK(remote_http::meaning_of(one.status, false) == one.read);
    CHECK(remote_http::meaning_of(one.status, true) == one.written);
  }
}

TEST_CASE("http store: a write that the server refuses, for now or for ever") {
  struct Case {
    int status;
    StatusCode code;
    std::string more;
  };
  for (const Case& one : {
           Case{202, StatusCode::unsupported, ""},
           Case{299, StatusCode::unsupported, ""},
           Case{300, StatusCode::unsupported, " (redirects are not followed)"},
           Case{399, StatusCode::unsupported, " (redirects are not followed)"},
           Case{400, StatusCode::unsupported, ""},
           Case{403, StatusCode::unsupported, ""},
           Case{408, StatusCode::unavailable, ""},
           Case{410, StatusCode::unsupported, ""},
           Case{413, StatusCode::invalid_argument, ": object of 0 bytes is too large"},
           Case{429, StatusCode::unavailable, ""},
           Case{500, StatusCode::unsupported, ""},
           Case{502, StatusCode::unavailable, ""},
           Case{503, StatusCode::unavailable, ""},
           Case{504, StatusCode::unavailable, ""},
           Case{505, StatusCode::unsupported, ""},
       }) {
    INFO(one.status);
    RawServer server(answering("HTTP/1.1 " + std::to_string(one.status) + " Status\r\nContent-Length: 0\r\n" +
                               (one.status == 408 ? "Connection: close\r\n" : "") + "\r\n"));
    const Status status = http_store(url_of(server))->put("folder/one", {}, limits_of(10s));
    CHECK(status.code == one.code);
    CHECK(status.message == url_of(server) + ": HTTP status " + std::to_string(one.status) + one.more);
  }
}

// Answers requests without a body in the order of `answers`, the last one again and again, and keeps their first lines.
struct ScriptedServer {
  explicit ScriptedServer(std::vector<std::string> answers)
      : server([this, answers = std::move(answers)](int connection, const std::atomic<bool>& stop) {
          while (!stop) {
            const std::string text = read_request(connection, stop);
            if (text.empty()) return;
            std::size_t place = 0;
            {
              const std::lock_guard lock(mutex);
              place = std::min(requests.size(), answers.size() - 1);
              requests.push_back(text.substr(0, text.find(" HTTP")));
            }
            send_text(connection, "HTTP/1.1 " + answers[place] + "\r\nContent-Length: 0\r\n\r\n");
          }
        }) {}

  std::mutex mutex;
  std::vector<std::string> requests;  // guarded by mutex
  RawServer server;
};

TEST_CASE("http store: a folder that is missing is made, once") {
  using Requests = std::vector<std::string>;
  ScriptedServer apache({"409 Conflict", "201 Created", "201 Created"});
  CHECK(http_store(url_of(apache.server) + "//")->put("a/b/one", {}, limits_of(10s)).text() == "ok");
  CHECK(apache.requests == Requests{"PUT /kiln/a/b/one", "MKCOL /kiln/a/b", "PUT /kiln/a/b/one"});
  ScriptedServer refuses({"404 Not Found"});
  const Status refused = http_store(url_of(refuses.server))->put("a/one", {}, limits_of(10s));
  CHECK(refused.text() == "unsupported: " + url_of(refuses.server) + ": HTTP status 404");
  CHECK(refuses.requests == Requests{"PUT /kiln/a/one", "MKCOL /kiln/a", "PUT /kiln/a/one"});
  ScriptedServer flat({"404 Not Found"});
  CHECK(http_store(url_of(flat.server))->put("one", {}, limits_of(10s)).code == StatusCode::unsupported);
  CHECK(flat.requests == Requests{"PUT /kiln/one"});
}

TEST_CASE("http store: an object of the largest size is read, whether its size is declared or not") {
  const bool declared = GENERATE(false, true);
  const std::string body(1000, 'x');
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, declared ? "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + body
                                   : "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body);
  });
  const auto store = http_store(url_of(server));
  const auto exact = store->get("folder/one", limits_of(10s, 1000));
  REQUIRE(exact);
  REQUIRE(*exact);
  CHECK((*exact)->size() == 1000);
  const auto more = store->get("folder/one", limits_of(10s, 999));
  REQUIRE(!more);
  CHECK(more.error().text() == "unavailable: " + url_of(server) + ": object has more than 999 bytes");
}

TEST_CASE("http store: a failure in a batch is the batch's, and the other objects are handed over") {
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    while (!stop) {
      const std::string text = read_request(connection, stop);
      if (text.empty()) return;
      const bool fails = text.find("/kiln/a/1 ") != std::string::npos;
      send_text(connection, fails ? "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"
                                  : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  std::vector<std::size_t> places;
  const Status status = http_store(url_of(server))
                            ->get_many(std::vector<std::string>{"a/0", "a/1", "a/2"}, limits_of(10s),
                                       [&](std::size_t place, const auto&) { places.push_back(place); });
  CHECK(status.text() == "unavailable: " + url_of(server) + ": HTTP status 500");
  std::ranges::sort(places);
  CHECK(places == std::vector<std::size_t>{0, 2});
}

TEST_CASE("http store: a deadline that has passed ends the call, and takes Retry-After back") {
  std::atomic<int> requests{0};
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    while (!read_request(connection, stop).empty() && !stop) {
      if (requests++ == 0) send_text(connection, "HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n");
    }
  });
  const auto store = http_store(url_of(server));
  CHECK(!store->get("folder/one", limits_of(5s)));
  REQUIRE(store->retry_after() == 9s);
  const auto got = store->get("folder/one", limits_of(-1s));
  REQUIRE(!got);
  CHECK(got.error().code == StatusCode::timeout);
  CHECK(store->retry_after() == 0s);
}

TEST_CASE("http store: other schemes than http and https are not followed") {
  const auto got = http_store("file:///etc")->get("passwd", limits_of(5s));
  REQUIRE(!got);
  CHECK(got.error().code == StatusCode::unavailable);
}

TEST_CASE("http store: TLS with a certificate of the client") {
  class TlsNginx : public ServerProcess {
   public:
    TlsNginx() {
      const std::string at = folder().string();
      make_certificates(folder());
      std::filesystem::create_directories(folder() / "root/kiln");
      std::ofstream(folder() / "root/kiln/one") << "text";
      std::ofstream(folder() / "nginx.conf")
          << "daemon off; master_process off; pid " << at << "/pid; error_log " << at << "/error.log;\nevents {}\n"
          << "http { access_log off; client_body_temp_path " << at << "/body; proxy_temp_path " << at
          << "/proxy; fastcgi_temp_path " << at << "/fastcgi; uwsgi_temp_path " << at << "/uwsgi; scgi_temp_path " << at
          << "/scgi;\nserver { listen 127.0.0.1:" << port() << " ssl; root " << at << "/root; ssl_certificate " << at
          << "/server.crt; ssl_certificate_key " << at << "/server.key; ssl_verify_client on; ssl_client_certificate "
          << at << "/ca.crt; } }\n";
      start(program_named("nginx"), {"-c", at + "/nginx.conf", "-p", at, "-e", at + "/error.log"}, port());
    }
  };
  const TlsNginx nginx;
  const std::string at = nginx.folder().string(), url = "https://localhost:" + std::to_string(nginx.port()) + "/kiln";
  const auto known = http_store(url, {{"authority", at + "/ca.crt"},
                                      {"certificate", at + "/server.crt"},
                                      {"private_key", at + "/server.key"}})
                         ->get("one", limits_of(10s));
  REQUIRE(known);
  REQUIRE(*known);
  CHECK((*known)->size() == 4);
  const auto unknown = http_store(url, {{"authority", at + "/ca.crt"}})->get("one", limits_of(10s));
  REQUIRE(!unknown);
  CHECK_THAT(unknown.error().message, Contains("HTTP status 400"));
  const auto untrusted = http_store(url)->get("one", limits_of(10s));
  REQUIRE(!untrusted);
  CHECK_THAT(untrusted.error().message, !Contains("HTTP status"));
}

TEST_CASE("http store: credentials are in the header, and never in an error") {
  std::mutex mutex;
  std::string request;
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    const std::string text = read_request(connection, stop);
    {
      const std::lock_guard lock(mutex);
      request = text;
    }
    send_text(connection, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  });
  const auto basic = http_store(url_of(server), {{"user", "u"}, {"password", "secret"}})->get("a/b", limits_of(5s));
  REQUIRE(!basic);
  CHECK_THAT(basic.error().message, !Contains("secret") && Contains("403"));
  CHECK_THAT(request, Contains("Authorization: Basic dTpzZWNyZXQ="));
  CHECK(!http_store(url_of(server), {{"token", "abc"}})->get("a/b", limits_of(5s)));
  CHECK_THAT(request, Contains("Authorization: Bearer abc"));
}

TEST_CASE("http store: bazel's layout has the digest below /ac") {
  const std::string digest = sha256("x").hex();
  CHECK(remote_http::path_of("folder/" + digest, "bazel") == "ac/" + digest);
  CHECK(remote_http::path_of("folder/index", "bazel") == "ac/" + sha256("folder/index").hex());
  CHECK(remote_http::path_of("folder/index", "plain") == "folder/index");
}

TEST_CASE("http store: S3 requests are signed, at the endpoint of the credentials file") {
  std::mutex mutex;
  std::vector<std::string> requests;
  RawServer server([&](int connection, const std::atomic<bool>& stop) {
    while (!stop) {
      const std::string text = read_request(connection, stop);
      if (text.empty()) return;
      {
        const std::lock_guard lock(mutex);
        requests.push_back(text);
      }
      send_text(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
  });
  const auto store =
      http_store("s3://bucket/some/prefix", {{"access_key", "AK"},
                                             {"secret_key", "SK"},
                                             {"region", "eu-1"},
                                             {"endpoint", "http://127.0.0.1:" + std::to_string(server.port())}});
  CHECK(!*store->get("folder/one", limits_of(5s)));
  REQUIRE(requests.size() == 1);
  CHECK_THAT(requests[0], Contains("GET /bucket/some/prefix/folder/one HTTP/1.1") &&
                              Contains("Authorization: AWS4-HMAC-SHA256 Credential=AK/") &&
                              Contains("/eu-1/s3/aws4_request") && Contains("x-amz-content-sha256: ") &&
                              !Contains("SK"));
  // The signature of a write is of its method and its body.
  CHECK(!store->put("folder/one", std::as_bytes(std::span("abc", 3)), limits_of(5s)).ok());
  REQUIRE(requests.size() >= 2);
  const std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK_THAT(requests[1], Contains("x-amz-content-sha256: " + digest + "\r\n"));
  std::smatch date;
  REQUIRE(std::regex_search(requests[1], date, std::regex("x-amz-date: ([0-9TZ]{16})\r\n")));
  CHECK_THAT(requests[1],
             Contains("Authorization: " +
                      remote_http::authorization_of({"PUT",
                                                     "/bucket/some/prefix/folder/one",
                                                     "",
                                                     {{"host", "127.0.0.1:" + std::to_string(server.port())},
                                                      {"x-amz-content-sha256", digest},
                                                      {"x-amz-date", date[1]}},
                                                     digest},
                                                    {"", "eu-1", "AK", "SK", ""}, "s3", date[1]) +
                      "\r\n"));
  unsetenv("AWS_ACCESS_KEY_ID");
  CHECK_THAT(open_http_store({{}, "s3://bucket", {}, "plain"}).error().message, Contains("access_key"));
}

}  // namespace
}  // namespace kiln::test
