// Folders and files of one user: what is opened, what is refused, and what a new file replaces; and locks on them.
#include "base/os/private_folder.hpp"
#include "base/os/file_lock.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

struct PrivateScene {
  CacheTestFolder folder;
  const fs::path& path = folder.path();
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
  std::string text(const std::string& name) const {
    std::ifstream file(path / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string who(const std::string& name) const { return "folder " + (path / name).string(); }
  // "ok", "absent" or the error.
  static std::string outcome(const Result<UniqueFd>& opened) {
    if (!opened) return opened.error().text();
    return *opened ? "ok" : "absent";
  }
  std::string opening(const std::string& name, Create create = Create::no) const {
    return outcome(open_folder(path / name, create));
  }
};

void allow(const fs::path& path, unsigned mode) { REQUIRE(chmod(path.c_str(), mode) == 0); }

unsigned mode_of(const fs::path& path) {
  struct stat at {};
  return stat(path.c_str(), &at) == 0 ? at.st_mode & 07777u : 0u;
}

std::span<const std::byte> bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_CASE("cache::private_folder: a path has a normal form without a slash at its end") {
  const std::pair<const char*, const char*> paths[] = {
      {"/a/b/", "/a/b"}, {"/a/./b/../c", "/a/c"}, {"/a//b", "/a/b"}, {"a/", "a"}, {"/", "/"}, {"/a", "/a"}};
  for (const auto& [path, normal] : paths) CHECK(without_slash(path) == fs::path(normal));
}

TEST_CASE("cache::private_folder: a folder is opened, or made for its owner alone") {
  const PrivateScene scene;
  CHECK(PrivateScene::outcome(open_folder("a/b", Create::yes)) ==
        "invalid_argument: folder a/b: expected an absolute path");
  CHECK(scene.opening("new/inner/cache") == "absent");
  CHECK(scene.opening("new/inner/cache", Create::yes) == "ok");
  CHECK(scene.opening("new/inner/cache/") == "ok");
  for (const char* made : {"new", "new/inner", "new/inner/cache"}) CHECK(mode_of(scene.path / made) == 0700);
  CHECK(scene.opening("new/inner/cache", Create::yes) == "ok");
  scene.write("file", "text");
  CHECK(scene.opening("file", Create::yes) == "unavailable: " + scene.who("file") + ": is not a folder");
  CHECK(scene.opening("file/inner", Create::yes) ==
        "io: " + scene.who("file/inner") + ": cannot be opened: Not a directory");
  CHECK(scene.opening("file/inner/deeper", Create::yes) ==
        "io: " + scene.who("file/inner") + ": cannot be created: Not a directory");
  CHECK(scene.opening("none/inner", Create::no) == "absent");
  CHECK_FALSE(fs::exists(scene.path / "none"));
  for (const unsigned mode : {0777u, 0770u, 0707u, 0720u, 0702u}) {
    allow(scene.path / "new/inner/cache", mode);
    char text[8];
    std::snprintf(text, sizeof text, "%04o", mode);
    CHECK(scene.opening("new/inner/cache") == "unavailable: " + scene.who("new/inner/cache") + ": has mode " + text +
                                                  ", expected write permission only for the owner");
  }
  for (const unsigned mode : {0755u, 0700u, 0711u}) {
    allow(scene.path / "new/inner/cache", mode);
    CHECK(scene.opening("new/inner/cache") == "ok");
  }
}

TEST_CASE("cache::private_folder: a link that others could exchange is not followed") {
  const PrivateScene scene;
  fs::create_directories(scene.path / "real/cache");
  allow(scene.path / "real", 0755);
  allow(scene.path / "real/cache", 0755);
  fs::create_directory_symlink("real/cache", scene.path / "link");
  CHECK(scene.opening("link") == "ok");
  CHECK(followed_path(scene.path / "link").value() == scene.path / "real/cache");
  CHECK(followed_path(scene.path / "real" / ".." / "." / "link").value() == scene.path / "real/cache");
  CHECK(followed_path(scene.path / "link/none/deeper").value() == scene.path / "real/cache/none/deeper");
  allow(scene.path / "real", 0777);
  CHECK(scene.opening("link") == "unavailable: " + scene.who("link") + ": " + scene.who("real") +
                                     ": has mode 0777, expected write permission only for the owner");
  allow(scene.path / "real", 01777);  // others make names there, and exchange none
  CHECK(scene.opening("link") == "ok");
  const Result<UniqueFd> as_subfolder = open_subfolder(scene.fd.get(), "link", "the folder", Create::yes);
  CHECK(PrivateScene::outcome(as_subfolder) == "unavailable: the folder: is a symbolic link, expected a folder");

  fs::create_directory_symlink("nowhere", scene.path / "dangling");
  CHECK(scene.opening("dangling") == "absent");
  CHECK(scene.opening("dangling", Create::yes) == "ok");
  CHECK(mode_of(scene.path / "nowhere") == 0700);
  // Forty links, and one more.
  fs::create_directory_symlink("nowhere", scene.path / "link40");
  for (int i = 39; i >= 0; --i) {
    fs::create_directory_symlink("link" + std::to_string(i + 1), scene.path / ("link" + std::to_string(i)));
  }
  CHECK(followed_path(scene.path / "link1").value() == scene.path / "nowhere");
  CHECK(followed_path(scene.path / "link0").error().text() ==
        "unavailable: " + scene.who("link0") + ": path contains more than 40 symbolic links");
}

TEST_CASE("cache::private_folder: a file that processes share is a regular one with one name") {
  const PrivateScene scene;
  const auto opening = [&](const std::string& name, Create create) {
    return PrivateScene::outcome(open_shared_file(scene.fd.get(), name, "the file", create));
  };
  CHECK(opening("shared", Create::no) == "absent");
  CHECK(opening("shared", Create::yes) == "ok");
  CHECK(mode_of(scene.path / "shared") == 0600);
  CHECK(opening("shared", Create::no) == "ok");
  fs::create_hard_link(scene.path / "shared", scene.path / "other");
  CHECK(opening("shared", Create::yes) == "unavailable: the file: has 2 hard links, expected 1");
  REQUIRE(mkfifo((scene.path / "fifo").c_str(), 0600) == 0);
  CHECK(opening("fifo", Create::yes) == "unavailable: the file: is not a regular file");
  fs::create_symlink("shared", scene.path / "link");
  CHECK(opening("link", Create::yes) == "io: the file: cannot be opened: Too many levels of symbolic links");
}

TEST_CASE("cache::private_folder: a small file is read as a whole, and what is none is told") {
  const PrivateScene scene;
  scene.write("file", "abcde");
  fs::create_directory(scene.path / "folder");
  fs::create_symlink("file", scene.path / "link");
  const auto read = [&](const std::string& name, std::uint64_t most) { return read_file(scene.fd.get(), name, most); };
  FileContents found = read("file", 5);
  CHECK(found.state == FileState::read);
  CHECK(kiln::text_of(found.bytes) == "abcde");
  CHECK(found.why.empty());
  struct stat at {};
  REQUIRE(stat((scene.path / "file").c_str(), &at) == 0);
  CHECK(found.modified_ns == at.st_mtim.tv_sec * 1'000'000'000 + at.st_mtim.tv_nsec);
  found = read("file", 4);
  CHECK(found.state == FileState::too_large);
  CHECK(found.why == "has 5 bytes, expected at most 4");
  CHECK(found.bytes.empty());
  CHECK(found.modified_ns == at.st_mtim.tv_sec * 1'000'000'000 + at.st_mtim.tv_nsec);
  found = read("none", 5);
  CHECK(found.state == FileState::absent);
  CHECK(found.why.empty());
  CHECK(found.modified_ns == 0);
  for (const char* name : {"folder", "link"}) {
    found = read(name, 5);
    CHECK(found.state == FileState::misplaced);
    CHECK_THAT(found.why, Catch::Contains(name) && Catch::Contains("not a regular file"));
  }
  CHECK(read(std::string(300, 'n'), 5).state == FileState::unreadable);
  const std::vector<std::string> names = names_in(scene.fd.get());
  CHECK(std::set<std::string>(names.begin(), names.end()) == std::set<std::string>{"file", "folder", "link"});
  CHECK(names_in(scene.fd.get()).size() == 3);  // from the beginning again
  CHECK(names_in(-1).empty());
}

TEST_CASE("cache::private_folder: a new file appears whole under its name, or not at all") {
  const PrivateScene scene;
  scene.write("file", "old");
  {
    auto file = NewFile::create(scene.fd.get(), "file");
    REQUIRE(file);
    REQUIRE(file->write(bytes_in("new ")).ok());
    const std::vector<std::string> names = names_in(scene.fd.get());
    CHECK(names.size() == 2);
    CHECK(std::ranges::count_if(names, NewFile::is_temporary) == 1);
    REQUIRE(file->write(bytes_in("text")).ok());
    CHECK(scene.text("file") == "old");
    REQUIRE(file->commit().ok());
    CHECK(scene.text("file") == "new text");
    CHECK(mode_of(scene.path / "file") == 0600);
  }
  CHECK(names_in(scene.fd.get()).size() == 1);
  {
    auto file = NewFile::create(scene.fd.get(), "file");
    REQUIRE(file);
    REQUIRE(file->write(bytes_in("lost")).ok());
    const NewFile moved = *std::move(file);
    CHECK(names_in(scene.fd.get()).size() == 2);
  }
  CHECK(names_in(scene.fd.get()) == std::vector<std::string>{"file"});
  CHECK(scene.text("file") == "new text");
  REQUIRE(write_file(scene.fd.get(), "second", bytes_in("two")).ok());
  CHECK(scene.text("second") == "two");
  fs::create_directory(scene.path / "folder");
  CHECK_THAT(write_file(scene.fd.get(), "folder", bytes_in("x")).text(),
             Catch::StartsWith("io: file folder: cannot be renamed from its temporary name: "));
  CHECK(names_in(scene.fd.get()).size() == 3);
  CHECK_THAT(NewFile::create(-1, "file").error().text(), Catch::StartsWith("io: file file: cannot be created: "));
  const mode_t before = umask(0);
  auto open_to_all = NewFile::create(scene.fd.get(), "readable", 0644);
  umask(before);
  REQUIRE(open_to_all);
  REQUIRE(open_to_all->commit().ok());
  CHECK(mode_of(scene.path / "readable") == 0644);
  for (const char* name : {".tmp", ".1-2.tmp"}) CHECK(NewFile::is_temporary(name));
  for (const char* name : {"tmp", "a.tmp", ".tmp1", "."}) CHECK_FALSE(NewFile::is_temporary(name));
}

TEST_CASE("cache::private_folder: only a file of the same size and one name is written over in place") {
  const PrivateScene scene;
  scene.write("file", "abc");
  const auto overwrite_it = [&](const std::string& name, const std::string& text) {
    return overwrite_file(scene.fd.get(), name, bytes_in(text));
  };
  CHECK(overwrite_it("file", "def"));
  CHECK(scene.text("file") == "def");
  CHECK_FALSE(overwrite_it("file", "de"));
  CHECK_FALSE(overwrite_it("file", "defg"));
  CHECK_FALSE(overwrite_it("none", ""));
  fs::create_symlink("file", scene.path / "link");
  CHECK_FALSE(overwrite_it("link", "xyz"));
  fs::create_hard_link(scene.path / "file", scene.path / "second");
  CHECK_FALSE(overwrite_it("file", "xyz"));
  CHECK(scene.text("file") == "def");
  scene.write("page", std::string(4096, 'a'));
  CHECK(overwrite_it("page", std::string(4096, 'b')));
  CHECK(scene.text("page") == std::string(4096, 'b'));
  scene.write("larger", std::string(4097, 'a'));
  CHECK_FALSE(overwrite_it("larger", std::string(4097, 'b')));
}

TEST_CASE("cache::private_folder: the key file lies outside of the cache, also by way of links") {
  const PrivateScene scene;
  const fs::path cache = scene.path / "cache";
  fs::create_directories(cache / "inner");
  fs::create_directory_symlink("cache/inner", scene.path / "leads_in");
  fs::create_directory_symlink(scene.path, cache / "leads_out");
  const auto check = [&](const fs::path& key) {
    CacheConfig config;
    config.directory = cache;
    config.key_file = key;
    return check_key_file_place(config).text();
  };
  for (const char* outside : {"key", "cache-key", "cache.key", "other/cache"})
    CHECK(check(scene.path / outside) == "ok");
  CHECK(check({}) == "ok");
  for (const fs::path& inside : {cache / "key", cache / "inner" / "key", scene.path / "x/../cache/key",
                                 scene.path / "leads_in" / "key", cache / "leads_out" / "key"}) {
    CHECK(check(inside) == "invalid_argument: key file " + inside.string() + ": is in the cache folder " +
                               cache.string() + ", expected a file outside that folder");
  }
  CacheConfig in_memory;
  in_memory.directory.clear();
  in_memory.key_file = "/key";
  CHECK(check_key_file_place(in_memory).ok());
  CHECK(no_key_file().code == StatusCode::not_found);
}

TEST_CASE("cache::private_folder: an open folder that was removed is known to be") {
  const PrivateScene scene;
  fs::create_directory(scene.path / "folder");
  const Result<UniqueFd> opened = open_subfolder(scene.fd.get(), "folder", "it", Create::no);
  REQUIRE(opened);
  CHECK_FALSE(is_removed(opened->get()));
  fs::remove(scene.path / "folder");
  CHECK(is_removed(opened->get()));
  CHECK_FALSE(is_removed(-1));
}

TEST_CASE("cache::private_folder: an ordinary user trusts what is root's, and nobody else's") {
  if (geteuid() != 0) {
    WARN("skipped: giving files away takes root");
    return;
  }
  const PrivateScene scene;
  constexpr uid_t nobody = 65534, other = 12345;
  allow(scene.path, 0755);
  const auto give = [&](const std::string& name, uid_t user, mode_t mode) {
    REQUIRE(chown((scene.path / name).c_str(), user, user) == 0);
    allow(scene.path / name, mode);
  };
  for (const auto& [name, user] :
       {std::pair{"roots", uid_t{0}}, std::pair{"own", nobody}, std::pair{"others", other}}) {
    const std::string folder = std::string(name) + "_folder";
    fs::create_directory(scene.path / folder);
    give(folder, user, 0755);
    scene.write(name, "text");
    give(name, user, 0666);
  }
  fs::create_directory_symlink("own_folder", scene.path / "link");
  fs::create_directory_symlink("own_folder", scene.path / "others_link");
  REQUIRE(lchown((scene.path / "others_link").c_str(), other, other) == 0);
  const ChildEnd end = in_unprivileged_child([&]() -> std::string {
    std::string told;
    for (const char* name : {"roots_folder", "own_folder", "others_folder", "link", "others_link"})
      told += scene.opening(name) + "\n";
    for (const char* name : {"roots", "own", "others"}) {
      told += PrivateScene::outcome(open_shared_file(scene.fd.get(), name, "the file", Create::no)) + ", ";
      const FileContents read = read_file(scene.fd.get(), name, 100);
      told += (read.state == FileState::read ? "read" : read.state == FileState::foreign ? "foreign" : "?") + read.why;
      told += overwrite_file(scene.fd.get(), name, bytes_in("TEXT")) ? ", overwritten\n" : ", kept\n";
    }
    return told;
  });
  const std::string wrong = "belongs to user 12345, expected 65534";
  CHECK(end.said == "ok\nok\nunavailable: " + scene.who("others_folder") + ": " + wrong +
                        " or root\nok\nunavailable: " + scene.who("others_link") + ": symbolic link " +
                        (scene.path / "others_link").string() + ": " + wrong +
                        " or root\nok, read, kept\nok, read, overwritten\nunavailable: the file: " + wrong +
                        " or root, foreign" + wrong + ", kept\n");
  CHECK(scene.text("own") == "TEXT");
  CHECK(scene.text("roots") == "text");
}

TEST_CASE("cache::file_lock: an exclusive lock excludes others, a shared one only exclusive ones") {
  const PrivateScene scene;
  scene.write("file", "");
  const auto open_it = [&] { return UniqueFd(::open((scene.path / "file").c_str(), O_RDWR | O_CLOEXEC)); };
  const UniqueFd second = open_it();
  {
    const UniqueFd first = open_it();
    CHECK(try_lock(first.get()) == LockAnswer::taken);
    CHECK(try_lock(first.get()) == LockAnswer::taken);  // its own
    CHECK(try_lock(second.get()) == LockAnswer::busy);
    CHECK(try_lock(second.get(), LockMode::shared) == LockAnswer::busy);
    CHECK(lock_until(second.get(), {Clock::now()}) == LockAnswer::busy);
    CHECK(try_lock(first.get(), LockMode::shared) == LockAnswer::taken);
    CHECK(try_lock(second.get(), LockMode::shared) == LockAnswer::taken);
    CHECK(try_lock(second.get()) == LockAnswer::busy);
  }
  CHECK(lock_until(second.get(), Deadline::after(std::chrono::seconds(60))) == LockAnswer::taken);
  CHECK(try_lock(-1) == LockAnswer::failed);
  CHECK(lock_until(-1, Deadline::never()) == LockAnswer::failed);
}

TEST_CASE("cache::file_lock: locks on bytes are of each byte, or of all") {
  const PrivateScene scene;
  scene.write("file", "");
  const auto open_it = [&] { return UniqueFd(::open((scene.path / "file").c_str(), O_RDWR | O_CLOEXEC)); };
  const UniqueFd first = open_it(), second = open_it();
  CHECK(try_lock_byte(first.get(), 4) == LockAnswer::taken);
  CHECK(try_lock_byte(second.get(), 3) == LockAnswer::taken);
  CHECK(try_lock_byte(second.get(), 5) == LockAnswer::taken);
  CHECK(try_lock_byte(second.get(), 4) == LockAnswer::busy);
  CHECK(try_lock_all_bytes(second.get()) == LockAnswer::busy);
  CHECK(try_lock_byte(first.get(), 6) == LockAnswer::taken);
  CHECK(try_lock_byte(first.get(), 7) == LockAnswer::taken);
  unlock_byte(first.get(), 6);
  CHECK(try_lock_byte(second.get(), 7) == LockAnswer::busy);
  CHECK(try_lock_byte(second.get(), 6) == LockAnswer::taken);
  unlock_byte(first.get(), 7);
  unlock_byte(first.get(), 4);
  CHECK(try_lock_byte(second.get(), 4) == LockAnswer::taken);
  CHECK(try_lock_all_bytes(second.get()) == LockAnswer::taken);
  CHECK(try_lock_byte(first.get(), 0) == LockAnswer::busy);
  CHECK(try_lock_byte(first.get(), 1'000'000) == LockAnswer::busy);
  CHECK(try_lock_byte(-1, 0) == LockAnswer::failed);
}

TEST_CASE("cache::file_lock: a brief lock waits for so long, and takes no file of several names") {
  const PrivateScene scene;
  const Result<FilesystemMagic> filesystem = filesystem_of(scene.fd.get());
  if (!filesystem || !locks_hold_on(*filesystem)) {
    WARN("skipped: the locks of the temporary folder's filesystem are not trusted");
    return;
  }
  const auto take = [&](const std::string& name) {
    return BriefLock::take(scene.fd.get(), name, std::chrono::milliseconds(1));
  };
  {
    const auto lock = take("lock");
    REQUIRE(lock);
    CHECK(mode_of(scene.path / "lock") == 0600);
    CHECK(::write(lock->file(), "x", 1) == 1);
    CHECK_FALSE(take("lock"));
    CHECK(take("another"));
  }
  CHECK(take("lock"));
  CHECK(scene.text("lock") == "x");
  fs::create_hard_link(scene.path / "lock", scene.path / "second");
  CHECK_FALSE(take("lock"));
  fs::create_symlink("another", scene.path / "link");
  CHECK_FALSE(take("link"));
  REQUIRE(mkfifo((scene.path / "fifo").c_str(), 0600) == 0);
  CHECK_FALSE(take("fifo"));
}

}  // namespace
}  // namespace kiln::test
