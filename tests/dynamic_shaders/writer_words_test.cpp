// The words of a kernel's text, in either dialect, and the loads of a band of a plane.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {
namespace {

// What is written of a plane of so many floats when these places of a band are asked for.
struct WrittenBand {
  std::vector<std::string> names;
  std::string text;
};

WrittenBand band_of(std::int64_t bands, std::int64_t step, std::int64_t plane, const std::vector<std::int64_t>& places,
                    Element element = Element::scalar) {
  KernelWriter writer(Dialect::glsl, "");
  writer.bind("x", element, Access::read, {BindingSource::tensor, 0});
  BandLoads loads(writer, element, bands, step, plane);
  WrittenBand written;
  for (const std::int64_t place : places) written.names.push_back(loads.at(place));
  written.text = writer.body().take();
  return written;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("kernel text: a number of the shape is written out, or by its name where the text is for any shape") {
  KernelWriter one(Dialect::glsl, "");
  CHECK(one.number("w", 7) == "7");
  CHECK(one.number("w", 7, 2, 1) == "15");
  CHECK(one.number("w", 7, 0, 3) == "3");
  CHECK(one.number("w", 7, -1, 3) == "-4");
  CHECK(one.number("w", 8) == "8");  // no name, so no two numbers of it
  std::vector<NumberTable> tables;
  KernelWriter any(Form(Dialect::glsl, &tables), "");
  CHECK(any.number("w", 7) == "n_w");
  CHECK(any.number("w", 7, 3) == "3 * n_w");
  CHECK(any.number("w", 7, 0, 5) == "5");
  CHECK(any.number("w", 7, -1, 5) == "5 - n_w");
  CHECK(any.number("w", 7, 1, -1) == "n_w - 1");
  CHECK(any.number("w", 7, 1, 2) == "n_w + 2");
  CHECK(any.number("w", 7, 2, -3) == "2 * n_w - 3");
}

TEST_CASE("kernel text: a literal is a float of nine digits in either dialect") {
  const KernelWriter glsl(Dialect::glsl, ""), opencl(Dialect::opencl_c, "");
  const struct {
    double value;
    std::string text;
  } rows[] = {{6, "6.0"},
              {-2, "-2.0"},
              {0, "0.0"},
              {0.25, "0.25"},
              {1.0 / 3, "0.333333333"},
              {1e9, "1e+09"},
              {1e-20, "1e-20"},
              {123456789, "123456789.0"},
              {-0.5, "-0.5"}};
  for (const auto& row : rows) {
    CHECK(glsl.literal(row.value) == row.text);
    CHECK(opencl.literal(row.value) == row.text + "f");
  }
}

TEST_CASE("kernel text: loads, activations and barriers of either dialect") {
  for (const bool is_glsl : {true, false}) {
    CAPTURE(is_glsl);
    KernelWriter writer(is_glsl ? Dialect::glsl : Dialect::opencl_c, "");
    const auto word = [&](const char* glsl, const char* opencl) { return std::string(is_glsl ? glsl : opencl); };
    writer.bind("s", Element::vector, Access::read, {BindingSource::tensor, 0});
    writer.bind("t", Element::vector, Access::read, {BindingSource::tensor, 1}, View::texels);
    writer.bind("i", Element::vector, Access::read, {BindingSource::tensor, 2}, View::image);
    writer.share("m", Element::scalar, 8);
    CHECK(writer.load("s", "3") == "s[3]");
    CHECK(writer.load("t", "3") == word("texelFetch(t, 3)", "t[3]"));
    CHECK(writer.load("i", "3") == word("imageLoad(i, 3)", "i[3]"));
    CHECK(writer.load("m", "3") == "m[3]");
    CHECK(writer.store("s", "3", "v") == "s[3] = v;");
    CHECK(writer.activated("v", Activation::none) == "v");
    CHECK(writer.activated("v", Activation::relu) == word("max(v, 0.0)", "fmax(v, 0.0f)"));
    CHECK(writer.activated("v", Activation::relu6) == word("min(max(v, 0.0), 6.0)", "fmin(fmax(v, 0.0f), 6.0f)"));
    CHECK(writer.barrier() == word("memoryBarrierShared(); barrier();", "barrier(CLK_LOCAL_MEM_FENCE);"));
    CHECK(writer.vector("a", "b", "c", "d") == word("vec4(a, b, c, d)", "(float4)(a, b, c, d)"));
    CHECK(writer.lane(1) == word("int(gl_LocalInvocationID.y)", "(int)get_local_id(1)"));
    CHECK(writer.group(2) == word("int(gl_WorkGroupID.z)", "(int)get_group_id(2)"));
    CHECK(writer.globally(0) == word("int(gl_GlobalInvocationID.x)", "(int)get_global_id(0)"));
    const Pass pass = writer.take({4, 2, 1}, {3, 5, 7});
    CHECK(pass.source.views ==
          (is_glsl ? std::vector<View>{View::storage, View::texels, View::image} : std::vector<View>{}));
    CHECK(pass.source.bindings == std::vector<Access>(3, Access::read));
    CHECK(pass.source.entry == word("main", "kiln_kernel"));
    CHECK(pass.source.workgroup == std::array<std::uint32_t, 3>{4, 2, 1});
    CHECK(pass.grid == std::array<std::uint32_t, 3>{3, 5, 7});
    REQUIRE(pass.bindings.size() == 3);
    CHECK(pass.bindings[2].index == 2);
  }
}

TEST_CASE("kernel text: the numbers of each pass for any shape are a table of their own, in the order of their names") {
  std::vector<NumberTable> tables;
  const Form form(Dialect::glsl, &tables);
  for (std::uint32_t i = 0; i < 2; ++i) {
    KernelWriter writer(form, "");
    writer.bind("x", Element::scalar, Access::write, {BindingSource::tensor, 0});
    CHECK(writer.number("width", 7) == "n_width");
    CHECK(writer.number("height", 9) == "n_height");
    const Pass pass = writer.take({1, 1, 1}, {1, 1, 1});
    REQUIRE(pass.bindings.size() == 2);
    CHECK(pass.bindings[1].source == BindingSource::constant);
    CHECK(pass.bindings[1].index == i);
    CHECK(pass.source.bindings == std::vector<Access>{Access::write, Access::read});
    CHECK_THAT(pass.source.text,
               Catch::Contains("binding = 1) readonly restrict buffer Of_numbers { int numbers[]; };") &&
                   Catch::Contains("  int n_height = numbers[0];\n  int n_width = numbers[1];\n"));
    REQUIRE(tables.size() == i + 1);
    CHECK(tables[i].size() == 2);
    CHECK(tables[i][0] == 9);
    CHECK(tables[i][1] == 7);
  }
}

TEST_CASE("kernel text: a band loads each value once, and asks for its place where a band may lie outside") {
  const WrittenBand inside = band_of(3, 4, 12, {0, 3, 0});  // bands begin at 0, 4 and 8
  CHECK(inside.names == Words{"x0", "x3", "x0"});
  CHECK(inside.text == "  float x0 = x[first_x + 0];\n  float x3 = x[first_x + 3];\n");
  const WrittenBand before = band_of(3, 4, 12, {-1, -8, -9});
  CHECK(before.names == Words{"xm1", "xm8", ""});  // the last begins at 8
  CHECK(before.text ==
        "  float xm1 = band >= 1 ? x[first_x + -1] : 0.0;\n  float xm8 = band >= 8 ? x[first_x + -8] : 0.0;\n");
  const WrittenBand behind = band_of(3, 4, 12, {4, 11, 12});
  CHECK(behind.names == Words{"x4", "x11", ""});
  CHECK(behind.text ==
        "  float x4 = band < 8 ? x[first_x + 4] : 0.0;\n  float x11 = band < 1 ? x[first_x + 11] : 0.0;\n");
  CHECK(band_of(3, 4, 7, {-1}).text == "  float xm1 = band >= 1 && band < 8 ? x[first_x + -1] : 0.0;\n");
  CHECK(band_of(3, 4, 12, {0, 4}, Element::vector).text ==
        "  vec4 x0 = x[first_x + 0];\n  vec4 x4 = band < 8 ? x[first_x + 4] : vec4(0.0);\n");
}

}  // namespace kiln::dynamic_shaders
