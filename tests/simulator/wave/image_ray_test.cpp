// Rays against boxes and triangles, on a wave of its own.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {
namespace {

constexpr U none = ~0U;

// One ray for all lanes: v1.. pointer, extent, origin, direction, inverse; the answer in v20..v23.
struct Rays {
  explicit Rays(Generation generation, U flags = 1U << 31U, U mode = 1U << 24U, WaveSize wave = WaveSize::wave32)
      : bench({generation, wave}) {
    fields.generation = generation;
    bench.sgpr(8) = bench.sgpr(9) = 0;
    bench.sgpr(9) = flags;
    bench.sgpr(10) = none;
    bench.sgpr(11) = 0x3FFU | mode | 8U << 28U;
    fields.data = 20;
    fields.unnormalised = true;
    fields.dim = ImageDim::one;
  }
  std::vector<U> words(bool wide) const {
    std::vector<U> all = mimg(wide ? "image_bvh64_intersect_ray" : "image_bvh_intersect_ray", fields);
    all[0] |= 1U << 15U;
    return all;
  }
  std::array<U, 4> cast(const std::vector<U>& node, unsigned type, float extent, const std::array<float, 3>& origin,
                        const std::array<float, 3>& direction) {
    const W pointer = (bench.memory.allocate(node) >> 3U) | type;
    std::vector<U> inputs{static_cast<U>(pointer), static_cast<U>(pointer >> 32U), bits_of_float(extent)};
    for (const float each : origin) inputs.push_back(bits_of_float(each));
    for (const float each : direction) inputs.push_back(bits_of_float(each));
    for (const float each : direction) inputs.push_back(bits_of_float(1 / each));
    for (unsigned i = 0; i < inputs.size(); ++i) bench.set_vgpr(1 + i, inputs[i]);
    bench.set_vgpr(24, 24);
    const auto fault = bench.run(words(true));
    INFO((fault ? fault->reason : std::string()));
    REQUIRE_FALSE(fault.has_value());
    CHECK(bench.vgpr(20, 6) == bench.vgpr(20, bench.wave.lanes() - 1));
    CHECK(bench.vgpr(24, 6) == 24);
    return {bench.vgpr(20, 6), bench.vgpr(21, 6), bench.vgpr(22, 6), bench.vgpr(23, 6)};
  }
  Bench bench;
  Fields fields;
};

// Children 10, 20, 30 and none, at x from 4, 2, 8 on, each two wide.
std::vector<U> float_boxes() {
  std::vector<U> node{10, 20, 30, none};
  for (const float x : {4.0F, 2.0F, 8.0F, 0.0F}) {
    for (const float each : {x, -1.0F, -1.0F, x + 2, 1.0F, 1.0F}) node.push_back(bits_of_float(each));
  }
  return node;
}

float value(U bits) {
  float number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

}  // namespace

TEST_CASE("simulator image_bvh: a ray meets boxes, the nearest first", "[simulator][wave]") {
  for (const Generation generation : both) {
    Rays sorted(generation), plain(generation, 0);
    const std::vector<U> node = float_boxes();
    using Answer = std::array<U, 4>;
    CHECK(sorted.cast(node, 5, 100, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{20, 10, 30, none});
    CHECK(sorted.cast(node, 5, 100, {20, 0, 0}, {-1, 0.01F, 0.01F}) == Answer{30, 10, 20, none});
    CHECK(sorted.cast(node, 5, 5, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{20, 10, none, none});    // extent
    CHECK(sorted.cast(node, 5, 100, {5, 0, 0}, {1, 0.01F, 0.01F}) == Answer{10, 30, none, none});  // from within
    CHECK(sorted.cast(node, 5, 100, {0, 3, 0}, {1, 0.01F, 0.01F}) == Answer{none, none, none, none});
    CHECK(plain.cast(node, 5, 100, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{10, 20, 30, none});
    // Of halves: 2 is 0x4000, 4 0x4400, 1 0x3C00.
    std::vector<U> halves{7,           8,           none,        none,        0xBC004000U,
                          0x4400BC00U, 0x3C003C00U, 0x7E007E00U, 0x7E007E00U, 0x7E007E00U};
    CHECK(sorted.cast(halves, 4, 100, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{7, none, none, none});
    // Boxes that grow by two units in the last place.
    Rays grown(generation, 2U << 23U);
    const float beside = std::nextafter(1.0F, 2.0F);
    CHECK(plain.cast(node, 5, 100, {0, beside, 0}, {1, 1e-30F, 0.01F}) == Answer{none, none, none, none});
    CHECK(grown.cast(node, 5, 100, {0, beside, 0}, {1, 1e-30F, 0.01F}) == Answer{10, 20, 30, none});
    CHECK(grown.cast(node, 5, 100, {0, -beside, 0}, {1, 1e-30F, 0.01F}) == Answer{10, 20, 30, none});
    // The extent counts in steps of the direction, and a box that begins there is met; so is one around the origin.
    CHECK(sorted.cast(node, 5, 2.5F, {0, 0, 0}, {2, 0.01F, 0.01F}) == Answer{20, 10, none, none});
    CHECK(sorted.cast(node, 5, 4, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{20, 10, none, none});
    CHECK(sorted.cast(node, 5, 0.5F, {5, 0, 0}, {1, 0.01F, 0.01F}) == Answer{10, none, none, none});
    std::vector<U> alike = node;  // 10, 20 and 30 are one box, but that 20 has no lower end
    for (unsigned i = 4; i < 22; ++i) alike[i] = node[4 + (i - 4) % 6];
    alike[10] = 0x7FC00000U;
    CHECK(sorted.cast(alike, 5, 100, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{10, 30, none, none});
    // Halves: 7 from 2 to 4, 8 from 1 to 2 on the first axis.
    halves[7] = 0xBC003C00U, halves[8] = 0x4000BC00U, halves[9] = 0x3C003C00U;
    CHECK(sorted.cast(halves, 4, 100, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{8, 7, none, none});
    Rays large(generation, 1U << 31U, 1U << 24U, WaveSize::wave64);
    CHECK(large.cast(node, 5, 100, {0, 0, 0}, {1, 0.01F, 0.01F}) == Answer{20, 10, 30, none});
  }
}

TEST_CASE("simulator image_bvh: a ray meets triangles", "[simulator][wave]") {
  std::vector<U> node(16);
  const float corners[5][3] = {{0, 0, 5}, {4, 0, 5}, {0, 4, 5}, {4, 4, 5}, {-4, 0, 5}};
  for (unsigned i = 0; i < 15; ++i) node[i] = bits_of_float(corners[i / 3][i % 3]);
  node[15] = 0x09090909U;  // coordinates of the second corner and the third
  for (const Generation generation : both) {
    Rays rays(generation);
    auto hit = rays.cast(node, 0, 1, {1, 0.5F, 0}, {0, 0, 2});
    CHECK(value(hit[0]) / value(hit[1]) == 2.5F);
    CHECK(value(hit[2]) / value(hit[1]) == 0.25F);
    CHECK(value(hit[3]) / value(hit[1]) == 0.125F);
    hit = rays.cast(node, 0, 100, {1, 0.5F, 10}, {0, 0, -1});  // from behind
    CHECK(value(hit[0]) / value(hit[1]) == 5);
    CHECK(value(hit[2]) / value(hit[1]) == 0.25F);
    const U infinite = bits_of_float(std::numeric_limits<float>::infinity());
    CHECK(rays.cast(node, 0, 100, {3, 3, 0}, {0, 0, 1})[0] == infinite);
    CHECK(rays.cast(node, 0, 100, {1, 0.5F, 6}, {0, 0, 1})[0] == infinite);  // away from it
    hit = rays.cast(node, 1, 100, {3, 3, 0}, {0, 0, 1});                     // corners 1, 3, 2
    CHECK(value(hit[0]) / value(hit[1]) == 5);
    CHECK(value(hit[2]) / value(hit[1]) == 0.5F);
    node[15] = 0x0609U;  // the other way round for triangle 1
    hit = rays.cast(node, 1, 100, {3.5F, 3, 0}, {0, 0, 1});
    CHECK(value(hit[2]) / value(hit[1]) == 0.125F);
    CHECK(value(hit[3]) / value(hit[1]) == 0.625F);
    node[15] = 0x09090909U;
    CHECK(rays.cast(node, 3, 100, {-1, 2, 0}, {0, 0, 1})[0] != infinite);  // corners 2, 4, 0
    CHECK(rays.cast(node, 3, 100, {1, 2, 0}, {0, 0, 1})[0] == infinite);
    hit = rays.cast(node, 2, 100, {0, 3, 0}, {0, 0, 1});  // corners 2, 3, 4
    CHECK(value(hit[0]) / value(hit[1]) == 5);
    CHECK(rays.cast(node, 2, 100, {0, 1, 0}, {0, 0, 1})[0] == infinite);
    Rays numbers(generation, 0, 0);
    hit = numbers.cast(node, 0, 100, {1, 0.5F, 0}, {0, 0, 2});
    CHECK(hit[2] == 0x09090909U);
    CHECK(hit[3] == 1);
  }
}

// Oblique and straight rays, along each axis and from both sides, at points of a small triangle that are given by the
// weights of its second and third corner. All numbers are exact.
TEST_CASE("simulator image_bvh: rays at the inside, the edges and beside a triangle", "[simulator][wave]") {
  const float corners[3][3] = {{0, 0, 0.25F}, {0.25F, 0, 0.375F}, {0, 0.5F, 0.3125F}};
  const float inside[][2] = {{0.25F, 0.125F}, {0, 0}, {1, 0}, {0, 1}};
  const float beside[][2] = {{-0.25F, 0.5F}, {0.5F, -0.25F}, {0.75F, 0.5F}, {-0.5F, -0.5F}, {-0.5F, 2}, {2, -0.5F}};
  const U infinite = bits_of_float(std::numeric_limits<float>::infinity());
  for (unsigned turn = 0; turn < 3; ++turn) {
    for (const float toward : {1.0F, -1.0F}) {
      for (const float t : {4.0F, 0.0F, -4.0F}) {
        for (unsigned point = 0; point < std::size(inside) + std::size(beside); ++point) {
          const bool meets = point < std::size(inside) && t >= 0;
          const auto [second, third] = point < 4 ? inside[point] : beside[point - 4];
          Rays rays(Generation::gfx11);
          std::vector<U> node(16);
          std::array<float, 3> origin{}, direction{};
          const float along[] = {t > 0 ? 0.5F : 0, t > 0 ? -0.25F : 0, toward};
          for (unsigned axis = 0; axis < 3; ++axis) {
            const unsigned to = (axis + turn) % 3;
            for (unsigned i = 0; i < 3; ++i) node[3 * i + to] = bits_of_float(corners[i][axis]);
            direction[to] = along[axis];
            origin[to] = (1 - second - third) * corners[0][axis] + second * corners[1][axis] +
                         third * corners[2][axis] - t * along[axis];
          }
          node[15] = 0x09U;
          INFO("turn " << turn << ", toward " << toward << ", " << t << " at " << second << " " << third);
          const std::array<U, 4> hit = rays.cast(node, 0, 1, origin, direction);
          if (!meets) {
            CHECK(hit == std::array<U, 4>{infinite, bits_of_float(1), 0, 0});
            continue;
          }
          CHECK((value(hit[1]) > 0) == (toward < 0));
          CHECK(value(hit[0]) / value(hit[1]) == t);
          CHECK(value(hit[2]) / value(hit[1]) == second);
          CHECK(value(hit[3]) / value(hit[1]) == third);
        }
      }
    }
  }
}

TEST_CASE("simulator image_bvh: halves, pointers of one word, refusals", "[simulator][wave]") {
  for (const Generation generation : both) {
    Rays rays(generation);
    const std::vector<U> node = float_boxes();
    const W base = rays.bench.memory.allocate(node);
    rays.bench.sgpr(8) = static_cast<U>(base >> 8U);
    rays.bench.sgpr(9) |= static_cast<U>(base >> 40U);
    // Directions 1, 0.5, 0.5 and their inverse 1, 2, 2.
    const bool gfx11 = generation == Generation::gfx11;
    const std::vector<U> halves = gfx11 ? std::vector<U>{0x3C003C00U, 0x38004000U, 0x38004000U}
                                        : std::vector<U>{0x38003C00U, 0x3C003800U, 0x40004000U};
    std::vector<U> inputs{5, bits_of_float(100), 0, bits_of_float(-1.5F), bits_of_float(-1.5F)};
    inputs.insert(inputs.end(), halves.begin(), halves.end());
    for (unsigned i = 0; i < inputs.size(); ++i) rays.bench.set_vgpr(1 + i, inputs[i]);
    rays.fields.a16 = true;
    REQUIRE_FALSE(rays.bench.run(rays.words(false)));
    CHECK(rays.bench.vgpr(20, 0) == 20);
    CHECK(rays.bench.vgpr(21, 0) == 10);
    CHECK(rays.bench.vgpr(22, 0) == none);
    // The last of the nodes' units of 64 bytes: the boxes are in the first and the second.
    const auto first_of_boxes = [&](U last) {
      rays.bench.sgpr(10) = last;
      rays.bench.sgpr(11) = 1U << 24U | 8U << 28U;
      REQUIRE_FALSE(rays.bench.run(rays.words(false)));
      return rays.bench.vgpr(20, 0);
    };
    CHECK(first_of_boxes(0) == 20);
    rays.bench.set_vgpr(1, 5U | 64U >> 3U);
    CHECK(first_of_boxes(0) == none);
    // A triangle across the ray's way: of the direction (1, 0.5, 0.5) and the origin (0, -1.5, -1.5) at 4.
    std::vector<U> triangle(16);
    const float corners[] = {4, 0, 0, 4, 2, 0, 4, 0, 2};
    for (unsigned i = 0; i < 9; ++i) triangle[i] = bits_of_float(corners[i]);
    triangle[15] = 0x0609U;
    std::memcpy(rays.bench.memory.host(base) + 512, triangle.data(), 64);
    rays.bench.set_vgpr(1, 512U >> 3U);
    first_of_boxes(8);
    CHECK(value(rays.bench.vgpr(20, 0)) / value(rays.bench.vgpr(21, 0)) == 4);
    CHECK(value(rays.bench.vgpr(22, 0)) / value(rays.bench.vgpr(21, 0)) == 0.25F);
    CHECK(first_of_boxes(7) == none);
    rays.bench.set_vgpr(1, 6);  // a node of the program's own
    REQUIRE_FALSE(rays.bench.run(rays.words(false)));
    CHECK(rays.bench.vgpr(20, 0) == none);
    rays.bench.sgpr(11) = 0;
    auto fault = rays.bench.run(rays.words(false));
    REQUIRE(fault);
    CHECK(fault->reason.find("image_bvh_intersect_ray: resource of type 0 in place of a hierarchy") == 0);
    rays.fields.mask = 7;
    fault = rays.bench.run(rays.words(false));
    REQUIRE(fault);
    CHECK(fault->reason.find("dmask:15 unrm r128") != std::string::npos);
  }
}

}  // namespace kiln::simulator::test
