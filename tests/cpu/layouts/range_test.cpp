#include "onednn/layouts/range.hpp"

#include <catch2/catch.hpp>

namespace kiln::cpu {

TEST_CASE("ranges follow one another, end at the extent and begin at multiples of the unit") {
  for (const std::int64_t extent : {1, 2, 7, 16, 17, 63, 64, 65, 1000}) {
    for (const std::int64_t unit : {1, 3, 16, 64}) {
      for (const std::int64_t count : {1, 2, 3, 5, 64}) {
        INFO(extent << " in " << count << " of " << unit);
        const std::vector<Range> ranges = split(extent, count, unit);
        REQUIRE_FALSE(ranges.empty());
        CHECK(ranges.size() <= static_cast<std::size_t>(count));
        std::int64_t at = 0;
        bool right = true;
        for (const Range& range : ranges) {
          right = right && range.begin == at && range.begin % unit == 0 && range.size() > 0;
          at = range.end;
        }
        CHECK(right);
        CHECK(at == extent);
      }
    }
  }
}

TEST_CASE("pieces are cut along the first axis as far as it goes, and along the next where some are missing") {
  using Counts = std::vector<std::int64_t>;
  CHECK(share({{100, 1, 1}, {64, 16, 1}}, 4) == Counts{4, 1});
  CHECK(share({{2, 1, 1}, {64, 16, 1}}, 4) == Counts{2, 2});
  CHECK(share({{3, 1, 1}, {64, 16, 1}}, 4) == Counts{3, 2});
  CHECK(share({{8, 1, 3}, {64, 16, 1}}, 4) == Counts{2, 2});  // three at least in a piece
  CHECK(share({{1, 1, 1}, {15, 16, 1}}, 4) == Counts{1, 1});  // there is nothing to cut
  CHECK(share({{5, 1, 1}}, 1) == Counts{1});
}

}  // namespace kiln::cpu
