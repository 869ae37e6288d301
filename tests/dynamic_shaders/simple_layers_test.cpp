// The layers with a single kernel each: its text, its launch, and what it refuses.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

// 4 x 3 outputs a plane, 5 planes an image; every number of the window differs along the two axes.
Pool2dSpec windowed_pool(PoolKind kind) {
  Pool2dSpec spec;
  spec.n = 2, spec.c = 5, spec.h = 6, spec.w = 7;
  spec.r = 3, spec.s = 2;
  spec.stride_y = 2, spec.stride_x = 3;
  spec.pad_y = 2, spec.pad_x = 1;
  spec.kind = kind;
  return spec;
}

Pool2dSpec pool_of_window(std::int64_t h, std::int64_t w, std::int64_t r, std::int64_t s, std::int64_t stride) {
  Pool2dSpec spec;
  spec.c = 1, spec.h = h, spec.w = w, spec.r = r, spec.s = s;
  spec.stride_y = spec.stride_x = stride;
  return spec;
}

AddSpec sum_of_elements(const Extents& shape, Activation activation) {
  AddSpec spec;
  spec.shape = shape, spec.activation = activation;
  return spec;
}

ActivationSpec activated_elements(const Extents& shape, Activation activation) {
  ActivationSpec spec;
  spec.shape = shape, spec.activation = activation;
  return spec;
}

SoftmaxSpec softmax_of_rows(const Extents& shape) {
  SoftmaxSpec spec;
  spec.shape = shape;
  return spec;
}

// The only pass of the only variant.
Pass only_pass(const KernelSpec& spec, const std::string& variant, Dialect dialect = Dialect::glsl) {
  INFO(canonical_text(spec));
  auto plan = Generator().generate(spec, sample_device(), dialect);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  CHECK(plan->variant == variant);
  CHECK(plan->tensors == tensors_of(spec));
  CHECK(validate(*plan).text() == "ok");
  REQUIRE(plan->passes.size() == 1);
  return std::move(plan->passes.front());
}

// "read 0, write 1": of the tensors.
std::string bound_tensors(const Pass& pass) {
  REQUIRE(pass.bindings.size() == pass.source.bindings.size());
  std::string text;
  for (std::size_t i = 0; i < pass.bindings.size(); ++i) {
    CHECK(pass.bindings[i].source == BindingSource::tensor);
    text += text.empty() ? "" : ", ";
    text += pass.source.bindings[i] == Access::read ? "read " : "write ";
    text += std::to_string(pass.bindings[i].index);
  }
  return text;
}

Status refused_layer(const KernelSpec& spec, const DeviceInfo& device) {
  INFO(canonical_text(spec));
  const auto plan = Generator().generate(spec, device, Dialect::glsl);
  REQUIRE_FALSE(plan.has_value());
  return plan.error();
}

}  // namespace

TEST_CASE("simple layers: the whole text of a pool of maxima") {
  const Pass pass = only_pass(windowed_pool(PoolKind::maximum), "pool2d/plain");
  CHECK(pass.source.text ==
        "#version 430\n"
        "// pool2d/plain: column is a pixel of the result's plane, row its channel, layer the image.\n"
        "layout(local_size_x = 16, local_size_y = 4) in;\n"
        "layout(std430, binding = 0) readonly restrict buffer Of_x { float x[]; };\n"
        "layout(std430, binding = 1) writeonly restrict buffer Of_y { float y[]; };\n"
        "\n"
        "void main() {\n"
        "  int column = int(gl_GlobalInvocationID.x);\n"
        "  int row = int(gl_GlobalInvocationID.y);\n"
        "  int layer = int(gl_GlobalInvocationID.z);\n"
        "  if (column >= 12) return;\n"
        "  if (row >= 5) return;\n"
        "  int plane = layer * 5 + row;\n"
        "  int top = column / 3 * 2 - 2;\n"
        "  int left = column % 3 * 3 - 1;\n"
        "  int first_y = top < 0 ? 0 : top;\n"
        "  int first_x = left < 0 ? 0 : left;\n"
        "  int end_y = top + 3 > 6 ? 6 : top + 3;\n"
        "  int end_x = left + 2 > 7 ? 7 : left + 2;\n"
        "  int at = plane * 42;\n"
        "  float pooled = x[at + first_y * 7 + first_x];\n"
        "  for (int y_in = first_y; y_in < end_y; ++y_in) {\n"
        "    for (int x_in = first_x; x_in < end_x; ++x_in) {\n"
        "      float value = x[at + y_in * 7 + x_in];\n"
        "      pooled = max(pooled, value);\n"
        "    }\n"
        "  }\n"
        "  y[plane * 12 + column] = pooled;\n"
        "}\n");
  CHECK(pass.source.workgroup == LaneMap::Triple{16, 4, 1});
  CHECK(pass.grid == LaneMap::Triple{1, 2, 2});
  CHECK(bound_tensors(pass) == "read 0, write 1");
}

