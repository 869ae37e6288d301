// Image instructions with a sampler, on a wave of their own.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {
namespace {

struct SamplerWords {
  unsigned wrap = 2;                                         // the last texel
  bool linear = false, unnormalised = false, sharp = false;  // sharp: linear where it enlarges alone
  unsigned mip = 0, compare = 0, border = 0, mode = 0, anisotropy = 0;
  float bias = 0, least = 0, most = 15;
};

void set_sampler(Bench& bench, unsigned at, const SamplerWords& s) {
  const U filter = (s.linear ? 1U : 0U) | (s.anisotropy != 0 ? 2U : 0U);
  bench.sgpr(at) =
      s.wrap * 0b1001001U | s.compare << 12U | (s.unnormalised ? 1U << 15U : 0) | s.mode << 29U | s.anisotropy << 9U;
  bench.sgpr(at + 1) = static_cast<U>(s.least * 256) | static_cast<U>(s.most * 256) << 12U;
  bench.sgpr(at + 2) = (static_cast<U>(static_cast<int>(s.bias * 256)) & 0x3FFFU) | filter << 20U |
                       (s.sharp ? 0 : filter) << 22U | s.mip << 26U;
  bench.sgpr(at + 3) = s.border << 30U;
}

// Texel (x, y) of layer or slice z and level l: x + 10 y + 100 z + 1000 l; 4 by 4 texels, of level 1 two by two. Of
// four components the second one is a quarter more, and so on.
struct Pyramid {
  explicit Pyramid(Generation generation, ImageType type = ImageType::two, unsigned layers = 1, unsigned components = 1)
      : bench({generation}) {
    std::vector<float> texels(16 * 1024);
    for (unsigned z = 0; z < layers; ++z) {
      for (unsigned y = 0; y < 6; ++y) {
        const unsigned level = y < 2 ? 1 : 0, size = level == 1 ? 2 : 4;
        for (unsigned x = 0; x < size; ++x) {
          const auto texel = static_cast<float>(x + 10 * (level == 1 ? y : y - 2) + 100 * z + 1000 * level);
          float* const at = &texels[(z * 6 + y) * 64 + x * components];
          for (unsigned c = 0; c < components; ++c) at[c] = texel + 0.25F * static_cast<float>(c);
        }
      }
    }
    resource.generation = generation;
    resource.base = bench.memory.allocate(texels);
    resource.format = components == 1 ? 22 : generation == Generation::gfx11 ? 63 : 77;
    resource.type = type;
    resource.width = resource.height = 4;
    resource.last = type == ImageType::cube && layers == 6 ? 0 : layers - 1;
    resource.last_level = 1;
    resource.levels = 2;
    set_resource(bench, 8, resource);
    fields.generation = generation;
    fields.mask = (1U << components) - 1;
    fields.sampler = 16;
  }
  // `inputs` of all lanes, in the address's order.
  float sample(const char* name, const SamplerWords& sampler, std::vector<float> inputs) {
    set_sampler(bench, 16, sampler);
    for (unsigned i = 0; i < inputs.size(); ++i) bench.set_vgpr(1 + i, bits_of_float(inputs[i]));
    const auto fault = bench.run(mimg(name, fields));
    INFO((fault ? fault->reason : std::string()));
    REQUIRE_FALSE(fault.has_value());
    float value = 0;
    const U bits = bench.vgpr(10, 5);
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  std::vector<U> components() { return {bench.vgpr(10, 5), bench.vgpr(11, 5), bench.vgpr(12, 5), bench.vgpr(13, 5)}; }
  Bench bench;
  Resource resource;
  Fields fields;
};

}  // namespace

TEST_CASE("simulator image_sample: filters, wraps, levels", "[simulator][wave]") {
  for (const Generation generation : both) {
    Pyramid image(generation);
    SamplerWords nearest, linear;
    linear.linear = true;
    CHECK(image.sample("image_sample_lz", nearest, {-1, 7}) == 30);
    CHECK(image.sample("image_sample_lz", linear, {0.375F + 1 / 16.0F, 0.125F}) == 1.25F);
    CHECK(image.sample("image_sample_lz", linear, {0, 0}) == 0);
    SamplerWords repeat = linear, mirror = nearest, border = linear, half = linear;
    repeat.wrap = 0;
    mirror.wrap = 1;
    border.wrap = 6;
    border.border = 2;
    half.wrap = 4;
    half.border = 2;
    CHECK(image.sample("image_sample_lz", repeat, {1, 0.125F}) == 1.5F);
    CHECK(image.sample("image_sample_lz", repeat, {-0.125F, 2.125F}) == 3);
    CHECK(image.sample("image_sample_lz", mirror, {1.2F, -0.1F}) == 3);
    CHECK(image.sample("image_sample_lz", border, {0, 0.125F}) == 0.5F);
    CHECK(image.sample("image_sample_lz", border, {-3, 0}) == 1);
    CHECK(image.sample("image_sample_lz", half, {-3, 0.125F}) == 0.5F);
    // Levels: given, limited, biased, between two; out of derivatives.
    SamplerWords points = nearest, blended = nearest, biased = nearest, limited = nearest;
    points.mip = biased.mip = limited.mip = 1;
    blended.mip = 2;
    biased.bias = 1;
    limited.most = 0.25F;
    CHECK(image.sample("image_sample_l", nearest, {0.6F, 0.6F, 1}) == 22);
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 0.4F}) == 22);
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 9}) == 1011);
    CHECK(image.sample("image_sample_l", limited, {0.6F, 0.6F, 9}) == 22);
    CHECK(image.sample("image_sample_l", biased, {0.6F, 0.6F, 0}) == 1011);
    CHECK(image.sample("image_sample_l", blended, {0.6F, 0.6F, 0.25F}) == 22 * 0.75F + 1011 * 0.25F);
    CHECK(image.sample("image_sample_d", points, {0.5F, 0, 0, 0, 0.6F, 0.6F}) == 1011);
    CHECK(image.sample("image_sample_d", points, {0.25F, 0, 0, 0.3F, 0.6F, 0.6F}) == 22);
    CHECK(image.sample("image_sample_b", points, {40, 0.6F, 0.6F}) == 22);  // all lanes at one place: -infinity
    // Comparisons come before the filter.
    SamplerWords compare = linear;
    compare.compare = 1;  // less
    CHECK(image.sample("image_sample_c_lz", compare, {11.5F, 0.5F, 0.5F}) == 0.75F);
    CHECK(image.sample("image_sample_c_lz", compare, {50, 0.5F, 0.5F}) == 0);
  }
}

