#include <set>

#include <catch2/catch.hpp>

#include "onednn/primitives.hpp"
#include "support/conv_cases.hpp"

namespace kiln::cpu {
namespace {

// How often the tiles compute each output, and whether groups stay whole.
std::string wrong_with(const Conv2dSpec& spec, const Cuts& cuts) {
  std::vector<int> computed(static_cast<std::size_t>(spec.n * spec.k * spec.out_h() * spec.out_w()));
  for (const Cut& cut : cuts.tiles) {
    const std::int64_t group = spec.k / spec.groups;
    if (spec.groups != 1 && (cut.channels.begin % group != 0 || cut.channels.end % group != 0)) return "a group is cut";
    for (std::int64_t n = cut.images.begin; n < cut.images.end; ++n) {
      for (std::int64_t k = cut.channels.begin; k < cut.channels.end; ++k) {
        for (std::int64_t y = cut.rows.begin; y < cut.rows.end; ++y) {
          for (std::int64_t x = cut.columns.begin; x < cut.columns.end; ++x) {
            ++computed[static_cast<std::size_t>(((n * spec.k + k) * spec.out_h() + y) * spec.out_w() + x)];
          }
        }
      }
    }
  }
  for (const int times : computed) {
    if (times != 1) return "an output is computed " + std::to_string(times) + " times";
  }
  return {};
}

std::set<std::string> names_of(const Conv2dSpec& spec, int threads) {
  std::set<std::string> names;
  for (const Cuts& cuts : cuts_of(spec, threads, Choices::many)) names.insert(cuts.name);
  return names;
}

Conv2dSpec conv(std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k) {
  Conv2dSpec spec;
  spec.c = c, spec.h = h, spec.w = w, spec.k = k, spec.r = spec.s = 1;
  return spec;
}

}  // namespace

TEST_CASE("tiles compute every output once, keep groups whole, and no two ways share a name") {
  for (const Conv2dSpec& spec : support::random_cases(200, 17, 400000)) {
    for (const int threads : {2, 3, 8}) {
      std::set<std::string> names;
      for (const Cuts& cuts : cuts_of(spec, threads, Choices::many)) {
        INFO(canonical_text(spec) << ", " << threads << " threads, " << cuts.name);
        CHECK(cuts.tiles.size() > 1);
        CHECK(names.insert(cuts.name).second);
        CHECK(wrong_with(spec, cuts) == "");
      }
      for (const Cuts& cuts : cuts_of(spec, threads, Choices::few)) CHECK(wrong_with(spec, cuts) == "");
    }
  }
}

TEST_CASE("one thread gets no tiles") { CHECK(cuts_of(conv(64, 56, 56, 64), 1, Choices::many).empty()); }

TEST_CASE("whatever has an extent to cut is cut along it") {
  CHECK(names_of(conv(64, 56, 56, 64), 2).contains("4 tiles by rows"));
  CHECK(names_of(conv(64, 5, 5, 64), 2).contains("2 tiles by channels"));
  CHECK(names_of(conv(4, 1, 4000, 8), 2).contains("2 tiles by columns"));
  CHECK(names_of(conv(4, 1, 1, 8), 2).empty());
  Conv2dSpec spec = conv(4, 2, 2, 8);
  spec.n = 12;
  CHECK(names_of(spec, 2).contains("4 tiles by images"));
  spec = conv(96, 4, 4, 96);
  spec.groups = 96;
  CHECK(names_of(spec, 2).contains("2 tiles by channels"));
  CHECK(names_of(conv(64, 8, 8, 64), 16).contains("2x4 tiles by rows and channels"));
}

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
