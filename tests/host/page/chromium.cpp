#include "host/page/chromium.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace kiln::test {
namespace {

using nlohmann::json;

constexpr int answer_patience_ms = 120'000;
constexpr int reads_from = 3;  // the browser's ends of the pipes, by its documentation
constexpr int writes_to = 4;
constexpr double most_picture_height = 16'000;  // what a surface of the browser can have

std::string browser_file() {
  for (const char* file : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (access(file, X_OK) == 0) return file;
  }
  throw std::runtime_error("Chromium is not installed (apt-get install chromium): no page can be looked at");
}

// Above the numbers that the browser's ends get.
std::array<int, 2> high_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  for (int& end : ends) {
    const int high = fcntl(end, F_DUPFD_CLOEXEC, 10);
    if (high < 0) throw std::runtime_error("fcntl");
    close(std::exchange(end, high));
  }
  return ends;
}

std::string url_of(const std::filesystem::path& file) {
  std::string url = "file://";
  for (const char c : file.string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '.' || c == '-' || c == '_';
    char coded[4];
    std::snprintf(coded, sizeof coded, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    url += plain ? std::string(1, c) : coded;
  }
  return url;
}

std::string bytes_of_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  return bytes;
}

}  // namespace

Chromium::Chromium() {
  start({browser_file(), "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
         "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-US",
         "--user-data-dir=" + (profile_ / "profile").string(), "about:blank"});
  const std::string target = call("Target.createTarget", {{"url", "about:blank"}}).at("targetId");
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}}).at("sessionId");
  for (const char* domain : {"Page", "Runtime", "Log", "Network"}) call(std::string(domain) + ".enable");
}

Chromium::~Chromium() {
  close(to_);
  close(from_);
  kill(-process_, SIGKILL);  // with the processes that it made
  waitpid(process_, nullptr, 0);
}

void Chromium::start(const std::vector<std::string>& words) {
  const auto in = high_pipe();
  const auto out = high_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], reads_from);
  posix_spawn_file_actions_adddup2(&actions, out[1], writes_to);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> mine = words;
  std::vector<char*> arguments;
  for (std::string& word : mine) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string home = "HOME=" + profile_.path().string();
  std::vector<std::string> variables{home};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool left_out = text.starts_with("HOME=") || text.starts_with("LD_PRELOAD=") || text.starts_with("XDG_");
    if (!left_out) variables.emplace_back(text);
  }
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const int failed = posix_spawn(&process_, arguments[0], &actions, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (failed != 0) throw std::runtime_error(words.front() + ": " + std::strerror(failed));
}

json Chromium::next_message() {
  while (true) {
    const std::size_t end = received_.find('\0');
    if (end != std::string::npos) {
      json message = json::parse(received_.substr(0, end));
      received_.erase(0, end + 1);
      return message;
    }
    pollfd waiting{from_, POLLIN, 0};
    if (poll(&waiting, 1, answer_patience_ms) <= 0) throw std::runtime_error("Chromium does not answer");
    char part[65536];
    const ssize_t count = read(from_, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error("Chromium has ended");
    received_.append(part, static_cast<std::size_t>(count));
  }
}

void Chromium::take_event(const json& message) {
  const std::string method = message.at("method");
  const json& what = message.at("params");
  events_.push_back(method);
  if (method == "Runtime.exceptionThrown") complaints_.push_back("exception: " + what.at("exceptionDetails").dump());
  if (method == "Runtime.consoleAPICalled") complaints_.push_back("console: " + what.dump());
  if (method == "Log.entryAdded") complaints_.push_back("log: " + what.at("entry").dump());
  if (method != "Network.requestWillBeSent") return;
  const std::string url = what.at("request").at("url");
  if (url != page_url_ && !url.starts_with("data:") && url != "about:blank") complaints_.push_back("fetched: " + url);
}

json Chromium::call(const std::string& method, const json& parameters) {
  json request{{"id", ++last_call_}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) request["sessionId"] = session_;
  std::string text = request.dump();
  text += '\0';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = write(to_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error("Chromium has ended");
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  while (true) {
    const json message = next_message();
    if (!message.contains("id")) {
      take_event(message);
    } else if (message["id"] == last_call_) {
      if (message.contains("error")) throw std::runtime_error(method + ": " + message["error"].dump());
      return message.at("result");
    }
  }
}

void Chromium::open(const std::filesystem::path& page, const Screen& screen) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", screen.width}, {"height", screen.height}, {"deviceScaleFactor", 1}, {"mobile", screen.width < 600}});
  const json scheme{{"name", "prefers-color-scheme"}, {"value", screen.dark ? "dark" : "light"}};
  call("Emulation.setEmulatedMedia", {{"media", ""}, {"features", json::array({scheme})}});
  complaints_.clear();
  events_.clear();
  page_url_ = url_of(page);
  const json begun = call("Page.navigate", {{"url", page_url_}});
  if (begun.contains("errorText")) throw std::runtime_error(page_url_ + ": " + begun["errorText"].dump());
  while (std::ranges::find(events_, "Page.loadEventFired") == events_.end()) take_event(next_message());
}

json Chromium::ask(const std::string& expression) {
  const json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) throw std::runtime_error(answer["exceptionDetails"].dump());
  return answer.at("result").value("value", json());
}

void Chromium::press(const std::string& key) {
  json event{{"type", "keyDown"}, {"key", key}, {"code", key}};
  if (key == "Tab") event["windowsVirtualKeyCode"] = 9;
  if (key == "Enter") event["windowsVirtualKeyCode"] = 13, event["text"] = "\r";
  call("Input.dispatchKeyEvent", event);
  event["type"] = "keyUp";
  event.erase("text");
  call("Input.dispatchKeyEvent", event);
}

void Chromium::picture(const std::filesystem::path& file, const std::string& selector) {
  const std::string of = selector.empty() ? "document.documentElement" : "document.querySelector('" + selector + "')";
  json box = ask("(() => { const r = " + of +
                 ".getBoundingClientRect(); return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: "
                 "r.height, scale: 1}; })()");
  box["height"] = std::min(box.at("height").get<double>(), most_picture_height);
  const json taken =
      call("Page.captureScreenshot", {{"format", "png"}, {"clip", box}, {"captureBeyondViewport", true}});
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes_of_base64(taken.at("data"));
}

std::size_t Chromium::print_bytes() {
  return bytes_of_base64(call("Page.printToPDF", {{"printBackground", true}}).at("data")).size();
}

}  // namespace kiln::test