TEST_CASE("simulator image_sample: offsets, halves, derivatives of quads, refusals", "[simulator][wave]") {
  for (const Generation generation : both) {
    Pyramid image(generation);
    Bench& bench = image.bench;
    SamplerWords points;
    points.mip = 1;
    float packed = 0;
    const U offset = 1U | 0x3FU << 8U;  // 1, -1
    std::memcpy(&packed, &offset, sizeof(packed));
    CHECK(image.sample("image_sample_lz_o", points, {packed, 0.3F, 0.6F}) == 12);
    image.fields.a16 = true;
    const U halves = 0x34CDU | 0x38CDU << 16U;  // 0.3, 0.6
    std::memcpy(&packed, &halves, sizeof(packed));
    CHECK(image.sample("image_sample_lz", points, {packed}) == 21);
    image.fields.a16 = false;
    // Each quad one texel of level 1 apart, in its second lane or its third.
    set_sampler(bench, 16, points);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const bool along = lane % 4 == (lane < 16 ? 1 : 2);
      const bool wide = lane % 8 < 4;
      bench.vgpr(1, lane) = bits_of_float(0.1F + (along && lane < 16 ? wide ? 0.5F : 0.25F : 0));
      bench.vgpr(2, lane) = bits_of_float(0.1F + (along && lane >= 16 ? wide ? 0.5F : 0.25F : 0));
    }
    REQUIRE_FALSE(bench.run(mimg("image_sample", image.fields)));
    for (unsigned lane = 0; lane < 32; ++lane) {
      INFO("lane " << lane);
      float value = 0;
      std::memcpy(&value, &bench.vgpr(10, lane), sizeof(value));
      CHECK((value >= 1000) == (lane % 8 < 4));
    }
    Fields lod = image.fields;
    lod.mask = 3;
    REQUIRE_FALSE(bench.run(mimg("image_get_lod", lod)));
    CHECK(bench.vgpr(10, 0) == bits_of_float(1));
    CHECK(bench.vgpr(11, 0) == bits_of_float(1));
    CHECK(bench.vgpr(10, 4) == bits_of_float(0));
    // A bias, and the least level that an instruction, a resource or nothing asks for.
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(2, lane) = bits_of_float(lane % 4 == 1 ? 0.85F : 0.6F);
      bench.vgpr(3, lane) = bits_of_float(0.6F);
    }
    bench.set_vgpr(1, bits_of_float(1));
    REQUIRE_FALSE(bench.run(mimg("image_sample_b", image.fields)));
    CHECK(bench.vgpr(10, 0) == bits_of_float(1011));
    CHECK(image.sample("image_sample_cl", points, {0.6F, 0.6F, 1}) == 1011);
    CHECK(image.sample("image_sample_cl", points, {0.6F, 0.6F, 0}) == 22);
    (generation == Generation::gfx11 ? bench.sgpr(14) : bench.sgpr(9)) |=
        generation == Generation::gfx11 ? 8U : 1U << 16U;
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 0}) == 1011);
    set_resource(bench, 8, image.resource);
    // Derivatives as halves: 0.5 is 0x3800, 0.25 0x3400.
    const auto by_halves = [&](U along_first, U along_second) {
      set_sampler(bench, 16, points);
      bench.set_vgpr(1, along_first);
      bench.set_vgpr(2, along_second);
      bench.set_vgpr(3, bits_of_float(0.6F));
      bench.set_vgpr(4, bits_of_float(0.6F));
      REQUIRE_FALSE(bench.run(mimg("image_sample_d_g16", image.fields)));
      return bench.vgpr(10, 5);
    };
    CHECK(by_halves(0x3800U, 0x3400U) == bits_of_float(1011));
    CHECK(by_halves(0x3400U << 16U, 0x3800U << 16U) == bits_of_float(1011));
    CHECK(by_halves(0x3400U, 0x3400U << 16U) == bits_of_float(22));
    SamplerWords table;
    table.wrap = 6;
    table.border = 3;
    set_sampler(bench, 16, table);
    bench.set_vgpr(1, bits_of_float(5));
    const auto fault = bench.run(mimg("image_sample_lz", image.fields));
    REQUIRE(fault);
    CHECK(fault->reason.find("image_sample_lz: a border colour without TA_CS_BC_BASE_ADDR is not simulated") == 0);
    bench.wave.border_colors = bench.memory.allocate(std::vector<U>{1, 2, 3, 4, 5, 6, 7, 8});
    bench.sgpr(19) |= generation == Generation::gfx11 ? 1U << 18U : 1U;
    REQUIRE_FALSE(bench.run(mimg("image_sample_lz", image.fields)));
    CHECK(bench.vgpr(10, 3) == 5);
  }
}

