// The files of a driver's own cache that are stored with a program, and the private folder in which the driver gets
// them.
#include "cache/driver_scratch.hpp"
#include "cache/entry_format.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/digest.hpp>
#include <kiln/driver_cache.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <limits>
#include <thread>

#include "core/cache/copied_bytes.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

const std::string some_setting(64, 'a'), another_setting(64, 'b');

ProgramBinary with_files(std::vector<DriverFile> files) {
  ProgramBinary program{"gl:875f", test::copied_bytes("the binary")};
  program.driver_files = std::move(files);
  program.driver_setting = some_setting;
  return program;
}

std::string text_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder as driver_environment() names one, told to this process by the variable for as long as it lives.
struct PointedAt {
  test::CacheTestFolder temporary;
  fs::path around = temporary.path() / "around";
  fs::path folder = around / "driver" / DriverScratch::new_name(some_setting);

  PointedAt() {
    REQUIRE(prepare_driver_cache(folder).ok());
    setenv("MESA_SHADER_CACHE_DIR", folder.c_str(), 1);
  }
  ~PointedAt() { unsetenv("MESA_SHADER_CACHE_DIR"); }
};

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

TEST_CASE("cache::driver_scratch: files are placed for the same setting only, and the last user removes the folder") {
  const PointedAt at;
  auto scratch = DriverScratch::of_process();
  REQUIRE(scratch != nullptr);
  CHECK(scratch->setting() == some_setting);
  auto other = with_files({{"mesa/cc/file", test::copied_bytes("for another driver")}});
  other.driver_setting = another_setting;
  REQUIRE(scratch->place(other).ok());
  CHECK_FALSE(fs::exists(at.folder / "mesa"));
  const auto program =
      with_files({{"mesa/cc/file", test::copied_bytes("code")}, {"mesa/cc/other", test::copied_bytes("more")}});
  REQUIRE(scratch->place(program).ok());
  CHECK(text_in(at.folder / "mesa/cc/file") == "code");
  CHECK(text_in(at.folder / "mesa/cc/other") == "more");
  struct stat facts {};
  REQUIRE(stat((at.folder / "mesa/cc/file").c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  // A second program shares one of them.
  REQUIRE(scratch->place(with_files({{"mesa/cc/file", test::copied_bytes("code")}, {"mesa/dd/third", {}}})).ok());
  CHECK(fs::exists(at.folder / "mesa/dd/third"));
  {
    const auto second = DriverScratch::of_process();
    REQUIRE(second != nullptr);
    scratch.reset();
    CHECK(fs::exists(at.folder / "mesa/cc/file"));  // the second still uses it
  }
  CHECK_FALSE(fs::exists(at.folder));
}

TEST_CASE("cache::driver_scratch: the folder stays while a thread of the driver writes to it") {
  const PointedAt at;
  auto scratch = DriverScratch::of_process();
  REQUIRE(scratch != nullptr);
  std::promise<void> begun, over;
  std::error_code failure;
  std::thread driver([&] {
    pthread_setname_np(pthread_self(), "kiln:disk$0");  // as Mesa names it
    begun.set_value();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < until) {
    }
    fs::create_directory(at.folder / "mesa", failure);
    over.get_future().wait();  // sleeps, as Mesa's threads do without work
  });
  begun.get_future().wait();
  scratch.reset();
  CHECK_FALSE(fs::exists(at.folder));
  over.set_value();
  driver.join();
  CHECK(failure.message() == std::error_code().message());
}

TEST_CASE("cache::driver_scratch: without the driver's index every file is found, each once") {
  const PointedAt at;
  const auto scratch = DriverScratch::of_process();
  REQUIRE(scratch != nullptr);
  fs::remove(at.folder / "mesa_shader_cache" / "index");
  for (const char* name : {"mesa_shader_cache/aa/one", "mesa_shader_cache/bb/two"}) {
    fs::create_directories((at.folder / name).parent_path());
    std::ofstream(at.folder / name) << "code";
    ProgramBinary program;
    REQUIRE(scratch->collect_new(program).ok());
    REQUIRE(program.driver_files.size() == 1);
    CHECK(program.driver_files[0].name == name);
    ProgramBinary none;
    REQUIRE(scratch->collect_new(none).ok());
    CHECK(none.driver_files.empty());
  }
}

TEST_CASE("cache::driver_scratch: files are looked for when the driver's index counts more bytes than before") {
  const PointedAt at;
  const auto scratch = DriverScratch::of_process();
  REQUIRE(scratch != nullptr);
  const fs::path cache = at.folder / "mesa_shader_cache";
  const auto write = [&](const char* name) {
    fs::create_directories(cache / "aa");
    std::ofstream(cache / "aa" / name) << "code";
  };
  const auto found = [&] {
    ProgramBinary program;
    REQUIRE(scratch->collect_new(program).ok());
    std::vector<std::string> names;
    for (const DriverFile& file : program.driver_files) names.push_back(file.name);
    return names;
  };
  REQUIRE(fs::exists(cache / "index"));
  write("one");
  CHECK(found() == std::vector<std::string>{"mesa_shader_cache/aa/one"});
  write("two");
  CHECK(found().empty());
  std::fstream(cache / "index", std::ios::in | std::ios::out | std::ios::binary) << "\4";  // of eight bytes
  CHECK(found() == std::vector<std::string>{"mesa_shader_cache/aa/two"});
}

TEST_CASE("cache::driver_scratch: nothing is placed through a link, and names are checked again") {
  const PointedAt at;
  const auto scratch = DriverScratch::of_process();
  REQUIRE(scratch != nullptr);
  const fs::path outside = at.around / "outside";
  fs::create_symlink(outside, at.folder / "linked");
  fs::create_symlink(outside, at.folder / "file");
  REQUIRE(scratch->place(with_files({{"file", test::copied_bytes("x")}})).ok());  // what is there stays
  CHECK_FALSE(fs::exists(outside));
  for (const char* name : {"../escaped", "/tmp/escaped", "a/../../escaped"}) {
    CHECK(scratch->place(with_files({{name, test::copied_bytes("x")}})).code == StatusCode::invalid_argument);
  }
  CHECK_FALSE(fs::exists(at.around / "driver" / "escaped"));
}

TEST_CASE("cache::driver_scratch: threads that place the same files leave them whole") {
  const PointedAt at;
  const auto scratch = DriverScratch::of_process();
  REQUIRE(scratch != nullptr);
  const std::string content(100'000, 'c');
  std::vector<DriverFile> files;
  for (int i = 0; i < 8; ++i) files.push_back({"m/" + std::to_string(i), test::copied_bytes(content)});
  const ProgramBinary program = with_files(files);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (!scratch->place(program).ok()) ++failures;
      for (const DriverFile& file : program.driver_files) {
        if (text_in(at.folder / file.name) != content) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

TEST_CASE("cache::driver_scratch: folders of ended processes go, those in use and foreign names stay") {
  const PointedAt at;
  const auto used = DriverScratch::of_process();
  REQUIRE(used != nullptr);
  const fs::path all = at.around / "driver";
  const auto make = [&](const std::string& name, bool old) {
    fs::create_directories(all / name / "mesa" / "aa");
    fs::permissions(all / name, fs::perms::owner_all);
    std::ofstream(all / name / "mesa" / "aa" / "file") << "code";
    if (old) fs::last_write_time(all / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
    return all / name;
  };
  const fs::path left = make(some_setting + ".123.0123456789abcdef", true);
  const fs::path young = make(some_setting + ".124.0123456789abcdef", false);  // its process may be about to lock it
  const fs::path ahead = make(some_setting + ".125.0123456789abcdef", false);  // the clock was set back
  fs::last_write_time(ahead, fs::file_time_type::clock::now() + std::chrono::hours(1));
  const fs::path foreign = make("of somebody else", true);
  fs::last_write_time(at.folder, fs::file_time_type::clock::now() - std::chrono::hours(1));
  REQUIRE(prepare_driver_cache(all / DriverScratch::new_name(some_setting)).ok());
  CHECK_FALSE(fs::exists(left));
  CHECK_FALSE(fs::exists(ahead));
  CHECK(fs::exists(young));
  CHECK(fs::exists(foreign));
  CHECK(fs::exists(at.folder));
}

TEST_CASE("cache::driver_scratch: a folder of an older version goes when nobody used it for a day") {
  const PointedAt at;
  const fs::path all = at.around / "driver";
  using std::chrono::hours;
  const auto make = [&](char digit, hours marked, hours written, hours read) {
    const fs::path folder = all / std::string(64, digit);
    const fs::path file = folder / "mesa_shader_cache" / "ab" / "cdef";
    fs::create_directories(file.parent_path());
    fs::permissions(folder, fs::perms::owner_all);
    std::ofstream(file) << "code";
    const auto ago = [](hours age) {
      return timespec{std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - age), 0};
    };
    const timespec of_file[] = {ago(read), ago(written)}, of_folder[] = {ago(marked), ago(marked)};
    REQUIRE(utimensat(AT_FDCWD, file.c_str(), of_file, 0) == 0);
    REQUIRE(utimensat(AT_FDCWD, folder.c_str(), of_folder, 0) == 0);
    return folder;
  };
  const hours day_before{25}, long_ago{900}, lately{23};
  const fs::path left = make('a', day_before, day_before, day_before);
  const fs::path longer = make('b', long_ago, long_ago, long_ago);
  const fs::path marked = make('c', lately, long_ago, long_ago);
  const fs::path written = make('d', long_ago, lately, long_ago);
  const fs::path read = make('e', long_ago, long_ago, lately);
  const fs::path not_named_so = make('g', long_ago, long_ago, long_ago);
  REQUIRE(prepare_driver_cache(all / DriverScratch::new_name(some_setting)).ok());
  CHECK_FALSE(fs::exists(left));
  CHECK_FALSE(fs::exists(longer));
  for (const fs::path& folder : {marked, written, read, not_named_so}) {
    INFO(folder);
    CHECK(fs::exists(folder / "mesa_shader_cache" / "ab" / "cdef"));
  }
}

TEST_CASE("cache::driver_scratch: opening a cache removes what an older version left in its folder, reading does not") {
  test::Workplace place;
  test::SyntheticDevice device;
  const fs::path folder = place.config.directory / "driver" / some_setting;
  fs::create_directories(folder / "mesa_shader_cache");
  for (const fs::path& each : {place.config.directory, folder.parent_path(), folder}) {
    fs::permissions(each, fs::perms::owner_all);
  }
  REQUIRE(test::acquire(*place.open(), "one", device));
  CHECK(fs::exists(folder));  // it was used just now
  fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(25));
  place.config.read_only = true;
  REQUIRE(test::acquire(*place.open(), "one", device));
  CHECK(fs::exists(folder));
  place.config.read_only = false;
  REQUIRE(test::acquire(*place.open(), "one", device));
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE("cache::driver_scratch: only a folder that Kiln named, and that nobody else can enter, is used") {
  CHECK(driver_setting_of(fs::path("/x") / DriverScratch::new_name(some_setting)) == some_setting);
  CHECK(DriverScratch::new_name(some_setting) != DriverScratch::new_name(some_setting));
  for (const std::string& name :
       {some_setting, some_setting + ".1", some_setting + ".1.2", some_setting + ".x.0123456789abcdef",
        some_setting + "..0123456789abcdef", some_setting.substr(1) + ".1.0123456789abcdef", std::string()}) {
    INFO(name);
    CHECK(driver_setting_of("/x/" + name).empty());
  }
  const PointedAt at;
  fs::permissions(at.folder, fs::perms::group_all, fs::perm_options::add);
  CHECK(DriverScratch::of_process() == nullptr);
  setenv("MESA_SHADER_CACHE_DIR", at.around.c_str(), 1);
  CHECK(DriverScratch::of_process() == nullptr);
}

TEST_CASE("cache::driver_scratch: a driver's folder is read without its index, links and files being written") {
  const PointedAt at;
  const fs::path mesa = at.folder / "mesa_shader_cache";
  fs::create_directories(mesa / "aa");
  std::ofstream(mesa / "aa" / "one") << "code";
  std::ofstream(mesa / "aa" / "two.tmp") << "half";
  fs::create_symlink("/etc/hostname", mesa / "aa" / "three");
  REQUIRE(mkfifo((mesa / "aa" / "four").c_str(), 0600) == 0);
  const fs::path of_child = at.folder / (driver_folder_of_child + std::string("0")) / "mesa_shader_cache" / "aa";
  fs::create_directories(of_child);
  std::ofstream(of_child / "five") << "code of another program";
  const auto files = read_driver_files(at.folder);
  REQUIRE(files);
  REQUIRE(files->size() == 1);
  CHECK(files->front() == DriverFile{"mesa_shader_cache/aa/one", test::copied_bytes("code")});
  empty_driver_folder(at.folder);
  CHECK(read_driver_files(at.folder)->empty());
  CHECK(fs::exists(mesa / "index"));
}

TEST_CASE("cache::driver_scratch: files and links are not read as driver folders") {
  const PointedAt at;
  const fs::path file = at.around / "file", link = at.around / "link", missing = at.around / "missing";
  std::ofstream(file) << "no folder";
  fs::create_directory_symlink(at.folder, link);
  for (const fs::path& path : {file, link, missing}) {
    INFO(path);
    const auto files = read_driver_files(path);
    REQUIRE_FALSE(files);
    CHECK(files.error().code == StatusCode::io);
    CHECK_THAT(files.error().message, Catch::StartsWith("folder " + path.string() + ": cannot be opened: "));
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