TEST_CASE("simple layers: an average counts the elements inside the input, in either dialect") {
  const std::string glsl = only_pass(windowed_pool(PoolKind::average), "pool2d/plain").source.text;
  CHECK_THAT(glsl, Catch::Contains("  int at = plane * 42;\n"
                                   "  float pooled = 0.0;\n"
                                   "  for (int y_in = first_y; y_in < end_y; ++y_in) {\n"
                                   "    for (int x_in = first_x; x_in < end_x; ++x_in) {\n"
                                   "      float value = x[at + y_in * 7 + x_in];\n"
                                   "      pooled = pooled + value;\n"
                                   "    }\n"
                                   "  }\n"
                                   "  pooled = pooled / float((end_y - first_y) * (end_x - first_x));\n"
                                   "  y[plane * 12 + column] = pooled;\n"));
  const auto opencl_of = [](PoolKind kind) {
    return only_pass(windowed_pool(kind), "pool2d/plain", Dialect::opencl_c).source.text;
  };
  CHECK_THAT(opencl_of(PoolKind::average),
             Catch::Contains("  float pooled = 0.0f;\n") && Catch::Contains("      pooled = pooled + value;\n") &&
                 Catch::Contains("  pooled = pooled / (float)((end_y - first_y) * (end_x - first_x));\n"));
  CHECK_THAT(opencl_of(PoolKind::maximum),
             Catch::Contains("      pooled = fmax(pooled, value);\n") && !Catch::Contains("pooled / "));
}

TEST_CASE("simple layers: elements are added and activated by fours where their number allows it") {
  const Pass added = only_pass(sum_of_elements({4, 9}, Activation::relu), "add/plain");
  CHECK(added.source.text ==
        "#version 430\n"
        "// add/plain: column is an element, or four of them.\n"
        "layout(local_size_x = 16, local_size_y = 1) in;\n"
        "layout(std430, binding = 0) readonly restrict buffer Of_a { vec4 a[]; };\n"
        "layout(std430, binding = 1) readonly restrict buffer Of_b { vec4 b[]; };\n"
        "layout(std430, binding = 2) writeonly restrict buffer Of_y { vec4 y[]; };\n"
        "\n"
        "void main() {\n"
        "  int column = int(gl_GlobalInvocationID.x);\n"
        "  int row = int(gl_GlobalInvocationID.y);\n"
        "  int layer = int(gl_GlobalInvocationID.z);\n"
        "  if (column >= 9) return;\n"
        "  y[column] = max(a[column] + b[column], 0.0);\n"
        "}\n");
  CHECK(bound_tensors(added) == "read 0, read 1, write 2");
  const Pass activated = only_pass(activated_elements({5, 3}, Activation::relu6), "activation/plain");
  CHECK(activated.source.text ==
        "#version 430\n"
        "// activation/plain: column is an element, or four of them.\n"
        "layout(local_size_x = 16, local_size_y = 1) in;\n"
        "layout(std430, binding = 0) readonly restrict buffer Of_a { float a[]; };\n"
        "layout(std430, binding = 1) writeonly restrict buffer Of_y { float y[]; };\n"
        "\n"
        "void main() {\n"
        "  int column = int(gl_GlobalInvocationID.x);\n"
        "  int row = int(gl_GlobalInvocationID.y);\n"
        "  int layer = int(gl_GlobalInvocationID.z);\n"
        "  if (column >= 15) return;\n"
        "  y[column] = min(max(a[column], 0.0), 6.0);\n"
        "}\n");
  CHECK(bound_tensors(activated) == "read 0, write 1");
  CHECK_THAT(only_pass(sum_of_elements({2, 3, 5, 7}, Activation::none), "add/plain").source.text,
             Catch::Contains("Of_b { float b[]; }") && Catch::Contains("  if (column >= 210) return;\n") &&
                 Catch::Contains("  y[column] = a[column] + b[column];\n"));
}

