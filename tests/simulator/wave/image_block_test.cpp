// Texels of BC6 and BC7 blocks, one block of each of their layouts, with llvmpipe's colours; and addresses that are
// mapped without memory.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {
namespace {

struct BlockCase {
  unsigned format;  // after BC1_UNORM
  U block[4];
  unsigned x, y;
  float color[4];
};

constexpr BlockCase block_cases[] = {
    {10, {0x93BD04CC, 0x95E60AF5, 0x658CDA14, 0x0CB1E29C}, 2, 3, {8.38637352e-05F, 3528, 85.375F, 1}},
    {10, {0xF9EBDACD, 0x3898D190, 0x0BECD7B0, 0x8E81973E}, 1, 2, {1398, 37.53125F, 235.625F, 1}},
    {10, {0xDBC496C2, 0x2217BEAD, 0x4A23D596, 0x6B4CB242}, 2, 0, {0.000235438347F, 19504, 0.0849609375F, 1}},
    {10, {0x24EDE6A6, 0x8A6A63EC, 0x1E27A1C0, 0x92276658}, 3, 0, {7736, 0.00390625F, 407, 1}},
    {10, {0x4EF8AA2A, 0x8F6D0558, 0xD0EDA82F, 0xAE97BA94}, 1, 3, {0.00109672546F, 0.00584030151F, 2.56299973e-05F, 1}},
    {10, {0x2E44158E, 0x1A61DBE2, 0x94E3BF91, 0x923A7369}, 1, 1, {0.0578613281F, 0.0148925781F, 5.6953125F, 1}},
    {10, {0xA38FD552, 0x301850C5, 0x5F557203, 0x18F135D2}, 2, 2, {93.6875F, 0.000459432602F, 1402, 1}},
    {10, {0x8C38FB36, 0xB64CE422, 0x1012F037, 0x907A70C3}, 0, 1, {2740, 0.436035156F, 0.012008667F, 1}},
    {10, {0x0F4205BA, 0x9E7769B1, 0x34B9B5DF, 0x7F150524}, 3, 3, {0.00491333008F, 0.880859375F, 7.51171875F, 1}},
    {10, {0xAE2EB15E, 0x881ED162, 0x6D76B07E, 0xC6F87718}, 1, 3, {33.0625F, 7.50390625F, 0.246459961F, 1}},
    {10, {0x506BF2E3, 0x7731AF10, 0x95E761D1, 0xEC66A787}, 1, 0, {2.93359375F, 0.0786743164F, 27.15625F, 1}},
    {10, {0x7403E427, 0x5C90A958, 0x4CBD87AD, 0x3F98E277}, 2, 0, {0.0506286621F, 6.44922256e-05F, 6.7890625F, 1}},
    {10, {0xCB5C742B, 0x2E05319A, 0xB2F14C94, 0xC7A2EA20}, 2, 2, {1.04394531F, 0.00144481659F, 0.000286340714F, 1}},
    {10, {0x3E7D1BEF, 0x14F4733F, 0x930D6EAF, 0x4CDD2055}, 2, 2, {0.151855469F, 0.0786743164F, 0.0130691528F, 1}},
    {10, {0x86734733, 0x7EBFF206, 0xE00902C7, 0x57EE05CD}, 3, 2, {0, 0, 0, 1}},
    {11, {0x93BD04CC, 0x95E60AF5, 0x658CDA14, 0x0CB1E29C}, 3, 3, {0.000236392021F, -0.0141372681F, -25.390625F, 1}},
    {11, {0xF9EBDACD, 0x3898D190, 0x0BECD7B0, 0x8E81973E}, 2, 3, {-0.109558105F, -145.5F, -0.00792694092F, 1}},
    {11, {0xDBC496C2, 0x2217BEAD, 0x4A23D596, 0x6B4CB242}, 2, 0, {0.00181388855F, -0.000402212143F, 220.125F, 1}},
    {11, {0x24EDE6A6, 0x8A6A63EC, 0x1E27A1C0, 0x92276658}, 2, 0, {-0.00236701965F, 0.583984375F, -0.949707031F, 1}},
    {11, {0x4EF8AA2A, 0x8F6D0558, 0xD0EDA82F, 0xAE97BA94}, 0, 2, {0.0398864746F, 1.01269531F, 5.35845757e-05F, 1}},
    {11, {0x2E44158E, 0x1A61DBE2, 0x94E3BF91, 0x923A7369}, 3, 3, {51.46875F, 6.03515625F, -18272, 1}},
    {11, {0xA38FD552, 0x301850C5, 0x5F557203, 0x18F135D2}, 2, 0, {-1.95410156F, 0.00816345215F, -0.0939941406F, 1}},
    {11, {0x8C38FB36, 0xB64CE422, 0x1012F037, 0x907A70C3}, 1, 0, {-0.050201416F, 4592, 3.6484375F, 1}},
    {11, {0x0F4205BA, 0x9E7769B1, 0x34B9B5DF, 0x7F150524}, 1, 2, {0.826171875F, 19392, -3112, 1}},
    {11, {0xAE2EB15E, 0x881ED162, 0x6D76B07E, 0xC6F87718}, 2, 3, {-0.00156974792F, -724.5F, -1.66296959e-05F, 1}},
    {11, {0x506BF2E3, 0x7731AF10, 0x95E761D1, 0xEC66A787}, 1, 2, {0.190673828F, 15.2109375F, -0.0065612793F, 1}},
    {11, {0x7403E427, 0x5C90A958, 0x4CBD87AD, 0x3F98E277}, 0, 3, {58.8125F, 0.000166654587F, -2628, 1}},
    {11, {0xCB5C742B, 0x2E05319A, 0xB2F14C94, 0xC7A2EA20}, 3, 2, {42368, 0.0702514648F, 0.0033531189F, 1}},
    {11, {0x3E7D1BEF, 0x14F4733F, 0x930D6EAF, 0x4CDD2055}, 0, 0, {733, 194.375F, 5.37109375F, 1}},
    {11, {0x86734733, 0x7EBFF206, 0xE00902C7, 0x57EE05CD}, 2, 3, {0, 0, 0, 1}},
    {12, {0x52E6B439, 0xF2A74DE4, 0x269E0D37, 0x6513270E}, 3, 2, {0.556862772F, 0.415686309F, 0.501960814F, 1}},
    {12, {0xA6A3A452, 0x0C5C7FD0, 0x128B2F33, 0xD23F0824}, 1, 1, {0.576470613F, 0.258823544F, 0.196078449F, 1}},
    {12, {0x892F902C, 0x1818E811, 0x5D9DC9F8, 0x9531985D}, 3, 0, {0.160784319F, 0.388235331F, 0.870588303F, 1}},
    {12, {0x0ED90478, 0xE8E25D94, 0x81E74EF5, 0x36F675CC}, 3, 3, {0.10980393F, 0.10980393F, 0.807843208F, 1}},
    {12, {0x099950D0, 0x1600A35A, 0x6F03675A, 0x6B0D549B}, 1, 0, {0.517647088F, 0.203921586F, 0, 0.192156881F}},
    {12,
     {0x11E20BA0, 0x3D9C1724, 0x1738F7D9, 0x8D116ECE},
     2,
     1,
     {0.53725493F, 0.34117648F, 0.0156862754F, 0.250980407F}},
    {12,
     {0x6CAD4A40, 0x0F21DDB6, 0xD3AC94AF, 0x90C192CF},
     1,
     2,
     {0.36470589F, 0.800000072F, 0.831372619F, 0.121568635F}},
    {12,
     {0x1FB17C80, 0xF28C105D, 0x39263059, 0xA170B338},
     0,
     1,
     {0.745098054F, 0.0823529437F, 0.556862772F, 0.678431392F}},
    {12, {0xA09F7600, 0x953F48F1, 0xF29D0DA9, 0x0FD630F1}, 3, 1, {0, 0, 0, 0}},
    {13, {0x52E6B439, 0xF2A74DE4, 0x269E0D37, 0x6513270E}, 0, 3, {0.00518151652F, 0.0152085144F, 0.0843762085F, 1}},
    {13, {0xA6A3A452, 0x0C5C7FD0, 0x128B2F33, 0xD23F0824}, 0, 3, {0.152926147F, 0.287440836F, 0.0318960324F, 1}},
    {13, {0x892F902C, 0x1818E811, 0x5D9DC9F8, 0x9531985D}, 3, 3, {0.0742135644F, 0.0822827071F, 0.238397568F, 1}}};

}  // namespace