TEST_CASE("simulator image_sample, image_gather4: layers, cubes, volumes, four texels", "[simulator][wave]") {
  for (const Generation generation : both) {
    SamplerWords nearest, linear;
    linear.linear = true;
    Pyramid array(generation, ImageType::two_array, 3);
    array.fields.dim = ImageDim::two_array;
    CHECK(array.sample("image_sample_lz", nearest, {0.3F, 0.6F, 0.9F}) == 121);
    CHECK(array.sample("image_sample_lz", nearest, {0.3F, 0.6F, -4}) == 21);
    CHECK(array.sample("image_sample_lz", nearest, {0.3F, 0.6F, 8}) == 221);
    Pyramid volume(generation, ImageType::three, 3);
    volume.fields.dim = ImageDim::three;
    CHECK(volume.sample("image_sample_lz", nearest, {0.3F, 0.6F, 0.3F}) == 21);
    CHECK(volume.sample("image_sample_lz", nearest, {0.3F, 0.6F, 0.5F}) == 121);
    CHECK(volume.sample("image_sample_lz", nearest, {0.3F, 0.6F, 0.9F}) == 221);
    CHECK(volume.sample("image_sample_lz", linear, {0.375F, 0.625F, 2 / 3.0F}) == Approx(171));
    Pyramid cube(generation, ImageType::cube, 6);
    cube.fields.dim = ImageDim::cube;
    CHECK(cube.sample("image_sample_lz", nearest, {1.3F, 1.6F, 4}) == 421);
    CHECK(cube.sample("image_sample_lz", linear, {1.5F, 1.5F, 1}) == 116.5F);
    // Over the right edge of +z lies the left column of +x.
    CHECK(cube.sample("image_sample_lz", linear, {2, 1.125F, 4}) == (403 + 0) / 2.0F);
    // At each of its corners a third face joins +z and its neighbour.
    const float sums[2][2] = {{400 + 103 + 230, 403 + 0 + 233}, {430 + 133 + 300, 433 + 30 + 303}};
    for (unsigned i = 0; i < 4; ++i) {
      const auto u = static_cast<float>(1 + i % 2), v = static_cast<float>(1 + i / 2);
      CHECK(cube.sample("image_sample_lz", linear, {u, v, 4}) == Approx(sums[i / 2][i % 2] / 3));
    }
    // In the second row or column over the left, the right, the upper and the lower edge of each face: half is the
    // neighbour's, by the directions to the faces' corners.
    const float edges[6][4] = {{211.5F, 261.5F, 112, 172},    {311.5F, 261.5F, 155.5F, 225.5F},
                               {155.5F, 107.5F, 351.5F, 316}, {221, 172, 366, 431.5F},
                               {261.5F, 211.5F, 316, 366},    {261.5F, 311.5F, 351.5F, 431.5F}};
    const float places[4][2] = {{1, 1.375F}, {2, 1.375F}, {1.375F, 1}, {1.375F, 2}};
    for (unsigned face = 0; face < 6; ++face) {
      for (unsigned edge = 0; edge < 4; ++edge) {
        INFO("face " << face << ", edge " << edge);
        const std::vector<float> place{places[edge][0], places[edge][1], static_cast<float>(face)};
        CHECK(cube.sample("image_sample_lz", linear, place) == edges[face][edge]);
      }
    }
    Pyramid cubes(generation, ImageType::cube, 12);
    cubes.fields.dim = ImageDim::cube;
    CHECK(cubes.sample("image_sample_lz", nearest, {1.3F, 1.6F, 9}) == 721);
    CHECK(cubes.sample("image_sample_lz", linear, {2, 1.375F, 12}) == (1013 + 610) / 2.0F);
    CHECK(cubes.sample("image_sample_lz", nearest, {1.3F, 1.6F, 7}) == 521);
    Pyramid flat(generation);
    flat.fields.mask = 1;
    const float first = flat.sample("image_gather4_lz", linear, {0.5F, 0.5F});
    CHECK(first == 21);
    CHECK(flat.bench.vgpr(11, 5) == bits_of_float(22));
    CHECK(flat.bench.vgpr(12, 5) == bits_of_float(12));
    CHECK(flat.bench.vgpr(13, 5) == bits_of_float(11));
    CHECK(flat.sample("image_gather4_c_lz", linear, {50, 0.5F, 0.5F}) == 0);
    linear.compare = 4;  // greater
    CHECK(flat.sample("image_gather4_c_lz", linear, {11.5F, 0.5F, 0.5F}) == 0);
    CHECK(flat.bench.vgpr(13, 5) == bits_of_float(1));
    linear.mip = 1;
    CHECK(flat.sample("image_gather4_l", linear, {0.5F, 0.5F, 0.4F}) == 21);
    CHECK(flat.sample("image_gather4_l", linear, {0.5F, 0.5F, 0.6F}) == 1010);
    linear.mip = 0;
    CHECK(flat.sample("image_gather4_l", linear, {0.5F, 0.5F, 0.6F}) == 21);
    flat.fields.mask = 8;  // what the format lacks
    CHECK(flat.sample("image_gather4_lz", linear, {0.5F, 0.5F}) == 1);
  }
}

