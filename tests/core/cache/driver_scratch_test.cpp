// The private folder in which a driver gets its files: who fills it, what is found in it, and who removes it.
#include "cache/driver_scratch.hpp"

#include <kiln/driver_cache.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/cache/driver_folder.hpp"
#include "support/in_child.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

}  // namespace

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
  REQUIRE(stat((at.folder / "mesa/cc").c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0700);
  // A second program shares one of them.
  REQUIRE(scratch->place(with_files({{"mesa/cc/file", test::copied_bytes("code")}, {"mesa/dd/third", {}}})).ok());
  CHECK(fs::exists(at.folder / "mesa/dd/third"));
  {
    const auto second = DriverScratch::of_process();
    REQUIRE(second == scratch);
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

TEST_CASE("cache::driver_scratch: a folder is emptied eight folders deep, and no deeper") {
  const PointedAt at;
  std::string inner = "d";
  for (int depth = 1; depth <= 10; ++depth, inner += "/d") {
    fs::create_directories(at.folder / inner);
    std::ofstream(at.folder / inner / "file") << depth;
  }
  empty_driver_folder(at.folder);
  CHECK_FALSE(fs::exists(at.folder / "d/d/d/d/d/d/d/d/file"));  // the eighth
  CHECK(text_in(at.folder / "d/d/d/d/d/d/d/d/d/file") == "9");
}

TEST_CASE("cache::driver_scratch: a file that cannot be written whole is removed, and told") {
  const PointedAt at;
  const int folder = ::open(at.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(folder >= 0);
  CHECK(write_driver_file(folder, {"a/b/c/d", test::copied_bytes("deep")}).ok());
  CHECK(text_in(at.folder / "a/b/c/d") == "deep");
  CHECK(write_driver_file(folder, {"a/b/e/f", test::copied_bytes("beside")}).ok());
  CHECK(text_in(at.folder / "a/b/e/f") == "beside");
  CHECK(write_driver_file(folder, {"a/b/c/d", test::copied_bytes("another")}).ok());  // what is there stays
  CHECK(text_in(at.folder / "a/b/c/d") == "deep");
  CHECK(write_driver_file(folder, {"a/b/c/d/e/f", test::copied_bytes("below a file")}).text() ==
        "io: driver file a/b/c/d/e/f: cannot be created: Not a directory");
  const test::ChildEnd end = test::in_child([&]() -> std::string {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, 10};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
    const Status fits = write_driver_file(folder, {"x/ten", std::vector<std::byte>(10)});
    const Status over = write_driver_file(folder, {"x/eleven", std::vector<std::byte>(11)});
    if (!fits.ok()) return fits.text();
    if (fs::exists(at.folder / "x/eleven")) return "half of it is left";
    return over.text() == "io: driver file x/eleven: cannot be written: File too large" ? "" : over.text();
  });
  CHECK(end.said == "");
  close(folder);
}

TEST_CASE("cache::driver_scratch: files of another copy are added once, up to a limit, and replace another setting's") {
  const auto names = [](const ProgramBinary& program) {
    std::string all;
    for (const DriverFile& file : program.driver_files) all += file.name + "=" + test::copied_text(file.bytes) + " ";
    return all;
  };
  ProgramBinary program = with_files({{"b", test::copied_bytes("1")}, {"d", {}}});
  CHECK(add_driver_files(with_files({{"c", {}}, {"b", test::copied_bytes("2")}, {"a", {}}}), program).ok());
  CHECK(names(program) == "a= b=1 c= d= ");
  ProgramBinary other = with_files({{"z", {}}});
  other.driver_setting = another_setting;
  CHECK(add_driver_files(other, program).ok());
  CHECK(names(program) == "z= ");
  CHECK(program.driver_setting == another_setting);
  std::vector<DriverFile> many;
  for (int i = 0; i < 255; ++i) many.push_back({"f" + std::to_string(i), std::vector<std::byte>(2)});
  ProgramBinary full = with_files({{"g", std::vector<std::byte>(3)}});
  CHECK(add_driver_files(with_files(many), full).ok());
  CHECK(add_driver_files(with_files({{"h", {}}}), full).text() ==
        "unsupported: the driver wrote 257 files with 513 bytes in total, expected at most 256 files and 134217728 "
        "bytes");
}

}  // namespace kiln
