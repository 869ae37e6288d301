// The store of file:// URLs: objects and indexes as files of a folder, and what of a folder it does not touch.
#include "core/cache/shared/sharing.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

struct Share {
  CacheTestFolder temporary;
  std::filesystem::path folder = temporary.path() / "share";

  Share() { std::filesystem::create_directory(folder); }
  std::unique_ptr<RemoteStore> store() const {
    auto opened = open_file_store({.url = "file://" + folder.string()});
    if (!opened) throw std::runtime_error(opened.error().text());
    return std::move(*opened);
  }
};

std::string words_of(const Result<std::optional<std::vector<std::byte>>>& got) {
  if (!got) return got.error().text();
  return *got ? copied_text(**got) : "none";
}

TEST_CASE("file store: only a URL with an absolute path is one") {
  for (const std::string url_of_none : {"file://", "file://share", "file:/share", "http:///share", "/share", ""}) {
    CAPTURE(url_of_none);
    const auto store = open_file_store({.url = url_of_none});
    REQUIRE_FALSE(store);
    CHECK(store.error().text() == "invalid_argument: remote '" + url_of_none +
                                      "': expected file:// and an absolute path, such as file:///mnt/share");
  }
  CHECK(open_file_store({.url = "file:///"}));
  CHECK(open_file_store({.url = "file:///nowhere"}));  // nothing is opened yet
}

TEST_CASE("file store: objects are stored, replaced and read up to their limit") {
  const Share share;
  const auto store = share.store();
  CHECK(words_of(store->get("f/a", {})) == "none");
  CHECK_FALSE(std::filesystem::exists(share.folder / "f"));  // a look makes nothing
  REQUIRE(store->put("f/a", copied_bytes("one"), {}).ok());
  CHECK(words_of(store->get("f/a", {})) == "one");
  CHECK(words_of(store->get("f/b", {})) == "none");
  REQUIRE(store->put("f/a", copied_bytes("three"), {}).ok());
  RemoteLimits limits;
  limits.most_bytes = 5;
  CHECK(words_of(store->get("f/a", limits)) == "three");
  limits.most_bytes = 4;
  CHECK_FALSE(store->get("f/a", limits));
  struct stat at {};
  REQUIRE(stat((share.folder / "f" / "a").c_str(), &at) == 0);
  const mode_t mask = umask(0);
  umask(mask);
  CHECK((at.st_mode & 0777) == (0666 & ~mask));  // other users of the share read it
  CHECK(std::distance(std::filesystem::directory_iterator(share.folder / "f"), {}) == 1);
}

TEST_CASE("file store: a call that is stopped or late does nothing") {
  const Share share;
  const auto store = share.store();
  std::atomic<bool> stop{true};
  RemoteLimits stopped, late;
  stopped.stop = &stop;
  late.deadline = Deadline::after(-1s);
  CHECK(words_of(store->get("f/a", stopped)) == "cancelled: stopped on request");
  CHECK(words_of(store->get("f/a", late)) == "timeout: the deadline has passed");
  CHECK(store->put("f/a", {}, stopped).text() == "cancelled: stopped on request");
  CHECK(store->put("f/a", {}, late).text() == "timeout: the deadline has passed");
  CHECK(std::filesystem::is_empty(share.folder));
  stop = false;
  CHECK(store->put("f/a", {}, stopped).ok());
}

TEST_CASE("file store: a share that is missing, and what lies in the way") {
  Share share;
  const auto store = share.store();
  std::filesystem::create_directory(share.temporary.path() / "elsewhere");
  std::filesystem::create_symlink(share.temporary.path() / "elsewhere", share.folder / "linked");
  CHECK_FALSE(store->put("linked/a", copied_bytes("one"), {}).ok());
  CHECK(std::filesystem::is_empty(share.temporary.path() / "elsewhere"));
  CHECK_FALSE(store->get("linked/a", {}));
  REQUIRE(store->put("f/a", copied_bytes("one"), {}).ok());
  std::filesystem::create_symlink(share.folder / "f" / "a", share.folder / "f" / "b");
  CHECK_FALSE(store->get("f/b", {}));
  std::filesystem::create_directory(share.folder / "f" / "c");
  CHECK_FALSE(store->get("f/c", {}));
  std::filesystem::remove_all(share.folder);
  const std::string none = "unavailable: folder " + share.folder.string() + ": does not exist";
  CHECK(words_of(store->get("f/a", {})) == none);
  CHECK(store->put("f/a", {}, {}).text() == none);
  CHECK(store->add_to_index("f", {{sha256("1"), 5}}, {}).text() == none);
  CHECK_FALSE(std::filesystem::exists(share.folder));
  std::ofstream(share.folder) << "a file";
  CHECK_FALSE(store->get("f/a", {}));
}

