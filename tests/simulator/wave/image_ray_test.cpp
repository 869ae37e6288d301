// Rays against boxes and triangles, on a wave of its own.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {
namespace {

constexpr U none = ~0U;

// One ray for all lanes: v1.. pointer, extent, origin, direction, inverse; the answer in v20..v23.
struct Rays {
  explicit Rays(Generation generation, U flags = 1U << 31U, U mode = 1U << 24U) : bench({generation}) {
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
    const auto fault = bench.run(words(true));
    INFO((fault ? fault->reason : std::string()));
    REQUIRE_FALSE(fault.has_value());
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
  }
}

TEST_CASE("simulator image_bvh: a ray meets triangles", "[simulator][wave]") {
  std::vector<U> node(16);
  const float corners[5][3] = {{0, 0, 5}, {4, 0, 5}, {0, 4, 5}, {4, 4, 5}, {-4, 4, 5}};
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
    CHECK(rays.cast(node, 3, 100, {-1, 2, 0}, {0, 0, 1})[0] != infinite);  // corners 2, 4, 0
    CHECK(rays.cast(node, 3, 100, {1, 2, 0}, {0, 0, 1})[0] == infinite);
    Rays numbers(generation, 0, 0);
    hit = numbers.cast(node, 0, 100, {1, 0.5F, 0}, {0, 0, 2});
    CHECK(hit[2] == 0x09090909U);
    CHECK(hit[3] == 1);
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
