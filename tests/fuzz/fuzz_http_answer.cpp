// What a web server answers: status line, headers and body, through the store of remote_http and libcurl. The server is
// a thread that sends the input to whoever asks.
#include "http_store.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace {

using namespace kiln;

constexpr std::uint64_t most_bytes = 4096;

void require(bool holds) {
  if (!holds) std::abort();
}

class Server {
 public:
  Server() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    require(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener_, 16) == 0 &&
            getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    std::thread([this] { serve(); }).detach();
  }
  int port() const { return port_; }
  void answer(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }

 private:
  void serve() {
    for (;;) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      std::string text, request(4096, '\0');
      static_cast<void>(recv(connection, request.data(), request.size(), 0));
      {
        const std::lock_guard lock(mutex_);
        text = text_;
      }
      static_cast<void>(send(connection, text.data(), text.size(), MSG_NOSIGNAL));
      shutdown(connection, SHUT_WR);
      while (recv(connection, request.data(), request.size(), 0) > 0) {
      }
      close(connection);
    }
  }

  const int listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Server server;
  static const auto store =
      remote_http::open_http_store({{}, "http://127.0.0.1:" + std::to_string(server.port()), {}, "plain"});
  if (!store) return 0;  // no libcurl here
  const std::string text(reinterpret_cast<const char*>(data), size);
  server.answer(text);
  RemoteLimits limits{.deadline = Deadline::after(std::chrono::milliseconds(200))};
  limits.most_bytes = most_bytes;
  const auto object = (*store)->get("folder/name", limits);
  require((*store)->retry_after().count() >= 0);
  if (!object) {
    require(!object.error().message.empty());
  } else if (*object) {
    // Whatever libcurl takes for status 200, such as a damaged status line: no more than what was sent and allowed.
    require((*object)->size() <= most_bytes && (*object)->size() <= text.size());
  }
  return 0;
}
