// The space of gemm's variants, on devices at their limits, and what gemm/shared asks for and writes.
#include "dynamic_shaders/space/variant_space.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>

#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/cost_model.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view shared_family = "gemm/shared:";

DeviceInfo whole_device() {
  DeviceInfo device = sample_device();
  device.max_bindings = 16;
  device.max_texel_bindings = 32, device.max_image_bindings = 8;
  device.max_view_texels = 1u << 27;
  device.max_shared_bytes = 32768;
  device.simd_lanes = 8;
  return device;
}

DeviceInfo viewless_device() {
  DeviceInfo device = whole_device();
  device.max_texel_bindings = device.max_image_bindings = 0;
  device.max_view_texels = 0;
  return device;
}

DeviceInfo small_device() {
  DeviceInfo device = viewless_device();
  device.max_workgroup = {64, 1, 1}, device.max_workgroup_lanes = 64;
  device.max_shared_bytes = 4096;
  device.max_grid = {1000, 1000, 1};
  return device;
}

GemmSpec product(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  return spec;
}

bool is_shared(const Candidate& point) { return point.variant.starts_with(shared_family); }

std::size_t shared_points(const std::vector<Candidate>& space) {
  return static_cast<std::size_t>(std::ranges::count_if(space, is_shared));
}

void check_point(const GemmSpec& spec, const DeviceInfo& device, const std::string& variant) {
  INFO(canonical_text(spec) << " by " << variant);
  const auto plan = Generator().generate_variant(spec, device, Dialect::glsl, variant);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  CHECK(plan->variant == variant);
  CHECK(validate(*plan).text() == "ok");
  for (const std::vector<Pass>* passes : {&plan->prepare, &plan->passes}) {
    for (const Pass& pass : *passes) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        CHECK(pass.grid[axis] >= 1);
        CHECK(pass.grid[axis] <= device.max_grid[axis]);
        CHECK(pass.source.workgroup[axis] <= device.max_workgroup[axis]);
      }
      CHECK(pass.source.workgroup[0] * pass.source.workgroup[1] <= device.max_workgroup_lanes);
    }
  }
}

KernelPlan plan_in(Dialect dialect, const std::string& variant) {
  const auto plan = Generator().generate_variant(product(17, 33, 65), viewless_device(), dialect, variant);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  return *plan;
}

}  // namespace

TEST_CASE("gemm space: every point can be written, within the limits of its device") {
  for (const DeviceInfo& device : {whole_device(), viewless_device(), small_device()}) {
    for (const GemmSpec& spec : {product(256, 1000, 512), small_gemm(), product(600000, 64, 30), product(3, 5, 7)}) {
      const std::vector<Candidate> space = gemm_space(spec, device);
      REQUIRE_FALSE(space.empty());
      CHECK(space.back().variant == "gemm/plain");
      CHECK(shared_points(space) <= 40);
      std::set<std::string> ids;
      for (std::size_t i = 0; i < space.size(); ++i) {
        CHECK(ids.insert(space[i].variant).second);
        CHECK(space[i].predicted > 0);
        CHECK(space[i].build > 0);
        if (i > 0 && i + 1 < space.size()) CHECK(space[i - 1].predicted <= space[i].predicted);
        check_point(spec, device, space[i].variant);
        if (is_shared(space[i])) check_point(spec, device, space[i].variant + "@any");
      }
    }
  }
}

TEST_CASE("gemm space: it holds products through shared memory where the device says that it has some") {
  const GemmSpec large = product(256, 1000, 512);
  CHECK(shared_points(gemm_space(large, whole_device())) > 20);
  CHECK(shared_points(gemm_space(large, small_device())) > 0);
  DeviceInfo device = whole_device();
  device.max_shared_bytes = 0;
  CHECK(shared_points(gemm_space(large, device)) == 0);
  // Rows for the smallest workgroup of them would be half zeros, and more.
  CHECK(shared_points(gemm_space(product(8, 1000, 512), whole_device())) == 0);
}