TEST_CASE("simple layers: the whole text of a softmax") {
  const Pass pass = only_pass(softmax_of_rows({3, 2, 5}), "softmax/plain");
  CHECK(pass.source.text ==
        "#version 430\n"
        "// softmax/plain: column is a row of the tensor.\n"
        "layout(local_size_x = 8, local_size_y = 1) in;\n"
        "layout(std430, binding = 0) readonly restrict buffer Of_x { float x[]; };\n"
        "layout(std430, binding = 1) writeonly restrict buffer Of_y { float y[]; };\n"
        "\n"
        "void main() {\n"
        "  int column = int(gl_GlobalInvocationID.x);\n"
        "  int row = int(gl_GlobalInvocationID.y);\n"
        "  int layer = int(gl_GlobalInvocationID.z);\n"
        "  if (column >= 6) return;\n"
        "  int at = column * 5;\n"
        "  float largest = x[at];\n"
        "  for (int i = 0; i < 5; ++i) largest = max(largest, x[at + i]);\n"
        "  float sum = 0.0;\n"
        "  for (int i = 0; i < 5; ++i) sum += exp(x[at + i] - largest);\n"
        "  for (int i = 0; i < 5; ++i) y[at + i] = exp(x[at + i] - largest) / sum;\n"
        "}\n");
  CHECK(bound_tensors(pass) == "read 0, write 1");
}

TEST_CASE("simple layers: more workgroups than the device's grid takes are refused") {
  DeviceInfo device = sample_device();
  device.max_workgroup = {1, 1, 1}, device.max_workgroup_lanes = 1;
  device.max_grid = {2, 2, 2};
  const std::vector<KernelSpec> eight = {pool_of_window(4, 8, 2, 2, 2), sum_of_elements({32}, Activation::none),
                                         activated_elements({4, 8}, Activation::relu), softmax_of_rows({8, 4})};
  for (const KernelSpec& spec : eight) {
    INFO(canonical_text(spec));
    const auto plan = Generator().generate(spec, device, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    REQUIRE(plan->passes.size() == 1);
    CHECK(plan->passes.front().grid == LaneMap::Triple{2, 2, 2});
  }
  const std::vector<KernelSpec> nine = {pool_of_window(6, 6, 2, 2, 2), sum_of_elements({36}, Activation::none),
                                        activated_elements({9}, Activation::relu), softmax_of_rows({9, 4})};
  for (const KernelSpec& spec : nine) {
    INFO(canonical_text(spec));
    const Status refusal = refused_layer(spec, device);
    CHECK(refusal.code == StatusCode::unsupported);
    CHECK(refusal.message == "device opengl:0: grid needs 9 x 1 x 1 workgroups, expected at most 2 x 2 x 2");
  }
}

TEST_CASE("simple layers: a lane goes round its loops 60000 times at most") {
  const DeviceInfo device = sample_device();
  only_pass(pool_of_window(200, 300, 200, 299, 1), "pool2d/plain");  // a row of the window costs a round of its own
  const Status pool = refused_layer(pool_of_window(200, 300, 200, 300, 1), device);
  CHECK(pool.code == StatusCode::unsupported);
  CHECK(pool.message == "pool2d: 60200 loop iterations per lane, expected at most 60000");
  only_pass(softmax_of_rows({2, 20'000}), "softmax/plain");  // three loops over a row
  const Status softmax = refused_layer(softmax_of_rows({2, 20'001}), device);
  CHECK(softmax.code == StatusCode::unsupported);
  CHECK(softmax.message == "softmax: 60003 loop iterations per lane, expected at most 60000");
}

TEST_CASE("simple layers: the device's limits hold, and there is one variant of each") {
  DeviceInfo device = sample_device();
  device.max_bindings = 2;
  CHECK(refused_layer(sum_of_elements({8}, Activation::none), device).message ==
        "device opengl:0: 3 bindings, expected at most 2");
  const auto other = Generator().generate_variant(softmax_of_rows({2, 4}), device, Dialect::glsl, "pool2d/plain");
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == StatusCode::not_found);
  CHECK(other.error().message == "softmax: unknown variant 'pool2d/plain'");
}

}  // namespace kiln::dynamic_shaders