TEST_CASE("simulator image_sample: four components, borders, coordinates without end", "[simulator][wave]") {
  const U one = bits_of_float(1);
  for (const Generation generation : both) {
    Pyramid image(generation, ImageType::two, 1, 4);
    Bench& bench = image.bench;
    SamplerWords nearest, linear, points, blended;
    linear.linear = blended.linear = true;
    points.mip = 1;
    blended.mip = 2;
    struct Row {
      const char* name;
      SamplerWords sampler;
      std::vector<float> inputs;
      float expected;
    };
    SamplerWords least = linear, most = linear, anisotropic = linear, half = nearest, mirrored = nearest,
                 repeat = linear;
    SamplerWords pixels = points, sharp = linear, small = points, folded = nearest;
    least.mode = 1;
    most.mode = 2;
    anisotropic.anisotropy = 2;
    half.wrap = 4;
    mirrored.wrap = 5;
    repeat.wrap = 0;
    folded.wrap = 3;
    small.least = 1;
    pixels.unnormalised = sharp.sharp = true;
    const float infinite = std::numeric_limits<float>::infinity(), part = 65 / 256.0F;
    const Row rows[] = {
        {"image_sample_lz", nearest, {0.3F, 0.6F}, 21},
        {"image_sample_lz", linear, {0.5F, 0.25F}, 6.5F},
        {"image_sample_lz", least, {0.5F, 0.5F}, 11},
        {"image_sample_lz", most, {0.5F, 0.5F}, 22},
        {"image_sample_l", blended, {0.625F, 0.625F, 0.255F}, 22 * (1 - part) + 1008.25F * part},
        {"image_sample_l", sharp, {0.5F, 0.25F, 0}, 6.5F},
        {"image_sample_l", sharp, {0.55F, 0.3F, 0.5F}, 12},
        // The first row, from two texels beside it on: (0 + 0 + 0 + 1) / 4; likewise a column.
        {"image_sample_d", anisotropic, {1, 0, 0, 0.25F, 0, 0.375F}, 10.25F},
        {"image_sample_d", anisotropic, {0, 1, 0.25F, 0, 0.375F, 0}, 1 + 2.5F},
        {"image_sample_d", pixels, {2, 0, 0, 0, 2.9F, 3.1F}, 1011},
        {"image_sample_d", pixels, {1, 0, 0, 0, 2.9F, 3.1F}, 32},
        {"image_sample_lz", repeat, {100.125F, 0.125F}, 0},
        {"image_sample_lz", nearest, {infinite, infinite}, 33},
        {"image_sample_lz", nearest, {-infinite, std::nanf("")}, 0},
        {"image_sample_lz", half, {7, 0.3F}, 13},
        {"image_sample_lz", mirrored, {-0.3F, 0.3F}, 11},
        {"image_sample_lz", mirrored, {-7, 0.3F}, 13},
        {"image_sample_lz", folded, {-0.3F, -0.01F}, 1},
        {"image_sample_lz", folded, {-7, 7}, 33},
        {"image_sample_l", small, {0.6F, 0.6F, 0}, 1011},
    };
    for (const Row& row : rows) {
      INFO(row.name << " of " << row.inputs[0] << " " << row.inputs[1]);
      image.sample(row.name, row.sampler, row.inputs);
      std::vector<U> expected;
      for (const float step : {0.0F, 0.25F, 0.5F, 0.75F}) expected.push_back(bits_of_float(row.expected + step));
      CHECK(image.components() == expected);
    }
    // Components in another order, which a gather looks at once.
    bench.sgpr(11) = (bench.sgpr(11) & ~0xFFFU) | 6U | 4U << 3U | 7U << 6U | 1U << 9U;
    image.sample("image_sample_lz", nearest, {0.3F, 0.6F});
    const auto bits = [](float value) { return bits_of_float(value); };
    CHECK(image.components() == std::vector<U>{bits(21.5F), bits(21), bits(21.75F), one});
    image.fields.mask = 4;
    image.sample("image_gather4_lz", linear, {0.5F, 0.5F});
    CHECK(image.components() == std::vector<U>{bits(21.75F), bits(22.75F), bits(12.75F), bits(11.75F)});
    // Borders: zeros, black, white, and a colour of the table in each order of its components.
    image.fields.mask = 15;
    set_resource(bench, 8, image.resource);
    SamplerWords border = nearest;
    border.wrap = 6;
    const std::vector<U> plain[] = {{0, 0, 0, 0}, {0, 0, 0, one}, {one, one, one, one}};
    for (border.border = 0; border.border < 3; ++border.border) {
      image.sample("image_sample_lz", border, {5, 0});
      CHECK(image.components() == plain[border.border]);
    }
    bench.wave.border_colors = bench.memory.allocate(std::vector<U>{1, 2, 3, 4});
    const std::vector<U> orders[] = {{1, 2, 3, 4}, {1, 4, 2, 3}, {4, 3, 2, 1},
                                     {4, 1, 2, 3}, {3, 2, 1, 4}, {2, 1, 4, 3}};
    for (unsigned order = 0; order < std::size(orders); ++order) {
      set_resource(bench, 8, image.resource);
      bench.sgpr(11) |= order << 25U;
      image.sample("image_sample_lz", border, {5, 0});
      CHECK(image.components() == orders[order]);
    }
    Pyramid depths(generation);
    for (SamplerWords compare; compare.compare < 8; ++compare.compare) {
      for (const float reference : {20.0F, 21.0F, 22.0F}) {
        const bool passes = (compare.compare >> static_cast<int>(reference - 20) & 1U) != 0;  // less, equal, greater
        CHECK(depths.sample("image_sample_c_lz", compare, {reference, 0.3F, 0.6F}) == (passes ? 1 : 0));
      }
    }
    // What is stored as sRGB, and the same without the curve: 0x80 is 0.2159 or 128 / 255.
    Pyramid curved(generation);
    curved.resource.format = generation == Generation::gfx11 ? 66 : 130;
    curved.resource.base = curved.bench.memory.allocate(std::vector<U>(1024, 0x80808080U));
    set_resource(curved.bench, 8, curved.resource);
    CHECK(curved.sample("image_sample_lz", nearest, {0.3F, 0.6F}) == Approx(0.2158605F));
    nearest.mode = 4;  // the bit above the mode
    CHECK(curved.sample("image_sample_lz", nearest, {0.3F, 0.6F}) == Approx(128.0F / 255));
    // Integers come as they are, whatever the filter, and a border is 1 of them.
    Pyramid numbers(generation);
    numbers.resource.format = 20;
    numbers.resource.base = numbers.bench.memory.allocate(std::vector<U>(1024, 0x7F800001U));
    set_resource(numbers.bench, 8, numbers.resource);
    numbers.sample("image_sample_l", blended, {0.5F, 0.5F, 0.5F});
    CHECK(numbers.bench.vgpr(10, 5) == 0x7F800001U);
    border.border = 2;
    numbers.sample("image_sample_lz", border, {5, 0});
    CHECK(numbers.bench.vgpr(10, 5) == 1);
    // A resource that begins at its second level.
    image.resource.base_level = 1;
    set_resource(bench, 8, image.resource);
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 0}) == 1011);
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 1}) == 1011);
    image.fields.mask = 1;
    CHECK(image.sample("image_gather4_l", points, {0.5F, 0.5F, 1}) == 1010);
  }
}

