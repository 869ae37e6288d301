// Image instructions with a sampler, on a wave of their own.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {
namespace {

struct SamplerWords {
  unsigned wrap = 2;  // the last texel
  bool linear = false, unnormalised = false;
  unsigned mip = 0, compare = 0, border = 0, mode = 0, anisotropy = 0;
  float bias = 0, most = 15;
};

void set_sampler(Bench& bench, unsigned at, const SamplerWords& s) {
  const U filter = (s.linear ? 1U : 0U) | (s.anisotropy != 0 ? 2U : 0U);
  bench.sgpr(at) =
      s.wrap * 0b1001001U | s.compare << 12U | (s.unnormalised ? 1U << 15U : 0) | s.mode << 29U | s.anisotropy << 9U;
  bench.sgpr(at + 1) = static_cast<U>(s.most * 256) << 12U;
  bench.sgpr(at + 2) =
      (static_cast<U>(static_cast<int>(s.bias * 256)) & 0x3FFFU) | filter << 20U | filter << 22U | s.mip << 26U;
  bench.sgpr(at + 3) = s.border << 30U;
}

// Texel (x, y) of layer or slice z and level l: x + 10 y + 100 z + 1000 l; 4 by 4 texels, of level 1 two by two.
struct Pyramid {
  explicit Pyramid(Generation generation, ImageType type = ImageType::two, unsigned layers = 1) : bench({generation}) {
    std::vector<float> texels(16 * 1024);
    for (unsigned z = 0; z < layers; ++z) {
      for (unsigned y = 0; y < 6; ++y) {
        const unsigned level = y < 2 ? 1 : 0, size = level == 1 ? 2 : 4;
        for (unsigned x = 0; x < size; ++x) {
          texels[(z * 6 + y) * 64 + x] = static_cast<float>(x + 10 * (level == 1 ? y : y - 2) + 100 * z + 1000 * level);
        }
      }
    }
    Resource resource{generation, bench.memory.allocate(texels), 22};
    resource.type = type;
    resource.width = resource.height = 4;
    resource.last = type == ImageType::cube ? 0 : layers - 1;
    resource.last_level = 1;
    resource.levels = 2;
    set_resource(bench, 8, resource);
    fields.generation = generation;
    fields.mask = 1;
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
  Bench bench;
  Fields fields;
};

}  // namespace

TEST_CASE("simulator image_sample: filters, wraps, levels", "[simulator][wave]") {
  for (const Generation generation : both) {
    Pyramid image(generation);
    SamplerWords nearest, linear;
    linear.linear = true;
    CHECK(image.sample("image_sample_lz", nearest, {0.3F, 0.6F}) == 21);
    CHECK(image.sample("image_sample_lz", nearest, {-1, 7}) == 30);
    CHECK(image.sample("image_sample_lz", linear, {0.5F, 0.25F}) == 1.5F + 5);
    CHECK(image.sample("image_sample_lz", linear, {0.375F + 1 / 16.0F, 0.125F}) == 1.25F);
    CHECK(image.sample("image_sample_lz", linear, {0, 0}) == 0);
    SamplerWords repeat = linear, mirror = nearest, border = linear, half = linear, pixels = nearest;
    repeat.wrap = 0;
    mirror.wrap = 1;
    border.wrap = 6;
    border.border = 2;
    half.wrap = 4;
    half.border = 2;
    pixels.unnormalised = true;
    CHECK(image.sample("image_sample_lz", repeat, {1, 0.125F}) == 1.5F);
    CHECK(image.sample("image_sample_lz", repeat, {-0.125F, 2.125F}) == 3);
    CHECK(image.sample("image_sample_lz", mirror, {1.2F, -0.1F}) == 3);
    CHECK(image.sample("image_sample_lz", border, {0, 0.125F}) == 0.5F);
    CHECK(image.sample("image_sample_lz", border, {-3, 0}) == 1);
    CHECK(image.sample("image_sample_lz", half, {-3, 0.125F}) == 0.5F);
    CHECK(image.sample("image_sample_lz", pixels, {2.9F, 3.1F}) == 32);
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
    SamplerWords least = linear, most = linear;
    least.mode = 1;
    most.mode = 2;
    CHECK(image.sample("image_sample_lz", least, {0.5F, 0.5F}) == 11);
    CHECK(image.sample("image_sample_lz", most, {0.5F, 0.5F}) == 22);
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
      const bool along = lane < 16 ? lane % 4 == 1 || lane % 4 == 3 : lane % 4 >= 2;
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
    Pyramid cube(generation, ImageType::cube, 6);
    cube.fields.dim = ImageDim::cube;
    CHECK(cube.sample("image_sample_lz", nearest, {1.3F, 1.6F, 4}) == 421);
    CHECK(cube.sample("image_sample_lz", linear, {1.5F, 1.5F, 1}) == 116.5F);
    // Over the right edge of +z lies the left column of +x.
    CHECK(cube.sample("image_sample_lz", linear, {2, 1.125F, 4}) == (403 + 0) / 2.0F);
    // At its upper right corner +y is the third.
    const float corner = (403.0F + 0 + 233) / 3;
    CHECK(cube.sample("image_sample_lz", linear, {2, 1, 4}) == Approx((403 + 0 + 233 + corner) / 4));
    Pyramid flat(generation);
    flat.fields.mask = 1;
    const float first = flat.sample("image_gather4_lz", linear, {0.5F, 0.5F});
    CHECK(first == 21);
    CHECK(flat.bench.vgpr(11, 5) == bits_of_float(22));
    CHECK(flat.bench.vgpr(12, 5) == bits_of_float(12));
    CHECK(flat.bench.vgpr(13, 5) == bits_of_float(11));
    flat.fields.mask = 8;  // what the format lacks
    CHECK(flat.sample("image_gather4_lz", linear, {0.5F, 0.5F}) == 1);
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