TEST_CASE("gemm space: more workgroups than the grid takes are no point of it") {
  const GemmSpec tall = product(600000, 64, 32);
  const DeviceInfo device = whole_device();
  REQUIRE(device.max_grid[1] == 65535);
  const Status blocked = check(tall, GemmBlocking{8, 2, 16, View::texels}, device);
  CHECK(blocked.code == StatusCode::unsupported);
  CHECK_THAT(blocked.message, Catch::Contains("gemm/blocked: grid[1] = 75000") && Catch::Contains("65535"));
  CHECK(check(tall, GemmBlocking{16, 2, 16, View::texels}, device).ok());
  const Status shared = check(tall, GemmTile{4, 2, 2, 16, 8}, device);
  CHECK(shared.code == StatusCode::unsupported);
  CHECK_THAT(shared.message, Catch::Contains("gemm/shared: grid[1] = 75000") && Catch::Contains("65535"));
  CHECK(check(tall, GemmTile{4, 2, 4, 16, 8}, device).ok());
  CHECK(default_variant(tall, device).starts_with("gemm/blocked:"));
}

TEST_CASE("gemm space: the first choice loads from memory where the device has too few views") {
  const GemmSpec large = product(256, 1000, 512);
  DeviceInfo device = whole_device();
  CHECK_THAT(default_variant(large, device), Catch::Contains("view=texels"));
  device.max_texel_bindings = 3;
  CHECK_THAT(default_variant(large, device), Catch::StartsWith("gemm/blocked:") && Catch::Contains("view=storage"));
  device = whole_device();
  device.max_view_texels = 1000;
  CHECK_THAT(default_variant(large, device), Catch::StartsWith("gemm/blocked:") && Catch::Contains("view=storage"));
}

TEST_CASE("gemm space: shared memory is no first choice where it costs what all memory does") {
  for (const DeviceInfo& software : {whole_device(), viewless_device()}) {
    CHECK_FALSE(sharing_pays(model_of(software)));
    for (const GemmSpec& spec : {product(256, 1000, 512), product(1024, 1023, 1021), small_gemm()}) {
      CHECK_FALSE(default_variant(spec, software).starts_with(shared_family));
    }
  }
  DeviceInfo gpu = viewless_device();
  gpu.kind = DeviceKind::gpu;
  gpu.simd_lanes = 32;
  const MachineModel model = model_of(gpu);
  CHECK(sharing_pays(model));
  // A lane with more outputs loads less for each; that of a plain product loads the most.
  const GemmSpec large = product(1024, 1024, 1024);
  const double wide = predict_gemm_shared(large, {8, 4, 8, 16, 8}, model).run();
  const double single = predict_gemm_shared(large, {4, 1, 8, 16, 8}, model).run();
  CHECK(wide < single);
  CHECK(single < predict_gemm_plain(large, model).run());
}

TEST_CASE("gemm/shared: a tile is read back from its text, and what does not hold is said") {
  DeviceInfo device = whole_device();
  device.max_shared_bytes = 16384;
  const GemmTile good{8, 4, 8, 16, 8};
  const std::string text = gemm_tile_variant(good);
  CHECK(text == "gemm/shared:rows=8,columns=4,lanes_r=8,lanes_c=16,depth=8");
  CHECK(gemm_tile_of(text) == good);
  for (const std::string& bad :
       {std::string(shared_family), text + ",", text + "x", text.substr(1), std::string("gemm/lds") + text.substr(11),
        std::string("gemm/shared:rows=08,columns=4,lanes_r=8,lanes_c=16,depth=8")}) {
    INFO(bad);
    CHECK_FALSE(gemm_tile_of(bad).has_value());
  }
  CHECK_FALSE(gemm_blocking_of("gemm/blocked:rows=08,quads=2,view=texels,workgroup=16").has_value());
  CHECK(shared_bytes(good) == 8 * (64 + 64 + 4) * 4);  // a vector more a depth
  const auto why = [&](auto change) {
    GemmTile tile = good;
    change(tile);
    const Status status = check(product(512, 512, 512), tile, device);
    CHECK(status.code == StatusCode::unsupported);
    return status.message;
  };
  CHECK(check(product(512, 512, 512), good, device).ok());
  CHECK_THAT(why([](GemmTile& t) { t.rows = 6; }), Catch::Contains("rows = 6"));
  CHECK_THAT(why([](GemmTile& t) { t.columns = 17; }),
             Catch::Contains("columns = 17") && Catch::Contains("expected 1 to 16"));
  CHECK_THAT(why([](GemmTile& t) { t.depth = 33; }), Catch::Contains("depth = 33") && Catch::Contains("and 1 to 32"));
  CHECK_THAT(why([](GemmTile& t) { t.lanes_r = 100; }),
             Catch::Contains("100 x 16 lanes, the device takes at most 1024"));
  CHECK_THAT(why([](GemmTile& t) { t.columns = 16, t.depth = 16; }),
             Catch::Contains("bytes of shared memory, the device has at most 16384"));
  const auto refused = [&](const GemmSpec& spec) { return check(spec, good, device).message; };
  CHECK_THAT(refused(product(1, 1, 2147483000)), Catch::Contains("an index beyond 32 bits"));
  // 46340 squared fits in 31 bits, whole tiles of two such sides do not.
  CHECK_THAT(refused(product(46340, 46340, 1)), Catch::Contains("an index beyond 32 bits"));
  CHECK_THAT(refused(product(46340, 1, 46340)), Catch::Contains("an index beyond 32 bits"));
  CHECK_THAT(refused(product(1, 46340, 46340)), Catch::Contains("an index beyond 32 bits"));
  device.max_bindings = 4;
  CHECK(refused(product(512, 512, 512)) == "");
  device.max_bindings = 3;
  CHECK_THAT(refused(product(512, 512, 512)), Catch::Contains("4 bindings, expected at most 3"));
}

