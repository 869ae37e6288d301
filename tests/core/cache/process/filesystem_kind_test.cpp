// Which filesystems' locks are trusted.
#include "base/os/file_lock.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>

namespace kiln::test {
namespace {

TEST_CASE(
    "cache::filesystem_kind: local ones hold their locks; those of a network, of user space and unknown ones may not") {
  for (const FilesystemMagic local : {0xEF53u, 0x58465342u, 0x9123683Eu, 0x01021994u, 0x794C7630u}) {
    CAPTURE(name_of_filesystem(local));
    CHECK(locks_hold_on(local));
  }
  for (const FilesystemMagic other : {0x6969u, 0xFF534D42u, 0xFE534D42u, 0x65735546u, 0x01021997u, 0x12345678u}) {
    CAPTURE(name_of_filesystem(other));
    CHECK_FALSE(locks_hold_on(other));
  }
  CHECK(name_of_filesystem(0x6969) == "nfs");
  CHECK(name_of_filesystem(0x12345678) == "0x12345678");
}

TEST_CASE("cache::filesystem_kind: the kernel is asked about an open file") {
  const CacheTestFolder folder;
  const UniqueFd proc(open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(filesystem_of(proc.get()));
  CHECK(*filesystem_of(proc.get()) == 0x9fa0);  // procfs
  CHECK_FALSE(filesystem_of(-1));
}

}  // namespace
}  // namespace kiln::test
