// The files of a driver's own cache that are stored with a program.
#include "cache/driver_scratch.hpp"
#include "cache/entry_format.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/digest.hpp>
#include <kiln/driver_cache.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "core/cache/driver_folder.hpp"
#include "support/in_child.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("cache::program_payload: a program comes back with its driver's files") {
  const ProgramBinary program =
      with_files({{"a/b", test::copied_bytes("one")}, {"a/c", {}}, {"index2", test::copied_bytes("x")}});
  const auto decoded = decode_payload(program.format, encode_payload(program));
  REQUIRE(decoded);
  CHECK(decoded->bytes == program.bytes);
  CHECK(decoded->driver_files == program.driver_files);
  CHECK(decoded->driver_setting == some_setting);
  const auto plain = decode_payload("x", encode_payload({"x", test::copied_bytes("only this")}));
  REQUIRE(plain);
  CHECK(plain->driver_files.empty());
  CHECK(plain->driver_setting.empty());
}

TEST_CASE("cache::program_payload: a file's name has these characters, 255 in a part, 512 in all, and eight parts") {
  const std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (int code = 0; code < 256; ++code) {
    const char c = static_cast<char>(code);
    CAPTURE(code);
    CHECK(is_driver_file_name(std::string("a") + c) == (plain.find(c) != std::string_view::npos));
  }
  const std::string longest(255, 'x');
  CHECK(is_driver_file_name(longest));
  CHECK(is_driver_file_name(longest + "/" + longest.substr(1) + "/y"));  // 512
  CHECK_FALSE(is_driver_file_name(longest + "/" + longest + "/y"));
  CHECK(is_driver_file_name("a/b/c/d/e/f/g/h"));
}

