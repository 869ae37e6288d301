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

TEST_CASE("remote state: which numbers of a state are believed") {
  const auto is_known = [](const RemoteState& state) {
    RemoteState with_failures = state;
    with_failures.failures = 3;
    return decode_remote_state(encode_remote_state(with_failures)).failures == 3;
  };
  CHECK(is_known({}));
  CHECK(is_known({.closed_until_ms = INT64_MAX}));
  CHECK(is_known({.round_trip_us = 60'000'000}));
  CHECK_FALSE(is_known({.round_trip_us = 60'000'001}));
  CHECK(is_known({.slow_us = 60'000'000}));
  CHECK_FALSE(is_known({.slow_us = 60'000'001}));
  const std::string zero(20, '0'), large = "09223372036854775808";  // 2^63
  const auto failures_of = [](const std::string& text) { return decode_remote_state(text).failures; };
  const std::string three = "00000000000000000003";
  CHECK(failures_of(zero + " " + three + " " + zero + " " + zero + " " + zero + "\n") == 3);
  CHECK(failures_of(large + " " + three + " " + zero + " " + zero + " " + zero + "\n") == 0);
  CHECK(failures_of(zero + " " + three + " " + zero + " " + zero + " " + large + "\n") == 0);
  for (const std::size_t at : {20u, 41u, 62u, 83u, 104u}) {  // blanks and the newline
    std::string text = zero + " " + three + " " + zero + " " + zero + " " + zero + "\n";
    REQUIRE(text.size() == 105);
    text[at] = 'x';
    CHECK(failures_of(text) == 0);
  }
  for (const std::size_t at : {0u, 19u, 84u, 103u}) {  // no digits
    std::string text = zero + " " + three + " " + zero + " " + zero + " " + zero + "\n";
    text[at] = 'x';
    CHECK(failures_of(text) == 0);
  }
}

TEST_CASE("remote totals: they are read as they were written, and damaged text counts nothing") {
  RemoteTotals totals;
  std::uint64_t count = 0;
  for (const auto& [name, member] : remote_total_names()) totals.*member = ++count;
  CHECK(totals.found == 1);
  CHECK(totals.bytes_written == 8);
  const std::string text = encode_remote_totals(totals);
  CHECK(text == "found 1\nabsent 2\nrefused 3\nfailed 4\nwritten 5\nwrite_failed 6\nbytes_read 7\nbytes_written 8\n");
  CHECK(decode_remote_totals(text) == totals);
  CHECK(decode_remote_totals("of_a_newer_version 9\n" + text) == totals);
  CHECK(decode_remote_totals("found 18446744073709551615\n").found == UINT64_MAX);
  CHECK(decode_remote_totals("") == RemoteTotals{});
  for (const std::string bad : {"found 1", "found\nabsent 2\n", "found 1x\n", "found \n", "found -1\n", "\n",
                                "found 18446744073709551616\n", "found 1\nabsent"}) {
    INFO(bad);
    CHECK(decode_remote_totals(bad) == RemoteTotals{});
  }
}

TEST_CASE("remote totals: processes add to what is there") {
  const Workplace place;
  std::filesystem::create_directory(place.config.directory);
  std::filesystem::permissions(place.config.directory, std::filesystem::perms::owner_all);
  const auto& folder = place.config.directory;
  add_remote_totals(folder, url, {});
  CHECK(std::filesystem::is_empty(folder));  // nothing to add
  RemoteTotals once;
  once.found = 2, once.bytes_read = 100;
  add_remote_totals(folder, url, once);
  add_remote_totals(folder, url, once);
  CHECK(read_remote_totals(folder, url).found == 4);
  CHECK(read_remote_totals(folder, url).bytes_read == 200);
  CHECK(read_remote_totals(folder, url + "/other") == RemoteTotals{});
  CHECK(read_remote_totals({}, url) == RemoteTotals{});
  add_remote_totals({}, url, once);
  add_remote_totals(place.temporary.path() / "none", url, once);
  CHECK_FALSE(std::filesystem::exists(place.temporary.path() / "none"));
}