TEST_CASE("simulator image_load: blocks of BC6 and BC7", "[simulator][wave]") {
  for (const Generation generation : both) {
    const unsigned first = generation == Generation::gfx11 ? 109 : 169;
    for (const BlockCase& one : block_cases) {
      Bench bench({generation});
      const std::vector<U> image(one.block, one.block + 4);
      Resource resource{generation, bench.memory.allocate(image), first + one.format};
      resource.width = resource.height = 4;
      set_resource(bench, 8, resource);
      bench.set_vgpr(1, one.x);
      bench.set_vgpr(2, one.y);
      INFO("format " << resource.format << ", block " << std::hex << one.block[0]);
      REQUIRE_FALSE(bench.run(mimg("image_load", Fields{generation})));
      for (unsigned c = 0; c < 4; ++c) {
        float value = 0;
        std::memcpy(&value, &bench.vgpr(10 + c, 3), sizeof(value));
        CHECK(value == Approx(one.color[c]).epsilon(1e-5).margin(1e-7));
      }
    }
  }
}

// 256 blocks of each format, their layouts in turn: all texels in one number, which a decoder apart from this one gave.
TEST_CASE("simulator image_load: every texel of many blocks of BC6 and BC7", "[simulator][wave]") {
  const W digests[] = {0xCB663033D016C000, 0x5371FB438C5FA000, 0x3538C88482F51CE3};  // BC6 unsigned and signed, BC7
  for (unsigned format = 0; format < 3; ++format) {
    Bench bench;
    std::vector<U> words(1024);
    for (U i = 0, state = 1; i < words.size(); ++i) {
      words[i] = state = state * 1664525U + 1013904223U;
      if (i % 4 == 0) words[i] = format < 2 ? (state & ~31U) | i / 4 % 32 : (state & ~255U) | 1U << i / 4 % 8;
    }
    Resource resource{Generation::gfx11, bench.memory.allocate(words), 119 + format};
    resource.width = resource.height = 64;
    set_resource(bench, 8, resource);
    W digest = 0;
    for (U first = 0; first < 256; first += 2) {
      for (U lane = 0; lane < 32; ++lane) {
        const U block = first + lane / 16;
        bench.vgpr(1, lane) = block % 16 * 4 + lane % 4;
        bench.vgpr(2, lane) = block / 16 * 4 + lane % 16 / 4;
      }
      REQUIRE_FALSE(bench.run(mimg("image_load", Fields{})));
      for (U lane = 0; lane < 32; ++lane) {
        for (U c = 0; c < 4; ++c) digest = digest * 1000003U + bench.vgpr(10 + c, lane);
      }
    }
    CHECK(digest == digests[format]);
  }
}

