// Which folders and files are trusted, and what is never searched.
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/plugin_folder.hpp"
#include "plugin/plugin_file.hpp"

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

TEST_CASE("trust: a world-writable folder is refused, another is not") {
  PluginFolder open({"good"});
  PluginFolder closed({"fixture"});
  chmod(open.plugins().c_str(), 0777);
  closed.options.path = {open.plugins(), closed.plugins()};
  const auto reports = closed.load({"good", "fixture"});
  CHECK_FALSE(reports[0].loaded);
  CHECK(reports[0].why_not.code == StatusCode::unsupported);
  CHECK_THAT(reports[0].why_not.message,
             Contains("folder " + open.plugins().string() + ": writable by everyone (mode 0777)"));
  CHECK(reports[0].trial == PluginTrial::none);
  CHECK(reports[1].loaded);
}

TEST_CASE("trust: a world-writable file is refused") {
  PluginFolder folder({"good", "fixture"});
  chmod(folder.file("good").c_str(), 0666);
  const auto reports = folder.load({"good", "fixture"});
  CHECK(reports[0].why_not.code == StatusCode::unsupported);
  CHECK_THAT(reports[0].why_not.message,
             Contains("file " + folder.file("good").string() + ": writable by everyone (mode 0666)"));
  CHECK(reports[1].loaded);
}

TEST_CASE("trust: what another user owns is refused, with both numbers") {
  if (geteuid() != 0) {
    WARN("skipped: only root can give a file to another user");
    return;
  }
  PluginFolder folder({"good"});
  SECTION("the file") {
    REQUIRE(chown(folder.file("good").c_str(), 12345, 12345) == 0);
    CHECK_THAT(folder.load_one("good").why_not.message,
               Contains("file " + folder.file("good").string() + ": owned by uid 12345, expected root or uid 0"));
  }
  SECTION("the folder") {
    REQUIRE(chown(folder.plugins().c_str(), 12345, 12345) == 0);
    CHECK_THAT(folder.load_one("good").why_not.message,
               Contains("folder " + folder.plugins().string() + ": owned by uid 12345, expected root or uid 0"));
  }
}

TEST_CASE("trust: only regular files are opened") {
  PluginFolder folder({"good"});
  SECTION("a folder") { std::filesystem::create_directory(folder.file("odd")); }
  SECTION("a pipe") { REQUIRE(mkfifo(folder.file("odd").c_str(), 0600) == 0); }
  const Status status = folder.load_one("odd").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("not a regular file"));
  CHECK(folder.load_one("good").loaded);
}

TEST_CASE("trust: a link that leads nowhere is reported") {
  PluginFolder folder;
  std::filesystem::create_symlink(folder.root() / "gone", folder.file("link"));
  const Status status = folder.load_one("link").why_not;
  CHECK(status.code == StatusCode::not_found);
  CHECK_THAT(status.message, Contains("file " + folder.file("link").string() + ": No such file or directory"));
}

TEST_CASE("trust: a link into a world-writable folder is refused, into another is not") {
  PluginFolder target({"good"});
  PluginFolder folder;
  std::filesystem::create_symlink(target.file("good"), folder.file("good"));
  CHECK(folder.load_one("good").loaded);
  chmod(target.plugins().c_str(), 0777);
  const Status status = folder.load_one("good").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("folder " + target.plugins().string() + ": writable by everyone"));
}

TEST_CASE("trust: every link on the way to the file counts, not only the folder at its end") {
  PluginFolder target({"good"});
  PluginFolder folder;
  const std::filesystem::path open = folder.root() / "open";
  const std::filesystem::path shut = folder.root() / "shut";
  std::filesystem::create_directory(open);
  std::filesystem::create_directory(shut);
  using std::filesystem::create_symlink;
  SECTION("a chain of two links") {
    create_symlink(target.file("good"), open / "hop");
    create_symlink(open / "hop", folder.file("good"));
  }
  SECTION("a chain of three, the middle one in the folder") {
    create_symlink(target.file("good"), shut / "last");
    create_symlink(shut / "last", open / "hop");
    create_symlink(open / "hop", folder.file("good"));
  }
  SECTION("relative links") {
    create_symlink(std::filesystem::relative(target.file("good"), open), open / "hop");
    create_symlink("../open/hop", folder.file("good"));
  }
  SECTION("a link to a folder in the middle of a path") {
    create_symlink(target.plugins(), open / "hop");
    create_symlink(open / "hop" / "good.so", folder.file("good"));
  }
  SECTION("a link to a folder, and .. after it") {
    create_symlink(target.plugins(), open / "hop");
    create_symlink(open / "hop" / ".." / "plugins" / "good.so", folder.file("good"));
  }
  SECTION("the folder of plugins is itself such a link") {
    create_symlink(target.plugins(), open / "hop");
    folder.options.path = {open / "hop"};
  }
  CHECK(folder.load_one("good").loaded);
  chmod(open.c_str(), 0777);
  const Status status = folder.load_one("good").why_not;
  CHECK(status.code == StatusCode::unsupported);
  CHECK_THAT(status.message, Contains("folder " + open.string() + ": writable by everyone (mode 0777)"));
  CHECK_THAT(status.message, Contains("link " + (open / "hop").string() + " of "));
  chmod(open.c_str(), 01777);
  CHECK_THAT(folder.load_one("good").why_not.message,
             Contains("folder " + open.string() + ": writable by everyone (mode 1777)"));
  if (geteuid() == 0) {
    chmod(open.c_str(), 0755);
    REQUIRE(chown(open.c_str(), 12345, 12345) == 0);
    CHECK_THAT(folder.load_one("good").why_not.message,
               Contains("folder " + open.string() + ": owned by uid 12345, expected root or uid 0"));
  }
}

