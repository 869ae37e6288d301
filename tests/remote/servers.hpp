// Servers on loopback for the tests of remotes: Debian's redis-server and nginx, and one that answers whatever a test
// says.
//
// Thread-safety: one thread at a time. Ownership: the destructor ends the server and removes its folder.
#pragma once

#include "base/os/child_process.hpp"

#include <kiln/buffer.hpp>
#include <kiln/remote_store.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kiln::test {

class ServerFolder {
 public:
  ServerFolder();
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// A server program that listens on a free port. Throws if it does not answer within ten seconds.
class ServerProcess {
 public:
  int port() const noexcept { return port_; }
  const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  void stop();

 protected:
  ServerProcess();
  void start(const std::filesystem::path& program, std::vector<std::string> arguments, int port);

  ServerFolder folder_;

 private:
  int port_;
  std::unique_ptr<ChildProcess> process_;
};

// Throws if it fails.
void run_shell(const std::string& command);
// ca.crt, and server.crt with server.key for localhost, which it signed.
void make_certificates(const std::filesystem::path& folder);

class RedisServer : public ServerProcess {
 public:
  explicit RedisServer(std::vector<std::string> more = {});
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }
};

// Listens with TLS, with a certificate that authority() signed.
class TlsRedisServer : public ServerProcess {
 public:
  enum class Named : bool { localhost, address };  // what the certificate is for: localhost or 127.0.0.1
  // address: also listens at 127.0.0.2, which the certificate does not name, and asks clients for a certificate.
  explicit TlsRedisServer(Named named = Named::localhost);
  std::string url() const { return "rediss://localhost:" + std::to_string(port()); }
  std::string authority() const { return (folder() / "ca.crt").string(); }
};

// With the DAV module, below /kiln.
class NginxServer : public ServerProcess {
 public:
  explicit NginxServer(const std::string& location = "dav_methods PUT; create_full_put_path on;");
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()) + "/kiln"; }
};

// Accepts connections and gives each to `serve`, on a thread of its own.
class RawServer {
 public:
  using Serve = std::function<void(int connection, const std::atomic<bool>& stop)>;
  explicit RawServer(Serve serve);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  int port() const noexcept { return port_; }
  int connections() const noexcept { return connections_; }

 private:
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// Passes connections on to another port; each direction takes half of the round trip.
class DelayProxy {
 public:
  DelayProxy(int port, std::chrono::microseconds round_trip);
  int port() const noexcept { return server_.port(); }

 private:
  RawServer server_;
};

// Reads what is there, at most until an empty line; then sends the text.
std::string read_request(int connection, const std::atomic<bool>& stop);
void send_text(int connection, std::string_view text);
// Sends one byte of the text at a time.
void drip(int connection, std::string_view text, std::chrono::milliseconds pause, const std::atomic<bool>& stop);

std::filesystem::path program_named(const std::string& name);  // in PATH and /usr/sbin; empty: not installed

RemoteLimits limits_of(std::chrono::milliseconds time, std::uint64_t most_bytes = most_object_bytes);
std::vector<std::byte> some_bytes(std::size_t count, unsigned seed = 1);

}  // namespace kiln::test
