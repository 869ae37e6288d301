// Which folders and files are trusted, and what is never searched.
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/plugin_folder.hpp"

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
