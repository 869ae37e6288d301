// Regular files: what is refused, by its kind and its size, and what a truncated file is.
#include <kiln/regular_file.hpp>

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "core/data/scratch_folder.hpp"

using kiln::RegularFile;
using kiln::StatusCode;
using kiln::SymbolicLink;
using kiln::test::bytes_of;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

namespace {

std::string opening(const std::filesystem::path& path, SymbolicLink link = SymbolicLink::follow) {
  const auto file = RegularFile::open(path, link);
  return file ? "ok" : file.error().text();
}

// A socket of this name; false: none can be made.
bool make_socket(const std::filesystem::path& path) {
  const kiln::UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  if (!made || name.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  return ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

TEST_CASE("regular file: what is none is refused by its kind, without waiting", "[regular_file]") {
  const ScratchFolder folder;
  const std::string who = "file " + folder.path().string();
  const std::string wrong = ": not a regular file (expected a file, found ";
  write_contents(folder / "file", "abcde");
  CHECK(opening(folder / "file") == "ok");
  CHECK(opening(folder / "file", SymbolicLink::refuse) == "ok");
  CHECK(opening(folder / "none") == "not_found: " + who + "/none: cannot open: No such file or directory");
  CHECK(opening(folder / "file" / "inner") == "not_found: " + who + "/file/inner: cannot open: Not a directory");
  CHECK(opening(folder.path()) == "invalid_argument: " + who + wrong + "a folder)");
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(opening(folder / "fifo") == "invalid_argument: " + who + "/fifo" + wrong + "a FIFO)");
  CHECK(opening("/dev/null") == "invalid_argument: file /dev/null" + wrong + "a device)");
  if (make_socket(folder / "socket")) {
    CHECK(opening(folder / "socket") == "invalid_argument: " + who + "/socket" + wrong + "a socket or a device)");
  }
  std::filesystem::create_symlink("file", folder / "link");
  CHECK(opening(folder / "link") == "ok");
  CHECK(opening(folder / "link", SymbolicLink::refuse) ==
        "invalid_argument: " + who + "/link" + wrong + "a symbolic link)");
  std::filesystem::create_symlink("circle", folder / "circle");
  CHECK(opening(folder / "circle") == "io: " + who + "/circle: cannot open: Too many levels of symbolic links");
}

TEST_CASE("regular file: it is read in part or as a whole, up to a size", "[regular_file]") {
  const ScratchFolder folder;
  write_contents(folder / "file", "abcde");
  const std::string who = "file " + (folder / "file").string();
  const RegularFile file = RegularFile::open(folder / "file").value();
  CHECK(file.bytes() == 5);
  CHECK(file.facts().st_nlink == 1);
  std::string part(3, '-');
  const auto into = std::as_writable_bytes(std::span(part));
  CHECK(file.read(1, into).ok());
  CHECK(part == "bcd");
  CHECK(file.read(2, into).ok());
  CHECK(part == "cde");
  CHECK(file.read(3, into).text() == "corrupt: " + who + ": has 5 bytes, expected at least 6");
  CHECK(file.read(5, {}).ok());
  CHECK(file.text(5).value() == "abcde");
  CHECK(file.contents(5).value().size() == 5);
  const std::string too_large = "invalid_argument: " + who + ": has 5 bytes, expected at most 4";
  CHECK(file.text(4).error().text() == too_large);
  CHECK(file.contents(4).error().text() == too_large);
  CHECK(kiln::read_whole_file(folder / "file", 5).value() == "abcde");
  CHECK(kiln::read_whole_file(folder / "file", 4).error().text() == too_large);
  CHECK(kiln::read_whole_file(folder / "none", 4).error().code == StatusCode::not_found);
  std::filesystem::create_symlink("file", folder / "link");
  CHECK(kiln::read_whole_file(folder / "link", 5).value() == "abcde");
  CHECK(kiln::read_whole_file(folder / "link", 5, SymbolicLink::refuse).error().code == StatusCode::invalid_argument);
}

TEST_CASE("regular file: digests are those of SHA-256, in blocks", "[regular_file]") {
  const ScratchFolder folder;
  write_contents(folder / "file", "abcde");
  const RegularFile file = RegularFile::open(folder / "file").value();
  CHECK(file.digest_of_first(0).value().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(file.digest_of_first(3).value().hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(file.digest_of_first(6).error().text() ==
        "corrupt: file " + (folder / "file").string() + ": has 5 bytes, expected at least 6");
  constexpr std::size_t mib = std::size_t{1} << 20;
  write_contents(folder / "large", std::string(mib + 3, 'a'));
  const RegularFile large = RegularFile::open(folder / "large").value();
  CHECK(large.digest_of_first(mib).value().hex() == "9bc1b2a288b26af7257a36277ae3816a7d4f16e89c1e7e77d0a5c48bad62b360");
  CHECK(large.digest_of_first(mib + 3).value().hex() ==
        "f5e25b6b994188fdb721357d459785dc479934edfd40f95658a45ab2ce2d8027");
}

TEST_CASE("regular file: one that is cut off after it was opened has what is left", "[regular_file]") {
  const ScratchFolder folder;
  write_contents(folder / "file", "abcde");
  const RegularFile file = RegularFile::open(folder / "file").value();
  std::filesystem::resize_file(folder / "file", 2);
  CHECK(file.bytes() == 5);
  CHECK(file.text(5).value() == "ab");
  CHECK(file.contents(5).value().size() == 2);
  CHECK(file.digest_of_first(5).error().code == StatusCode::corrupt);
  std::string part(2, '-');
  CHECK(file.read(0, std::as_writable_bytes(std::span(part))).ok());
  CHECK(part == "ab");
}
