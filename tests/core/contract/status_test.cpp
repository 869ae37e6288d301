#include <kiln/status.hpp>

#include <catch2/catch.hpp>

#include <memory>
#include <set>

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
  std::set<std::string_view> words;
  for (int code = 0; code <= static_cast<int>(StatusCode::internal); ++code) {
    words.insert(to_string(static_cast<StatusCode>(code)));
  }
  CHECK(words.size() == static_cast<std::size_t>(StatusCode::internal) + 1);
  CHECK_FALSE(words.contains("invalid"));
  CHECK(to_string(device_lost("").code) == "device_lost");
  CHECK(to_string(invalid_argument("").code) == "invalid_argument");
  CHECK(to_string(not_found("").code) == "not_found");
  CHECK(to_string(unsupported("").code) == "unsupported");
  CHECK(to_string(unavailable("").code) == "unavailable");
  CHECK(to_string(corrupt("").code) == "corrupt");
  CHECK(to_string(internal_error("").code) == "internal");
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
