// Connection: one connection to a Redis server, with TLS for rediss://. Every call has a deadline.
//
// OpenSSL's libssl is opened at the first TLS connection, so that other processes do not load it.
// Thread-safety: one thread at a time. Ownership: owns the socket.
#pragma once

#include "resp.hpp"

#include <kiln/buffer.hpp>
#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::remote_redis {

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