// Level 0 has x + 10 y, level 1 that and 1000.
TEST_CASE("simulator image_sample: anisotropic filters", "[simulator][wave]") {
  for (const Generation generation : both) {
    Pyramid image(generation);
    SamplerWords four;
    four.linear = true;
    four.wrap = 0;
    four.mip = 1;
    four.anisotropy = 2;          // at most four samples
    const float step = 1 / 4.0F;  // a texel
    // Four texels along x and one along y: four samples of level 0, which together weigh the whole row.
    CHECK(image.sample("image_sample_d", four, {4 * step, 0, 0, step, 0.5F, 1.5F * step}) == Approx(1.5F + 10));
    // Two along y, from the middle of row 1 on: half a texel up and down.
    CHECK(image.sample("image_sample_d", four, {0, step, 2 * step, 0, 1.5F * step, 1.5F * step}) == Approx(1 + 10));
    CHECK(image.sample("image_sample_d", four, {0, step, 2 * step, 0, 1.5F * step, 1.75F * step}) == Approx(1 + 12.5F));
    // As long on both axes: one sample of level 1.
    CHECK(image.sample("image_sample_d", four, {2 * step, 0, 0, 2 * step, 0.75F, 0.75F}) == Approx(1011));
    // Eight along x and one along y: four samples at most, so of level 1.
    CHECK(image.sample("image_sample_d", four, {8 * step, 0, 0, step, 0.5F, 0.75F}) == Approx(1010.5F));
    CHECK(image.sample("image_sample_l", four, {0.75F, 0.75F, 1}) == 1011);
  }
}

}  // namespace kiln::simulator::test