TEST_CASE("trust: links that lead in a circle are reported") {
  PluginFolder folder;
  std::filesystem::create_symlink(folder.file("b"), folder.file("a"));
  std::filesystem::create_symlink(folder.file("a"), folder.file("b"));
  const Status status = folder.load_one("a").why_not;
  CHECK(status.code == StatusCode::io);
  CHECK_THAT(status.message, Contains("Too many levels of symbolic links"));
}

TEST_CASE("trust: the current directory is never searched") {
  PluginFolder folder({"good"});
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.plugins());
  PluginFolder elsewhere;
  const std::filesystem::path entry = GENERATE("", ".", "../plugins");
  elsewhere.options.path = {entry, elsewhere.plugins()};
  const PluginReport report = elsewhere.load_one("good");
  std::filesystem::current_path(here);
  CHECK_FALSE(report.loaded);
  CHECK(report.why_not.code == StatusCode::not_found);
  CHECK_THAT(report.why_not.message, Contains("which is refused"));
  CHECK_THAT(elsewhere.sink.text(), Contains("'" + entry.string() + "' is refused: not an absolute path"));
}

TEST_CASE("trust: a plugin's name has 1 to 63 letters, digits, '_' or '-'") {
  const std::filesystem::path folders[] = {"/no/such/folder"};
  const auto code_of = [&](const std::string& name) { return find_plugin(name, folders).error().code; };
  for (const std::string& name : {std::string("a"), std::string("azAZ09_-"), std::string(63, 'a')}) {
    INFO(name);
    CHECK(code_of(name) == StatusCode::not_found);
  }
  for (const std::string& name :
       {std::string(), std::string(64, 'a'), std::string("a`"), std::string("a{"), std::string("a@"), std::string("a["),
        std::string("a/"), std::string("a:"), std::string("../a"), std::string("a.so"), std::string("a b")}) {
    INFO(name);
    CHECK(code_of(name) == StatusCode::invalid_argument);
  }
  CHECK(find_plugin("a", {}).error().message == "file a.so: no plugin folder is set");
  const std::filesystem::path several[] = {"", "here", "/no/such/folder", "/"};
  CHECK(find_plugin("none", several).error().message ==
        "file none.so: not found in: an empty entry, which is refused; here, which is refused: not an absolute path; "
        "/no/such/folder, which does not exist; /");
  PluginFolder folder({"good"});
  const std::filesystem::path found[] = {"/no/such/folder", folder.plugins()};
  const auto path = find_plugin("good", found);
  REQUIRE(path);
  CHECK(*path == folder.file("good"));
}

TEST_CASE("trust: a folder that is missing or is none is reported, and an empty file has no bytes") {
  PluginFolder folder({"good"});
  const auto missing = PluginFile::open(folder.root() / "gone" / "x.so");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text() ==
        "not_found: folder " + (folder.root() / "gone").string() + ": No such file or directory");
  const auto no_folder = PluginFile::open(folder.file("good") / "x.so");
  REQUIRE_FALSE(no_folder);
  CHECK(no_folder.error().text() == "not_found: folder " + folder.file("good").string() + ": not a folder");
  const auto below_file = PluginFile::open(folder.file("good") / "deep" / "x.so");
  REQUIRE_FALSE(below_file);
  CHECK(below_file.error().text() ==
        "not_found: folder " + (folder.file("good") / "deep").string() + ": Not a directory");
  write_file(folder.file("empty"), "");
  const auto empty = PluginFile::open(folder.file("empty"));
  REQUIRE(empty);
  CHECK(empty->bytes().empty());
  CHECK(empty->identity().size == 0);
  const auto good = PluginFile::open(folder.file("good"));
  REQUIRE(good);
  struct stat info {};
  REQUIRE(stat(folder.file("good").c_str(), &info) == 0);
  CHECK(good->bytes().size() == static_cast<std::size_t>(info.st_size));
  CHECK(good->identity().size == static_cast<std::uint64_t>(info.st_size));
  CHECK(good->identity().inode == info.st_ino);
  CHECK(good->identity().mtime_ns == std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
  CHECK(read_file(folder.file("good")) ==
        std::string(reinterpret_cast<const char*>(good->bytes().data()), good->bytes().size()));
}