TEST_CASE("simulator image_load: depth and stencil by the words of HTILE", "[simulator][wave]") {
  for (const Generation generation : both) {
    for (const unsigned format : {22U, 5U}) {  // 32_FLOAT, 8_UINT
      Bench bench({generation});
      Resource resource{generation, bench.memory.allocate(std::vector<U>(32 * 1024, 0x3F3F3F3F)), format};
      resource.width = 20;
      resource.height = 12;
      resource.mode = 24;
      resource.compressed = true;
      const W words = resource.keys = bench.memory.allocate(std::vector<U>(1024));
      // Three tiles a row: those of texel (17, 9) stand as they are, in depth or in stencil.
      const U plain = format == 22 ? 0xFFFC000F : 0x300;
      std::memcpy(bench.memory.host(words) + 4 * 5, &plain, 4);
      set_resource(bench, 8, resource);
      bench.set_vgpr(1, 17);
      bench.set_vgpr(2, 9);
      REQUIRE_FALSE(bench.run(mimg("image_load", Fields{generation})));
      CHECK(bench.vgpr(10, 0) == (format == 22 ? 0x3F3F3F3F : 0x3F));
      bench.set_vgpr(1, 3);
      const auto fault = bench.run(mimg("image_load", Fields{generation}));
      REQUIRE(fault);
      CHECK(fault->reason.find("image_load: compressed depth or stencil (HTILE word 0x0) is not simulated") == 0);
    }
  }
}

