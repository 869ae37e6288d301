// Tls: TLS on a connected, non-blocking socket, with libssl opened at first use.
//
// The server's certificate must be valid for the host.
// Thread-safety: one thread at a time. Ownership: borrows the socket.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "resp.hpp"

namespace kiln::remote_redis {

class Tls {
 public:
  enum class Outcome : unsigned char { invalid = 0, done, wants_read, wants_write, closed };

  // credentials: authority (a file of certificates to trust), certificate, private_key. unavailable: no libssl.
  static Result<std::unique_ptr<Tls>> create(int socket, const std::string& host,
                                             const std::map<std::string, std::string>& credentials);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Each returns what it waits for. Error: the handshake failed, with the reason.
  Result<Outcome> handshake();
  Result<Outcome> read(char* to, std::size_t size, std::size_t& count);
  Result<Outcome> write(const char* from, std::size_t size, std::size_t& count);

 private:
  Tls() = default;
  Result<Outcome> outcome_of(int result, const char* what);

  void* context_ = nullptr;  // SSL_CTX
  void* ssl_ = nullptr;      // SSL
};

// Connection: one connection to a Redis server, with TLS for rediss://. Every call has a deadline.
//
// OpenSSL's libssl is opened at the first TLS connection, so that other processes do not load it.
// Thread-safety: one thread at a time. Ownership: owns the socket.

struct ServerAddress {
  std::string host, port = "6379", database = "0";
  bool tls = false;
};

// redis://HOST[:PORT][/DATABASE] or rediss://…; the host may be an IPv6 address in brackets.
Result<ServerAddress> address_of(const std::string& url);

class Tls;

class Connection {
 public:
  // Connects, and signs in with `user` and `password` of the credentials.
  static Result<std::unique_ptr<Connection>> open(const ServerAddress& address,
                                                  const std::map<std::string, std::string>& credentials,
                                                  const RemoteLimits& limits);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  using Command = std::vector<std::string_view>;
  using OnReply = std::function<Status(std::size_t command, Reply reply)>;
  // Sends all commands, then calls on_reply for each, in order, as its reply arrives. A reply may be an error of the
  // server. After a failure, also of on_reply, the connection is not usable.
  Status run(std::span<const Command> commands, const RemoteLimits& limits, const OnReply& on_reply);

 private:
  Connection();
  Status connect(const ServerAddress& address, const RemoteLimits& limits);
  Status send(std::string_view bytes, const RemoteLimits& limits);
  Status receive(const RemoteLimits& limits);

  UniqueFd socket_;
  std::unique_ptr<Tls> tls_;  // null: no TLS
  ReplyParser parser_;
  std::unique_ptr<char[]> received_;  // null: nothing was received yet
};

}  // namespace kiln::remote_redis