TEST_CASE("remote state: answers that are late keep jobs away, ten seconds at most, and failures do not end it") {
  const auto now_ms = [] { return std::chrono::system_clock::now().time_since_epoch() / 1ms; };
  RemoteBreaker breaker({}, true, url);
  breaker.answered_late();
  CHECK(breaker.state().late_until_ms == 0);
  const std::int64_t before = now_ms();
  breaker.late(60s);
  CHECK(breaker.state().late_until_ms >= before + 10'000);
  CHECK(breaker.state().late_until_ms <= now_ms() + 10'000);
  CHECK_FALSE(breaker.allows_jobs());
  CHECK_FALSE(breaker.has_failed());
  CHECK_FALSE(breaker.is_probe_due());
  breaker.succeeded();
  CHECK_FALSE(breaker.allows_jobs());
  breaker.answered_late();
  CHECK(breaker.allows_jobs());
  breaker.late(0ms);
  CHECK(breaker.allows_jobs());
  breaker.measured(12, 34);
  CHECK(breaker.state().round_trip_us == 12);
  CHECK(breaker.state().slow_us == 34);
}

TEST_CASE("remote state: a probe is due to one caller when the pause has ended, or lies too far ahead") {
  const auto now_ms = [] { return std::chrono::system_clock::now().time_since_epoch() / 1ms; };
  const Workplace place;
  std::filesystem::create_directories(place.config.directory / "remote");
  for (const auto& folder : {place.config.directory, place.config.directory / "remote"}) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  }
  const auto file = place.config.directory / "remote" / (remote_file_stem(url) + ".state");
  const auto put = [&](const RemoteState& state) {
    std::ofstream(file) << encode_remote_state(state);
    std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  };
  const auto due = [&] { return RemoteBreaker(place.config.directory, true, url).is_probe_due(); };
  put({});
  CHECK_FALSE(due());  // nothing failed
  put({.closed_until_ms = now_ms() + 300'000, .failures = 1});
  CHECK_FALSE(due());
  put({.closed_until_ms = now_ms() - 1, .failures = 1});
  const std::int64_t before = now_ms();
  CHECK(due());
  const RemoteState during = RemoteBreaker(place.config.directory, true, url).state();
  CHECK(during.failures == 1);
  CHECK(during.closed_until_ms >= before + 1000);
  CHECK(during.closed_until_ms <= now_ms() + 1000);
  put({.closed_until_ms = now_ms() + 700'000, .failures = 1});  // the clock was set back
  CHECK(due());
  put({.closed_until_ms = now_ms() - 1, .failures = 2});
  RemoteBreaker breaker(place.config.directory, true, url);
  breaker.succeeded();
  const RemoteState after = RemoteBreaker(place.config.directory, true, url).state();
  CHECK(after.failures == 0);
  CHECK(after.closed_until_ms == 0);
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

TEST_CASE("remote state: processes see what the others learned") {
  const Workplace place;
  const auto& folder = place.config.directory;
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  const auto other = [&] { return RemoteBreaker(folder, true, url); };
  other().late(5s);
  CHECK_FALSE(other().allows_jobs());
  other().answered_late();
  CHECK(other().state().late_until_ms == 0);
  const std::pair<bool, std::uint64_t> failures[] = {{false, 1}, {true, 2}, {false, 2}, {true, 3}};
  for (const auto& [is_probe, expected] : failures) {  // in the pause only a probe counts
    RemoteBreaker one(folder, true, url);
    is_probe ? one.probe_failed() : one.failed();
    CHECK(other().state().failures == expected);
  }
  other().measured(12, 34);
  other().late(5s);
  CHECK(other().state().failures == 3);
  CHECK(other().state().slow_us == 34);
  other().succeeded();
  CHECK(other().state().failures == 0);
  CHECK(other().state().round_trip_us == 12);
}

}  // namespace
}  // namespace kiln::test