TEST_CASE("cache::program_payload: names that lead elsewhere, too many files and cut bytes are refused") {
  const std::string names[] = {"",
                               "/etc/passwd",
                               "..",
                               "../x",
                               "a/../../x",
                               "a//b",
                               "a/",
                               ".hidden",
                               "a/.b",
                               "with space",
                               "a\nb",
                               "a\\b",
                               "a/b/c/d/e/f/g/h/i",
                               std::string(256, 'x'),
                               std::string("nul\0byte", 8)};
  for (const std::string& name : names) {
    INFO(name);
    CHECK_FALSE(is_driver_file_name(name));
    const auto decoded = decode_payload("f", encode_payload(with_files({{name, test::copied_bytes("bad")}})));
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == StatusCode::corrupt);
  }
  std::vector<DriverFile> many;
  for (std::size_t i = 0; i <= most_driver_files; ++i) many.push_back({"f" + std::to_string(10'000 + i), {}});
  CHECK_FALSE(decode_payload("f", encode_payload(with_files(many))));
  many.pop_back();
  CHECK(decode_payload("f", encode_payload(with_files(many))));
  CHECK_FALSE(decode_payload("f", encode_payload(with_files({{"b", {}}, {"a", {}}}))));  // not in order
  CHECK_FALSE(decode_payload("f", encode_payload(with_files({{"a", {}}, {"a", {}}}))));  // one name twice
  const std::vector<std::byte> whole = encode_payload(with_files({{"a/b", test::copied_bytes("content")}}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const auto cut = decode_payload("f", std::span(whole).first(size));
    // Behind the binary alone the rest is a payload of its own: no file of it is left.
    if (cut) CHECK(cut->driver_files.empty());
  }
}

namespace {

// A program that is stored with a driver file, and a process that uses a private folder for the driver's cache.
struct StoredWithFiles : PointedAt, test::Workplace {
  test::SyntheticDevice device;
  const std::shared_ptr<DriverScratch> kept = DriverScratch::of_process();  // the folder outlives each cache

  StoredWithFiles() {
    REQUIRE(kept != nullptr);
    device.driver_files = {{"mesa/aa/one", test::copied_bytes("code")}};
    device.driver_setting = some_setting;
    REQUIRE(test::acquire(*open(), "one", device));
  }
};

}  // namespace

TEST_CASE("cache::driver_files: a stored program is dispatched once while it is marked, where it has driver files") {
  StoredWithFiles s;
  CHECK(s.device.dispatched_nothing == 0);  // what was built was dispatched where it was built
  const auto got = test::acquire(*s.open(), "one", s.device);
  REQUIRE(got);
  CHECK(got->tier == Tier::disk);
  CHECK(s.device.dispatched_nothing == 1);
  CHECK(text_in(s.folder / "mesa/aa/one") == "code");
  s.device.driver_setting = another_setting;  // of a driver of another build: its files are not given to this one
  REQUIRE(test::acquire(*s.open(), "two", s.device));
  CHECK(test::acquire(*s.open(), "two", s.device)->tier == Tier::disk);
  CHECK(s.device.dispatched_nothing == 1);
}

TEST_CASE("cache::driver_files: a first dispatch that does not end drops the entry, and the next start recovers") {
  StoredWithFiles s;
  s.device.hangs_after = 0;
  {
    ProcessSharing sharing;
    sharing.dispatch_patience = std::chrono::milliseconds(5);
    const auto cache = s.open(sharing);
    const auto got = test::acquire(*cache, "one", s.device);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == StatusCode::device_lost);
    CHECK_THAT(got.error().message, Catch::Contains("the label of one") && Catch::Contains("first dispatch"));
    CHECK(cache->stats().rejected.refused == 1);
  }
  CHECK(s.files(".bin").empty());
  s.device.hangs_after = std::numeric_limits<int>::max();
  CHECK(test::acquire(*s.open(), "one", s.device)->tier == Tier::built);
  CHECK(test::acquire(*s.open(), "one", s.device)->tier == Tier::disk);
}

TEST_CASE("cache::driver_files: a built program whose first dispatch does not end is not served or stored") {
  StoredWithFiles s;
  s.device.facts().driver_cache = "adopted";
  s.device.hangs_after = s.device.dispatched_nothing.load();
  ProcessSharing sharing;
  sharing.dispatch_patience = std::chrono::milliseconds(5);
  const auto got = test::acquire(*s.open(sharing), "two", s.device);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == StatusCode::timeout);
  CHECK_THAT(got.error().message, Catch::Contains("program 'the label of two': its first dispatch: "));
  CHECK(s.files(".bin").size() == 1);
}

TEST_CASE("cache::driver_files: an inspected program lists its driver files") {
  StoredWithFiles s;
  const auto inspected = inspect_program(s.config, "the label of one");
  REQUIRE(inspected);
  REQUIRE(inspected->driver_files.size() == 1);
  CHECK(inspected->driver_files[0].name == "mesa/aa/one");
  CHECK(inspected->driver_files[0].bytes == 4);
}

TEST_CASE("cache::driver_files: a process that dies at the first dispatch makes the program suspect, files included") {
  StoredWithFiles s;
  int tried = 0;
  TrialOutcome outcome{TrialVerdict::died, "SIGSEGV"};
  s.trial = [&](const ProgramKey&, const ProgramBinary& stored, const DeviceInfo&) {
    CHECK(stored.driver_files == s.device.driver_files);
    CHECK(stored.driver_setting == some_setting);
    ++tried;
    return outcome;
  };
  const auto die = [&] {
    return test::in_child([&]() -> std::string {
      s.device.on_dispatch = [] { kill(getpid(), SIGKILL); };
      return test::acquire(*s.open(), "one", s.device) ? "was served" : "was refused";
    });
  };
  CHECK(die().signal == SIGKILL);
  SECTION("and a child dies of it too: it is built anew") {
    CHECK(test::acquire(*s.open(), "one", s.device)->tier == Tier::built);
    CHECK(s.files(".quarantined").size() == 1);
  }
  SECTION("and a child does not: it is loaded again") {
    outcome = {TrialVerdict::good, {}};
    CHECK(test::acquire(*s.open(), "one", s.device)->tier == Tier::disk);
    CHECK(s.files(".quarantined").empty());
  }
  CHECK(tried == 1);
}

TEST_CASE("cache::driver_files: without a folder for them a program is built, stored and loaded alone") {
  test::Workplace place;
  test::SyntheticDevice device;
  device.facts().driver_cache = "adopted";
  CHECK(test::acquire(*place.open(), "two", device)->tier == Tier::built);
  CHECK(test::acquire(*place.open(), "two", device)->tier == Tier::disk);
}

// The driver writes a file at the first dispatch; it is looked for where that dispatch took long enough, for the build.
TEST_CASE(
    "cache::driver_files: what a first dispatch compiled is stored where it took a twentieth of the build or more") {
  StoredWithFiles s;
  s.device.facts().driver_cache = "adopted";
  const auto has_late_file_after = [&](const std::string& text, std::chrono::milliseconds build,
                                       std::uint64_t dispatch_ns, bool is_first = true) {
    s.device.on_build = [build](const KernelSource&) { std::this_thread::sleep_for(build); };
    const auto cache = s.open();
    REQUIRE(test::acquire(*cache, text, s.device)->tier == Tier::built);
    fs::create_directories(s.folder / "mesa");
    std::ofstream(s.folder / "mesa" / text) << "late";
    Measurement first;
    first.first_run = is_first;
    first.wall_ns = dispatch_ns;
    cache->record(test::key_for(text, s.device), s.device, first, 0);
    cache->record(test::key_for(text, s.device), s.device, first, 0);  // nothing is new
    // As another process: with a folder of its own.
    const fs::path other = s.around / "driver" / DriverScratch::new_name(some_setting);
    REQUIRE(prepare_driver_cache(other).ok());
    setenv("MESA_SHADER_CACHE_DIR", other.c_str(), 1);
    const auto again = s.open();
    setenv("MESA_SHADER_CACHE_DIR", s.folder.c_str(), 1);
    REQUIRE(test::acquire(*again, text, s.device)->tier == Tier::disk);
    const bool has_file = fs::exists(other / "mesa" / text);
    const std::string said =
        "program 'the label of " + text + "': the driver compiled at its first dispatch; driver files added: ";
    CHECK(s.log.said(said) == (has_file ? 1 : 0));
    CHECK(s.log.said("has no driver files") == 0);
    return has_file;
  };
  using std::chrono::milliseconds;
  CHECK(has_late_file_after("two", milliseconds(0), 5'000'000));
  CHECK_FALSE(has_late_file_after("three", milliseconds(0), 4'999'999));
  CHECK_FALSE(has_late_file_after("four", milliseconds(400), 19'000'000));
  CHECK(has_late_file_after("five", milliseconds(400), 400'000'000));
  CHECK_FALSE(has_late_file_after("six", milliseconds(0), 400'000'000, false));  // a later dispatch compiles nothing
}

}  // namespace kiln
