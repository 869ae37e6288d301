// Tls: TLS on a connected, non-blocking socket, with libssl opened at first use.
//
// The server's certificate must be valid for the host.
// Thread-safety: one thread at a time. Ownership: borrows the socket.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

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

}  // namespace kiln::remote_redis
