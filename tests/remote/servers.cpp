#include "remote/servers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <random>
#include <stdexcept>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

UniqueFd listener_on(int port) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 64) != 0) {
    throw std::runtime_error("no port on loopback");
  }
  return listener;
}

int port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

int free_port() { return port_of(listener_on(0).get()); }

bool answers(int port) {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

void run_shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void make_certificates(const std::filesystem::path& folder) {
  run_shell("cd " + folder.string() +
            " && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=kiln-test-ca "
            "2>/dev/null && openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost "
            "2>/dev/null && printf 'subjectAltName=DNS:localhost' > san && openssl x509 -req -in server.csr -CA ca.crt "
            "-CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile san 2>/dev/null");
}

ServerFolder::ServerFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "kiln-server-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
  path_ = name;
}
ServerFolder::~ServerFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path program_named(const std::string& name) {
  for (const char* folder : {"/usr/bin", "/usr/sbin", "/usr/local/bin"}) {
    if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return std::filesystem::path(folder) / name;
  }
  return {};
}

ServerProcess::ServerProcess() : port_(free_port()) {}

void ServerProcess::stop() {
  if (process_ != nullptr) process_->stop(0ms);
}

void ServerProcess::start(const std::filesystem::path& program, std::vector<std::string> arguments, int port) {
  if (program.empty()) throw std::runtime_error("a server is not installed: scripts/test installs it");
  auto started = ChildProcess::start({program, std::move(arguments), {}, -1});
  if (!started) throw std::runtime_error(started.error().text());
  process_ = std::make_unique<ChildProcess>(std::move(*started));
  for (int i = 0; i < 1000; ++i) {
    if (answers(port)) return;
    if (process_->ended()) break;
    std::this_thread::sleep_for(10ms);
  }
  throw std::runtime_error(program.string() + " does not answer");
}

RedisServer::RedisServer(std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "--port",    std::to_string(port()),      "--bind",       "127.0.0.1", "--save", "", "--dir", folder().string(),
      "--logfile", (folder() / "log").string(), "--appendonly", "no"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  start(program_named("redis-server"), std::move(arguments), port());
}

TlsRedisServer::TlsRedisServer(Named named) {
  const std::string at = folder().string() + "/";
  make_certificates(folder());
  if (named == Named::address) {
    run_shell("cd " + folder().string() +
              " && printf 'subjectAltName=IP:127.0.0.1' > san && openssl x509 -req -in server.csr -CA ca.crt -CAkey "
              "ca.key -CAcreateserial -out server.crt -days 2 -extfile san 2>/dev/null");
  }
  std::vector<std::string> arguments{"--port",
                                     "0",
                                     "--tls-port",
                                     std::to_string(port()),
                                     "--tls-cert-file",
                                     at + "server.crt",
                                     "--tls-key-file",
                                     at + "server.key",
                                     "--tls-ca-cert-file",
                                     at + "ca.crt",
                                     "--tls-auth-clients",
                                     named == Named::address ? "yes" : "no",
                                     "--save",
                                     "",
                                     "--dir",
                                     folder().string(),
                                     "--logfile",
                                     at + "log",
                                     "--bind",
                                     "127.0.0.1"};
  if (named == Named::address) arguments.emplace_back("127.0.0.2");
  start(program_named("redis-server"), std::move(arguments), port());
}

NginxServer::NginxServer(const std::string& location) {
  const std::string at = folder().string();
  std::filesystem::create_directories(folder() / "root" / "kiln");
  std::ofstream(folder() / "nginx.conf")
      << "daemon off; master_process off; pid " << at << "/pid; error_log " << at << "/error.log;\n"
      << "events {}\nhttp { access_log off; client_max_body_size 100m; client_body_temp_path " << at
      << "/body; proxy_temp_path " << at << "/proxy; fastcgi_temp_path " << at << "/fastcgi; uwsgi_temp_path " << at
      << "/uwsgi; scgi_temp_path " << at << "/scgi;\n"
      << "server { listen 127.0.0.1:" << port() << "; root " << at << "/root; location / { " << location << " } } }\n";
  start(program_named("nginx"), {"-c", at + "/nginx.conf", "-p", at, "-e", at + "/error.log"}, port());
}

RawServer::RawServer(Serve serve) : listener_(listener_on(0)), port_(port_of(listener_.get())) {
  acceptor_ = std::thread([this, serve = std::move(serve)] {
    while (!stop_) {
      pollfd polled{listener_.get(), POLLIN, 0};
      if (poll(&polled, 1, 10) <= 0) continue;
      const int accepted = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted < 0) continue;
      ++connections_;
      threads_.emplace_back([this, serve, accepted] {
        const UniqueFd connection(accepted);
        serve(connection.get(), stop_);
      });
    }
  });
}

RawServer::~RawServer() {
  stop_ = true;
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
}

DelayProxy::DelayProxy(int port, std::chrono::microseconds round_trip)
    : server_([port, half = round_trip / 2](int connection, const std::atomic<bool>& stop) {
        const UniqueFd upstream(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const sockaddr_in address = loopback(port);
        if (connect(upstream.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
        struct Part {
          Clock::time_point due;
          int to;
          std::string bytes;
        };
        std::deque<Part> parts;
        bool open = true;
        while (!stop && (open || !parts.empty())) {
          pollfd polled[] = {{connection, POLLIN, 0}, {upstream.get(), POLLIN, 0}};
          timespec wait{0, parts.empty() ? 10'000'000 : 200'000};
          if (open && ppoll(polled, 2, &wait, nullptr) > 0) {
            for (int side = 0; side < 2; ++side) {
              if (polled[side].revents == 0) continue;
              char bytes[64 << 10];
              const ssize_t count = recv(polled[side].fd, bytes, sizeof bytes, 0);
              if (count <= 0) {
                open = false;
                continue;
              }
              parts.push_back({Clock::now() + half, side == 0 ? upstream.get() : connection,
                               std::string(bytes, static_cast<std::size_t>(count))});
            }
          }
          while (!parts.empty() && parts.front().due <= Clock::now()) {
            send_text(parts.front().to, parts.front().bytes);
            parts.pop_front();
          }
        }
      }) {}

std::string read_request(int connection, const std::atomic<bool>& stop) {
  std::string text;
  while (!stop && text.find("\r\n\r\n") == std::string::npos) {
    pollfd polled{connection, POLLIN, 0};
    if (poll(&polled, 1, 10) <= 0) continue;
    char bytes[4096];
    const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
    if (count <= 0) break;
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.starts_with('*')) break;  // Redis has no empty line
  }
  return text;
}

void send_text(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void drip(int connection, std::string_view text, std::chrono::milliseconds pause, const std::atomic<bool>& stop) {
  for (const char& each : text) {
    if (send(connection, &each, 1, MSG_NOSIGNAL) != 1) return;
    for (auto left = pause; left > 0ms && !stop; left -= 10ms) std::this_thread::sleep_for(10ms);
    if (stop) return;
  }
}

RemoteLimits limits_of(std::chrono::milliseconds time, std::uint64_t most_bytes) {
  return {.deadline = Deadline::after(time), .connect = 2s, .most_bytes = most_bytes, .stop = nullptr};
}

std::vector<std::byte> some_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace kiln::test
