#include <kiln/status.hpp>

#include <catch2/catch.hpp>

#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>

using namespace kiln;

TEST_CASE("status: ok has no message, a failure has code and message", "[contract]") {
  CHECK(ok_status().ok());
  CHECK(ok_status().text() == "ok");
  const Status status = io_error("file a: no space left");
  CHECK_FALSE(status.ok());
  CHECK(status.text() == "io: file a: no space left");
}

TEST_CASE("status: within puts the context in front and keeps the code", "[contract]") {
  const Status status = timed_out("still running").within("job 3");
  CHECK(status.code == StatusCode::timeout);
  CHECK(status.message == "job 3: still running");
  CHECK(ok_status().within("job 3").text() == "ok");
}

TEST_CASE("status: every code has a word of its own", "[contract]") {
  const std::string_view words[] = {"ok",          "invalid_argument", "not_found", "unsupported",
                                    "unavailable", "corrupt",          "io",        "timeout",
                                    "device_lost", "cancelled",        "internal",  "wrong_result"};
  for (std::size_t code = 0; code < std::size(words); ++code) {
    CHECK(to_string(static_cast<StatusCode>(code)) == words[code]);
  }
  CHECK(to_string(static_cast<StatusCode>(std::size(words))) == "invalid");
  const std::pair<Status, std::string_view> made[] = {{invalid_argument("m"), "invalid_argument: m"},
                                                      {not_found("m"), "not_found: m"},
                                                      {unsupported("m"), "unsupported: m"},
                                                      {unavailable("m"), "unavailable: m"},
                                                      {corrupt("m"), "corrupt: m"},
                                                      {io_error("m"), "io: m"},
                                                      {timed_out("m"), "timeout: m"},
                                                      {device_lost("m"), "device_lost: m"},
                                                      {cancelled("m"), "cancelled: m"},
                                                      {internal_error("m"), "internal: m"},
                                                      {wrong_result("m"), "wrong_result: m"}};
  for (const auto& [status, text] : made) CHECK(status.text() == text);
}

TEST_CASE("status: an exception becomes a status by its type, within a context", "[contract]") {
  const auto caught_from = [](const auto& thrower, std::string_view context) {
    try {
      thrower();
    } catch (...) {
      return caught(context).text();
    }
    return std::string("nothing was thrown");
  };
  const auto no_memory = [] { throw std::bad_alloc(); };
  const auto no_threads = [] { throw std::system_error(EAGAIN, std::generic_category(), "no thread"); };
  const auto wrong = [] { throw std::logic_error("a bug"); };
  const auto number = [] { throw 3; };
  CHECK(caught_from(no_memory, {}) == "unavailable: out of memory");
  CHECK(caught_from(no_memory, "job a") == "unavailable: job a: out of memory");
  CHECK(caught_from(no_threads, "job a") ==
        "unavailable: job a: no thread: " + std::generic_category().message(EAGAIN));
  CHECK(caught_from(wrong, {}) == "internal: a bug");
  CHECK(caught_from(wrong, "job a") == "internal: job a: a bug");
  CHECK(caught_from(number, {}) == "internal: an exception of unknown type was thrown");
}

TEST_CASE("result: a value or a failure", "[contract]") {
  Result<std::unique_ptr<int>> good(std::make_unique<int>(7));
  REQUIRE(good);
  CHECK(**good == 7);
  const std::unique_ptr<int> moved = std::move(good).value();
  CHECK(*moved == 7);

  const Result<std::string> bad(not_found("nothing here"));
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == StatusCode::not_found);
  CHECK(Result<std::string>(not_found("x")).value_or("other") == "other");
  CHECK(Result<std::string>(std::string("mine")).value_or("other") == "mine");
}

TEST_CASE("result: one made from an ok Status is a bug that is told", "[contract]") {
  const Result<int> result(ok_status());
  REQUIRE_FALSE(result);
  CHECK(result.error().code == StatusCode::internal);
}