TEST_CASE("gemm/shared: guards stand where a tile or a step leaves something over, and for any shape") {
  const DeviceInfo device = viewless_device();
  const GemmTile tile{4, 2, 4, 8, 8};  // of 16 rows and 16 columns
  const auto text_of = [&](const GemmSpec& spec, const char* form) {
    const auto plan = Generator().generate_variant(spec, device, Dialect::glsl, gemm_tile_variant(tile) + form);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    REQUIRE(plan->passes.size() == 1);
    CHECK(plan->prepare.empty());
    return plan->passes.front().source.text;
  };
  const std::string even = text_of(product(32, 48, 64), "");
  CHECK(even.find('?') == std::string::npos);
  CHECK_THAT(text_of(product(33, 48, 64), ""), Catch::Contains("row + 0 < 33"));
  CHECK_THAT(text_of(product(32, 49, 64), ""), Catch::Contains("column0 < 49"));
  CHECK_THAT(text_of(product(32, 48, 65), ""), Catch::Contains("k < 65"));
  const std::string any = text_of(product(32, 48, 64), "@any");
  CHECK(any == text_of(product(33, 49, 65), "@any"));
  CHECK_THAT(any, Catch::Contains("< n_rows") && Catch::Contains("< n_columns") && Catch::Contains("< n_depth"));
}

TEST_CASE("gemm/shared: a sum too long for one pass goes on in the next") {
  const GemmTile tile{4, 1, 4, 8, 8};
  const auto plan = gemm_shared(product(64, 64, 480001), tile, viewless_device(), Dialect::glsl);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  CHECK(validate(*plan).text() == "ok");
  REQUIRE(plan->passes.size() == 2);  // 60001 rounds
  const KernelSource &first = plan->passes[0].source, &last = plan->passes[1].source;
  CHECK(first.bindings == std::vector<Access>{Access::read, Access::read, Access::write});
  CHECK(last.bindings == std::vector<Access>{Access::read, Access::read, Access::read, Access::read_write});
  CHECK_THAT(first.text, Catch::Contains("step = 0; step < 30000;") && !Catch::Contains("bias"));
  CHECK_THAT(first.text, Catch::Contains("s0_0 = vec4(0.0);") && !Catch::Contains("max("));
  CHECK_THAT(last.text, Catch::Contains("step = 30000; step < 60001;") && Catch::Contains("vec4(c[to0 + 0]"));
  CHECK_THAT(last.text, Catch::Contains("max(s0_0.x + bias0, 0.0)"));
}

