#include <kiln/buffer.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

using namespace kiln;

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("unique fd: closes once, when its last holder goes", "[contract]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  {
    UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    CHECK(reader.get() == ends[0]);
    UniqueFd moved(std::move(reader));
    CHECK_FALSE(reader);
    CHECK(moved);
    CHECK(is_open(ends[0]));
    moved = std::move(writer);
    CHECK_FALSE(is_open(ends[0]));
    CHECK(is_open(ends[1]));
    UniqueFd& same = moved;
    moved = std::move(same);
    CHECK(is_open(ends[1]));
  }
  CHECK_FALSE(is_open(ends[1]));
}

TEST_CASE("unique fd: released is the caller's", "[contract]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  int kept = -1;
  {
    UniqueFd reader(ends[0]);
    kept = reader.release();
    CHECK_FALSE(reader);
  }
  CHECK(is_open(kept));
  ::close(kept);
  ::close(ends[1]);
}
