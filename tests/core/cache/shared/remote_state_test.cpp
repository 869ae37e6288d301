// What processes keep of a remote's answers: how long it is left alone, and the bytes of that in a file.
#include "core/cache/shared/sharing.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("remote state: the pause is 10 s and doubles with each failure, at most 60 s") {
  const auto now_ms = [] { return std::chrono::system_clock::now().time_since_epoch() / 1ms; };
  RemoteBreaker breaker({}, true, url);  // without a folder: nothing else changes its state
  CHECK(breaker.allows_jobs());
  std::uint64_t failures = 0;
  for (const std::int64_t pause_ms : {10'000, 20'000, 40'000, 60'000, 60'000}) {
    CAPTURE(pause_ms);
    const std::int64_t before = now_ms();
    breaker.probe_failed();
    ++failures;
    const std::int64_t after = now_ms();
    CHECK(breaker.state().closed_until_ms >= before + pause_ms);
    CHECK(breaker.state().closed_until_ms <= after + pause_ms);
    CHECK(breaker.state().failures == failures);
    CHECK(breaker.has_failed());
    CHECK_FALSE(breaker.allows_jobs());
  }
  const std::int64_t until = breaker.state().closed_until_ms;
  breaker.failed();  // it was sent before the pause
  CHECK(breaker.state().failures == failures);
  CHECK(breaker.state().closed_until_ms == until);
  breaker.succeeded();
  CHECK(breaker.state().failures == 0);
  CHECK(breaker.state().closed_until_ms == 0);
  CHECK(breaker.allows_jobs());
  breaker.failed();  // a row begins anew
  CHECK(breaker.state().failures == 1);
  CHECK(breaker.state().closed_until_ms <= now_ms() + 10'000);
}

TEST_CASE("remote state: a pause that a server demands ends after ten minutes at most") {
  const auto now_ms = [] { return std::chrono::system_clock::now().time_since_epoch() / 1ms; };
  for (const std::chrono::seconds demanded : {std::chrono::seconds(3600), std::chrono::seconds::max()}) {
    RemoteBreaker breaker({}, true, url);
    breaker.failed(demanded);
    CHECK(breaker.state().closed_until_ms > now_ms() + 590'000);
    CHECK(breaker.state().closed_until_ms <= now_ms() + 600'000);
  }
}

TEST_CASE("remote state: it is read as it was written, and anything else means nothing is known") {
  RemoteState state{1234, 5, 678, 9012, 34};
  const std::string text = encode_remote_state(state);
  const RemoteState read = decode_remote_state(text);
  CHECK(read.closed_until_ms == 1234);
  CHECK(read.failures == 5);
  CHECK(read.round_trip_us == 678);
  CHECK(read.slow_us == 9012);
  CHECK(read.late_until_ms == 34);
  for (const std::string& bad :
       {std::string(), text.substr(1), text + " ", std::string(text.size(), 'x'), std::string(text.size(), '9')}) {
    CHECK(decode_remote_state(bad).failures == 0);
  }
}

TEST_CASE("remote index: what is wrong with its bytes is told with both sides") {
  const auto key = [](std::uint8_t first) {
    Digest digest{};
    digest.bytes[0] = first;
    return digest;
  };
  const RemoteIndex index{{key(1), 10}, {key(2), 1'000'000}, {key(9), 0}};
  const std::vector<std::byte> bytes = encode_remote_index(index);
  REQUIRE(bytes.size() == 16 + 3 * 40);
  const auto error_with = [&](std::size_t at, int value) {
    auto changed = bytes;
    changed.at(at) = static_cast<std::byte>(value);
    const auto decoded = decode_remote_index(changed);
    return decoded ? "ok" : decoded.error().text();
  };
  CHECK(decode_remote_index(std::span(bytes).first(15)).error().text() ==
        "corrupt: index: has 15 bytes, expected at least 16");
  CHECK(decode_remote_index(std::span(bytes).first(135)).error().text() ==
        "corrupt: index: has 135 bytes, expected 136");
  for (const std::size_t at : {0u, 7u}) CHECK(error_with(at, 'x') == "corrupt: index: does not begin with KILNINDX");
  CHECK(error_with(8, 2) == "corrupt: index: has schema 2, expected 1");
  CHECK(error_with(12, 4) == "corrupt: index: has 136 bytes, expected 176");
  CHECK(error_with(16, 2) == "corrupt: index: entries are not sorted by key");  // equal to the next
  CHECK(error_with(96, 1) == "corrupt: index: entries are not sorted by key");  // less than the one before
  CHECK(error_with(16 + 32, 11) == "ok");                                       // a time
}

}  // namespace
}  // namespace kiln::test