TEST_CASE("gemm/shared: a later pass loads its rows and columns, and zeros outside the matrix") {
  const auto plan = gemm_shared(product(33, 65, 480001), GemmTile{8, 1, 1, 8, 8}, viewless_device(), Dialect::glsl);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  REQUIRE(plan->passes.size() == 2);
  CHECK_THAT(plan->passes[1].source.text,
             Catch::Contains("  vec4 s0_0 = vec4(row + 0 < 33 && column0 < 65 ? c[to0 + 0] : 0.0, "
                             "row + 1 < 33 && column0 < 65 ? c[to0 + 65] : 0.0, "
                             "row + 2 < 33 && column0 < 65 ? c[to0 + 130] : 0.0, "
                             "row + 3 < 33 && column0 < 65 ? c[to0 + 195] : 0.0);\n"
                             "  vec4 s0_1 = vec4(row + 4 < 33 && column0 < 65 ? c[to0 + 260] : 0.0, "
                             "row + 5 < 33 && column0 < 65 ? c[to0 + 325] : 0.0, "
                             "row + 6 < 33 && column0 < 65 ? c[to0 + 390] : 0.0, "
                             "row + 7 < 33 && column0 < 65 ? c[to0 + 455] : 0.0);\n"));
}

TEST_CASE("gemm/shared: the whole text of a small tile") {
  const auto plan = gemm_shared(GemmSpec{4, 4, 4}, GemmTile{4, 2, 1, 2, 2}, viewless_device(), Dialect::glsl);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  REQUIRE(plan->passes.size() == 1);
  CHECK(plan->passes[0].source.text ==
        "#version 430\n"
        "// gemm/shared: each lane adds up 4 rows of 2 columns\n"
        "layout(local_size_x = 2, local_size_y = 1) in;\n"
        "layout(std430, binding = 0) readonly restrict buffer Of_a { float a[]; };\n"
        "layout(std430, binding = 1) readonly restrict buffer Of_b { float b[]; };\n"
        "layout(std430, binding = 2) writeonly restrict buffer Of_c { float c[]; };\n"
        "shared float part_b[8];\n"
        "shared vec4 part_a[4];\n"
        "\n"
        "void main() {\n"
        "  int lane = int(gl_LocalInvocationID.x);\n"
        "  int lane_c = lane % 2;\n"
        "  int lane_r = lane / 2;\n"
        "  int first_row = int(gl_WorkGroupID.y) * 4;\n"
        "  int row = first_row + lane_r * 4;\n"
        "  int column0 = int(gl_WorkGroupID.x) * 4 + 0 + lane_c;\n"
        "  int to0 = row * 4 + column0;\n"
        "  int column1 = int(gl_WorkGroupID.x) * 4 + 2 + lane_c;\n"
        "  int to1 = row * 4 + column1;\n"
        "  int deep0 = (lane + 0) % 2;\n"
        "  int quad0 = (lane + 0) / 2;\n"
        "  int from0 = (first_row + quad0 * 4) * 4 + deep0;\n"
        "  vec4 s0_0 = vec4(0.0);\n"
        "  vec4 s1_0 = vec4(0.0);\n"
        "  for (int step = 0; step < 2; ++step) {\n"
        "    memoryBarrierShared(); barrier();\n"
        "    {\n"
        "      int k = step * 2 + 0 + lane_r;\n"
        "      part_b[(0 + lane_r) * 4 + 0 + lane_c] = b[k * 4 + column0];\n"
        "      part_b[(0 + lane_r) * 4 + 2 + lane_c] = b[k * 4 + column1];\n"
        "    }\n"
        "    {\n"
        "      int k = step * 2 + 1 + lane_r;\n"
        "      part_b[(1 + lane_r) * 4 + 0 + lane_c] = b[k * 4 + column0];\n"
        "      part_b[(1 + lane_r) * 4 + 2 + lane_c] = b[k * 4 + column1];\n"
        "    }\n"
        "    {\n"
        "      float a0 = a[from0 + 0 + step * 2];\n"
        "      float a1 = a[from0 + 4 + step * 2];\n"
        "      float a2 = a[from0 + 8 + step * 2];\n"
        "      float a3 = a[from0 + 12 + step * 2];\n"
        "      part_a[deep0 * 2 + quad0] = vec4(a0, a1, a2, a3);\n"
        "    }\n"
        "    memoryBarrierShared(); barrier();\n"
        "    float v0_0 = part_b[0 + lane_c];\n"
        "    float v1_0 = part_b[2 + lane_c];\n"
        "    vec4 w0_0 = part_a[0 + lane_r * 1];\n"
        "    s0_0 += v0_0 * w0_0;\n"
        "    s1_0 += v1_0 * w0_0;\n"
        "    float v0_1 = part_b[4 + lane_c];\n"
        "    float v1_1 = part_b[6 + lane_c];\n"
        "    vec4 w0_1 = part_a[2 + lane_r * 1];\n"
        "    s0_0 += v0_1 * w0_1;\n"
        "    s1_0 += v1_1 * w0_1;\n"
        "  }\n"
        "  {\n"
        "    c[to0 + 0] = s0_0.x;\n"
        "    c[to0 + 4] = s0_0.y;\n"
        "    c[to0 + 8] = s0_0.z;\n"
        "    c[to0 + 12] = s0_0.w;\n"
        "  }\n"
        "  {\n"
        "    c[to1 + 0] = s1_0.x;\n"
        "    c[to1 + 4] = s1_0.y;\n"
        "    c[to1 + 8] = s1_0.z;\n"
        "    c[to1 + 12] = s1_0.w;\n"
        "  }\n"
        "}\n");
}