TEST_CASE("simulator image and buffer loads with tfe: a dword says which texels lack memory", "[simulator][wave]") {
  for (const Generation generation : both) {
    for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) {
      Bench bench({generation, wave});
      const W sparse = bench.memory.allocate_sparse();
      Resource resource{generation, sparse, 20};  // 32_UINT
      resource.width = 64;
      resource.height = 16;
      set_resource(bench, 8, resource);
      for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
        bench.vgpr(1, lane) = lane < 5 ? 99 : lane % 32;  // beyond the image: no lack
        bench.vgpr(2, lane) = 3;
      }
      Fields fields{generation};
      fields.mask = 3;
      fields.tfe = true;
      bench.set_vgpr(10, 7);
      bench.set_vgpr(13, 8);
      REQUIRE_FALSE(bench.run(mimg("image_load", fields)));
      for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
        CHECK(bench.vgpr(13, lane) == 8);
        CHECK(bench.vgpr(10, lane) == 0);
        CHECK(bench.vgpr(12, lane) == (lane < 5 ? 0 : 1));
      }
      resource.base = bench.memory.allocate(std::vector<U>(64 * 32, 6));
      set_resource(bench, 8, resource);
      fields.mask = 1;
      fields.sampler = 16;
      bench.set_vgpr(1, 0);
      bench.set_vgpr(2, 0);
      for (unsigned i = 16; i < 20; ++i) bench.sgpr(i) = 0;
      REQUIRE_FALSE(bench.run(mimg("image_sample_lz", fields)));
      CHECK(bench.vgpr(10, 9) == 6);
      CHECK(bench.vgpr(11, 9) == 0);

      // A raw buffer whose lanes reach the page without memory.
      bench.sgpr(20) = static_cast<U>(sparse - 64);
      bench.sgpr(21) = static_cast<U>((sparse - 64) >> 32U);
      bench.sgpr(22) = 4096;
      bench.sgpr(23) = 3U << 28U | 20U << 12U | 4U;
      for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) bench.vgpr(1, lane) = lane * 4 + 64;
      if (generation != Generation::gfx11) continue;  // the encoder is gfx11's
      for (const char* name : {"buffer_load_b32", "buffer_load_format_x"}) {
        std::vector<U> words = encode::mubuf(name, 10, 1, 20, 128, 0, false, true);
        words[1] |= 1U << 21U;
        bench.set_vgpr(10, 7);
        bench.set_vgpr(11, 7);
        bench.vgpr(1, 9) = 100;
        const auto fault = bench.run(words);
        INFO((fault ? fault->reason : std::string()));
        REQUIRE_FALSE(fault);
        CHECK(bench.vgpr(10, 9) == 0);
        CHECK(bench.vgpr(11, 9) == 1);
        bench.vgpr(1, 9) = 5000;  // beyond the buffer
        REQUIRE_FALSE(bench.run(words));
        CHECK(bench.vgpr(11, 9) == 0);
      }
    }
  }
}

// Atomics that return find nothing there, whatever was stored before.
TEST_CASE("simulator global memory without pages behind it: stores are lost, atomics return zero",
          "[simulator][wave]") {
  Bench bench;
  const W sparse = bench.memory.allocate_sparse();
  bench.set_sgpr64(4, sparse);
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = 4 * lane;
  bench.set_vgpr(2, 77);
  bench.set_vgpr(3, 5);
  REQUIRE_FALSE(bench.run(encode::join({encode::flat(2, "global_store_b32", 0, 1, 2, 4),
                                        encode::flat(2, "global_atomic_add_u32", 3, 1, 2, 4, 0, true),
                                        encode::flat(2, "global_load_b32", 5, 1, 0, 4)})));
  CHECK(bench.vgpr(3, 8) == 0);
  CHECK(bench.vgpr(5, 8) == 0);
}

}  // namespace kiln::simulator::test
