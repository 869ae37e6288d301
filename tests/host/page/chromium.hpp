// A headless Chromium that a test drives over two pipes by the DevTools protocol: a page is opened, asked, operated by
// keys and pictured; what it complained of and what it fetched is kept.
//
// Thread-safety: one thread at a time. Ownership: owns the process and its profile, both gone with it. What the browser
// refuses is an exception that names the call.
#pragma once

#include "host/kiln_process.hpp"

#include <nlohmann/json.hpp>

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {

struct Screen {
  int width = 1280, height = 900;
  bool dark = false;
};

class Chromium {
 public:
  // Throws where Chromium is not installed: a report that was looked at by no browser is not tested.
  Chromium();
  ~Chromium();
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  // Until the page has loaded. Complaints begin anew.
  void open(const std::filesystem::path& page, const Screen& screen);
  // The value of an expression, which may be a promise's.
  nlohmann::json ask(const std::string& expression);
  void press(const std::string& key);  // "Tab", "Enter", "ArrowRight", …
  // The whole page, or what one element takes; of what is very long the beginning.
  void picture(const std::filesystem::path& file, const std::string& selector = {});
  std::size_t print_bytes();  // of the page as PDF

  // Errors of scripts and of the console, what the policy forbade, and everything that was fetched but the page.
  const std::vector<std::string>& complaints() const noexcept { return complaints_; }

 private:
  nlohmann::json call(const std::string& method, const nlohmann::json& parameters = nlohmann::json::object());
  nlohmann::json next_message();
  void take_event(const nlohmann::json& message);
  void start(const std::vector<std::string>& words);

  TemporaryFolder profile_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  std::string received_;
  int last_call_ = 0;
  std::string session_;
  std::string page_url_;
  std::vector<std::string> complaints_;
  std::vector<std::string> events_;  // names of those that came since open()
};

}  // namespace kiln::test