TEST_CASE("file store: an index grows, and is written where something is new") {
  const Share share;
  const auto store = share.store();
  const RemoteIndex one = merged_index({}, {{sha256("1"), 5}}), two = merged_index(one, {{sha256("2"), 6}});
  CHECK_FALSE(*store->index("f", {}));
  REQUIRE(store->add_to_index("f", one, {}).ok());
  auto found = store->index("f", {});
  REQUIRE(found);
  REQUIRE(*found);
  CHECK(**found == one);
  const auto file = share.folder / "f" / "index";
  const auto before = std::filesystem::file_time_type::clock::now() - 1h;
  std::filesystem::last_write_time(file, before);
  REQUIRE(store->add_to_index("f", one, {}).ok());
  CHECK(std::filesystem::last_write_time(file) == before);  // all of it was there
  REQUIRE(store->add_to_index("f", two, {}).ok());
  CHECK(std::filesystem::last_write_time(file) != before);
  found = store->index("f", {});
  REQUIRE(found);
  REQUIRE(*found);
  CHECK(**found == two);
  REQUIRE(store->add_to_index("f", {{sha256("1"), 7}}, {}).ok());  // a time that is known by now
  found = store->index("f", {});
  REQUIRE(found);
  CHECK(**found == merged_index(two, {{sha256("1"), 7}}));
}

TEST_CASE("file store: what lies in the place of a folder is told, and written to by nobody") {
  Share share;
  const auto store = share.store();
  const std::string folder = "folder " + (share.folder / "f").string();
  std::ofstream(share.folder / "f") << "in the way";
  CHECK_THAT(store->put("f/a", {}, {}).text(), Catch::Contains((share.folder / "f").string()));
  CHECK_THAT(store->add_to_index("f", {{sha256("1"), 5}}, {}).text(), Catch::Contains((share.folder / "f").string()));
  CHECK_THAT(words_of(store->get("f/a", {})),
             Catch::Contains("cannot be opened, or is a symbolic link: Not a directory"));
  std::filesystem::remove_all(share.folder);
  std::ofstream(share.folder) << "a file";
  CHECK_THAT(words_of(store->get("f/a", {})),
             Catch::EndsWith(share.folder.string() + ": cannot be opened: Not a directory"));
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    const Share closed;
    const auto opened = closed.store();
    if (!opened->put("f/a", copied_bytes("one"), {}).ok()) return "was not written";
    std::filesystem::permissions(closed.folder / "f",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    const std::string said = opened->put("f/b", copied_bytes("two"), {}).text();
    std::filesystem::permissions(closed.folder / "f", std::filesystem::perms::owner_all);
    if (!said.starts_with("io: folder " + (closed.folder / "f").string() + ": ")) return "said '" + said + "'";
    return said.ends_with("Permission denied") ? "" : "said '" + said + "'";
  });
  CHECK(end.said == "");
}

TEST_CASE("file store: the first write to a folder removes what killed writers left an hour ago, and no other file") {
  const Share share;
  const auto folder = share.folder / "f";
  std::filesystem::create_directory(folder);
  const auto leave = [&](const std::string& name, std::chrono::seconds age) {
    std::ofstream(folder / name) << "half";
    std::filesystem::last_write_time(folder / name, std::filesystem::file_time_type::clock::now() - age);
  };
  const auto there = [&](const std::string& name) { return std::filesystem::exists(folder / name); };
  leave(".1-0.tmp", 3700s);
  leave(".2-0.tmp", 3500s);
  leave("other.tmp", 7200s);
  for (int i = 0; i < 20; ++i) leave("other" + std::to_string(i), 0s);
  std::filesystem::create_symlink("other.tmp", folder / ".4-0.tmp");
  const timespec long_ago[] = {{1, 0}, {1, 0}};
  REQUIRE(utimensat(AT_FDCWD, (folder / ".4-0.tmp").c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0);
  const auto store = share.store();
  REQUIRE(store->put("f/a", copied_bytes("one"), {}).ok());
  CHECK_FALSE(there(".1-0.tmp"));
  CHECK(there(".2-0.tmp"));
  CHECK(there("other.tmp"));
  CHECK(there(".4-0.tmp"));
  leave(".3-0.tmp", 3700s);
  REQUIRE(store->put("f/a", copied_bytes("two"), {}).ok());
  CHECK(there(".3-0.tmp"));  // once in a process
  REQUIRE(share.store()->put("f/a", copied_bytes("three"), {}).ok());
  CHECK_FALSE(there(".3-0.tmp"));
}

TEST_CASE("file store: of a damaged index the files tell, and another kind of store leaves it") {
  const Share share;
  const auto store = share.store();
  const Digest one = sha256("1"), two = sha256("2");
  REQUIRE(store->put("f/" + one.hex(), copied_bytes("one"), {}).ok());
  REQUIRE(store->put("f/index", copied_bytes("damaged"), {}).ok());
  REQUIRE(store->add_to_index("f", {{two, 6}}, {}).ok());
  const auto index = store->index("f", {});
  REQUIRE(index);
  REQUIRE(*index);
  CHECK(**index == merged_index({{one, 0}}, {{two, 6}}));
  const auto server = std::make_shared<SharedServer>();
  MemoryStore memory(server);
  server->objects["f/index"] = copied_bytes("damaged");
  CHECK(memory.add_to_index("f", {{two, 6}}, {}).text() == "corrupt: index: has 7 bytes, expected at least 16");
  CHECK(server->objects["f/index"] == copied_bytes("damaged"));
  server->objects.clear();
  REQUIRE(memory.add_to_index("f", {{two, 6}}, {}).ok());
  CHECK(server->most_bytes_asked == 16u << 20);
  server->puts = 0;
  CHECK(memory.add_to_index("f", {{two, 6}}, {}).ok());
  CHECK(server->puts == 0);  // all of it was there
}

}  // namespace
}  // namespace kiln::test