TEST_CASE("gemm/blocked: reads a second factor of whole texels in place, any other from a padded copy") {
  for (const std::int64_t columns : {4, 8, 12, 40, 1, 2, 3, 5, 6, 7, 9, 13, 41}) {
    INFO(columns << " columns");
    const GemmBlocking thin{1, 1, 8, View::storage};
    const auto plan = gemm_blocked(product(3, columns, 8), thin, viewless_device(), Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    CHECK(validate(*plan).text() == "ok");
    REQUIRE(plan->passes.size() == 1);
    const Pass& pass = plan->passes.front();
    REQUIRE(pass.bindings.size() == 4);
    const bool whole = columns % 4 == 0;
    REQUIRE(plan->prepared.size() == (whole ? 0u : 1u));
    CHECK(plan->prepare.size() == plan->prepared.size());
    CHECK((pass.bindings[1].source == (whole ? BindingSource::tensor : BindingSource::prepared)));
    CHECK(pass.bindings[1].index == (whole ? 1u : 0u));
    CHECK_THAT(pass.source.text, Catch::Contains("Of_b { vec4 b[]; }"));
    CHECK_THAT(pass.source.text, Catch::Contains(whole ? "Of_bias { vec4 bias[]; }" : "Of_bias { float bias[]; }"));
    CHECK_THAT(pass.source.text, Catch::Contains(whole ? "Of_c { vec4 c[]; }" : "Of_c { float c[]; }"));
    if (whole) continue;
    CHECK(plan->prepared[0].tensor == 1);
    CHECK(plan->prepared[0].bytes == static_cast<std::uint64_t>(8 * ((columns + 3) / 4) * 16));
    CHECK(plan->prepared[0].layout == "gemm/8/" + std::to_string(columns));
  }
}

TEST_CASE("gemm/shared: both dialects share memory, with the same passes, bindings and geometry") {
  const std::regex glsl(R"(\b(vec4|gl_\w+|layout|buffer|shared|memoryBarrierShared)\b|#version)");
  for (const char* form : {"", "@any"}) {
    const std::string variant = gemm_tile_variant({8, 2, 4, 8, 8}) + form;
    const KernelPlan in_glsl = plan_in(Dialect::glsl, variant), in_opencl = plan_in(Dialect::opencl_c, variant);
    REQUIRE(in_glsl.passes.size() == 1);
    REQUIRE(in_opencl.passes.size() == 1);
    const Pass &one = in_glsl.passes.front(), &other = in_opencl.passes.front();
    CHECK(one.source.bindings == other.source.bindings);
    CHECK(one.source.workgroup == other.source.workgroup);
    CHECK(one.grid == other.grid);
    CHECK_THAT(one.source.text, Catch::Contains("shared vec4 part_a[72];") &&
                                    Catch::Contains("shared float part_b[128];") && Catch::Contains("barrier();"));
    std::string text = other.source.text;
    CHECK_THAT(text, Catch::Contains("__local float4 part_a[72];") && Catch::Contains("__local float part_b[128];") &&
                         Catch::Contains("barrier(CLK_LOCAL_MEM_FENCE);"));
    text.erase(0, text.find('\n'));  // the title names the family
    std::smatch found;
    const bool left = std::regex_search(text, found, glsl);
    INFO((left ? found.str() : std::string()));
    CHECK_FALSE(left);
  }
}

}  // namespace kiln::dynamic_shaders
