#include <catch2/catch.hpp>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr const char* saxpy = R"(// y = A * x + y
#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = A * x[i] + y[i]; }
)";

UserKernelSpec saxpy_spec() {
  UserKernelSpec spec;
  spec.path = "saxpy.comp";
  spec.text = saxpy;
  spec.dialect = Dialect::glsl;
  spec.constants = {{"A", "2.5"}, {"_n", "(1 + 2)"}};
  spec.bindings = {{Access::read, 4096}, {Access::read_write, 4096}};
  spec.grid = {16, 2, 3};
  return spec;
}

Status refusal_of(const UserKernelSpec& spec, const DeviceInfo& device = sample_device()) {
  const auto plan = Generator().generate(spec, device, Dialect::glsl);
  REQUIRE_FALSE(plan.has_value());
  CHECK_THAT(plan.error().message, Catch::StartsWith("kernel saxpy.comp: "));
  return plan.error();
}

bool accepts(const std::string& text) {
  UserKernelSpec spec = saxpy_spec();
  spec.text = text;
  return Generator().generate(spec, sample_device(), Dialect::glsl).has_value();
}

}  // namespace

TEST_CASE("dynamic_shaders: the user's kernel is handed through") {
  const UserKernelSpec spec = saxpy_spec();
  const auto plan = Generator().generate(spec, sample_device(), Dialect::glsl);
  REQUIRE(plan.has_value());
  REQUIRE(validate(*plan).ok());
  CHECK(plan->variant == "user");
  CHECK(plan->tensors == tensors_of(spec));
  REQUIRE(plan->passes.size() == 1);
  const Pass& pass = plan->passes.front();
  CHECK(pass.source.text == saxpy);
  CHECK(pass.source.constants == spec.constants);
  CHECK(pass.source.bindings == std::vector<Access>{Access::read, Access::read_write});
  CHECK(pass.source.workgroup == std::array<std::uint32_t, 3>{0, 0, 0});
  CHECK(pass.grid == spec.grid);
  REQUIRE(pass.bindings.size() == 2);
  CHECK(pass.bindings[1].source == BindingSource::tensor);
  CHECK(pass.bindings[1].index == 1);
}

TEST_CASE("dynamic_shaders: a user's kernel must begin with its version") {
  const std::string rest = "\nlayout(local_size_x = 1) in; void main() {}\n";
  CHECK(accepts("#version 430" + rest));
  CHECK(accepts("\n /* a\n comment */ // another\n\t# version 450 core" + rest));
  for (const std::string text : {"", "// #version 430\n", "/* #version 430 */", "/* never closed",
                                 "precision highp float;\n#version 430", "#define A 1\n#version 430"}) {
    INFO(text);
    CHECK_FALSE(accepts(text + rest));
  }
  UserKernelSpec spec = saxpy_spec();
  spec.text = rest;
  CHECK(refusal_of(spec).code == StatusCode::invalid_argument);
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("#version 430"));
}

TEST_CASE("dynamic_shaders: GLSL 4.60 is compiled as 4.50 where the device takes that, and the plan says so") {
  DeviceInfo device = sample_device();
  const auto text_of = [&](const std::string& text, std::size_t notes) {
    UserKernelSpec spec = saxpy_spec();
    spec.text = text;
    const auto plan = Generator().generate(spec, device, Dialect::glsl);
    REQUIRE(plan.has_value());
    CHECK(plan->notes.size() == notes);
    return plan->passes[0].source.text;
  };
  const std::string rest = "\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
  device.driver_identity = {{"gl", "4.5 (Core Profile) Mesa 22.3.6"}, {"glsl", "4.50"}};
  CHECK(text_of("// version 9\n # version 460 core" + rest, 1) == "// version 9\n # version 450 core" + rest);
  CHECK(text_of("#version 450" + rest, 0) == "#version 450" + rest);
  CHECK(text_of("#version 430" + rest, 0) == "#version 430" + rest);
  CHECK(text_of("#version 310 es" + rest, 0) == "#version 310 es" + rest);
  device.driver_identity[1].second = "4.60";
  CHECK(text_of("#version 460" + rest, 0) == "#version 460" + rest);
  device.driver_identity[1].second = "4.30";
  CHECK(text_of("#version 460" + rest, 0) == "#version 460" + rest);
}

TEST_CASE("dynamic_shaders: a user's kernel must declare its local size") {
  CHECK(accepts("#version 430\nlayout(local_size_y = 4) in; void main() {}"));
  CHECK_FALSE(accepts("#version 430\n// layout(local_size_x = 1) in;\nvoid main() {}"));
  CHECK(accepts("#version 430\nlayout(\n  local_size_y /* rows */ = 4, local_size_x=2) in; void main() {}"));
  CHECK(accepts("#version 430\n#define SIZES local_size_x = 4\nlayout(SIZES) in; void main() {}"));
  CHECK(accepts("#version 430\n#define SIZES(...) layout(__VA_ARGS__) in\nSIZES(local_size_x = 4); void main() {}"));
  // A variable of that name declares nothing.
  for (const std::string body : {"uint local_size_x = gl_WorkGroupSize.x;", "uint a = f(1), local_size_y = 2;",
                                 "if (local_size_x == 1) f(local_size_x, 2);", "f(my_local_size_x);"}) {
    INFO(body);
    CHECK_FALSE(accepts("#version 430\nvoid main() { " + body + " }\n"));
  }
  UserKernelSpec spec = saxpy_spec();
  spec.text = "#version 430\nvoid main() {}\n";
  CHECK(refusal_of(spec).code == StatusCode::invalid_argument);
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("local_size_x") && Catch::Contains("workgroup = "));
}

TEST_CASE("dynamic_shaders: a text that undefines a constant of the job and defines it again is refused") {
  UserKernelSpec spec = saxpy_spec();
  const std::string head = "#version 430\nlayout(local_size_x = 1) in;\n", tail = "void main() {}\n";
  for (const char* const again :
       {"#undef A\n#define A 7\n", "# undef A // old\r\n  #define A(x) x\n",
        "#ifdef A\n#undef A\n#endif\n#define A 7\n", "#undef B\n#undef /* it */ A\n#define B 1\n#define A 7\n"}) {
    INFO(again);
    spec.text = head + again + tail;
    CHECK(refusal_of(spec).code == StatusCode::invalid_argument);
    CHECK_THAT(refusal_of(spec).message, Catch::Contains("constant A: the text has #undef A and defines A again"));
  }
  for (const char* const good : {"#ifndef A\n#define A 7\n#endif\n#undef A\n", "// #undef A\n#define AB 7\n",
                                 "#undef AB\n#define AB 7\n", "#undef B\n#define B A\n"}) {
    INFO(good);
    CHECK(accepts(head + good + tail));
  }
}

TEST_CASE("dynamic_shaders: a text without a local size gets that of the job, in front of its first declaration") {
  UserKernelSpec spec = saxpy_spec();
  spec.workgroup = {8, 4, 1};
  const std::string declared = "layout(local_size_x = 8, local_size_y = 4, local_size_z = 1) in; ";
  const auto check = [&](const std::string& before, const std::string& after, const std::string& inserted) {
    spec.text = before + after;
    const auto plan = Generator().generate(spec, sample_device(), Dialect::glsl);
    REQUIRE(plan.has_value());
    CHECK(plan->passes[0].source.text == before + inserted + after);
  };
  check("#version 430\n", "void main() {}\n", declared);
  check("#version 430\n#extension GL_ARB_gpu_shader_int64 : enable // on\n#define TWO \\\n  2\n/* local_size_x\n*/ ",
        "shared uint s[gl_WorkGroupSize.x];\nvoid main() {}\n", declared);
  check("#version 430\n#ifdef A\nint a;\n# if B\nint b;\n# endif\n#else\nint c;\n#endif\n// main\n", "void main() {}",
        declared);
  check("#version 430\n#if A\nvoid main() {}\n#endif\n", "", declared);
  check("#version 430 /* of\n 2012 */ // not /* this\n#define TILE 8 /* side of a tile,\n in lanes */\n", "void main() {}\n",
        declared);
  check("#version 430\n", "layout(local_size_x = 2) in; void main() {}\n", "");
  check("#version 430\n", "void main() { uint local_size_x = gl_WorkGroupSize.x; }\n", declared);
}

TEST_CASE("dynamic_shaders: values of uniforms and images are bindings outside the program's key") {
  UserKernelSpec spec = saxpy_spec();
  const DeviceInfo device = sample_device();
  const auto key = [&] {
    const auto plan = Generator().generate(spec, device, Dialect::glsl);
    REQUIRE(plan.has_value());
    REQUIRE(validate(*plan).ok());
    CHECK(plan->tensors.size() == plan->passes[0].bindings.size());
    return key_of(plan->passes[0].source, device, "").digest.hex();
  };
  const std::string plain = key();
  spec.uniforms = {{"gain", UserKernelSpec::Uniform::Type::number, {3}}};
  CHECK(key() == plain);
  UserKernelSpec::Binding image{Access::write, 256};
  image.kind = BindingKind::image;
  image.name = "shown";
  image.dtype = DType::u8;
  image.shape = {8, 8, 4};
  spec.bindings.push_back(image);
  CHECK(key() == plain);
  spec.bindings[2].shape = {16, 8, 4};
  spec.bindings[2].bytes = 512;
  CHECK(key() == plain);
  spec.bindings[1].access = Access::write;
  CHECK(key() != plain);
}

TEST_CASE("dynamic_shaders: a user's kernel in another dialect is refused by name") {
  UserKernelSpec spec = saxpy_spec();
  spec.dialect = Dialect::opencl_c;
  CHECK(refusal_of(spec).code == StatusCode::unsupported);
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("opencl_c") && Catch::Contains("glsl"));
}

TEST_CASE("dynamic_shaders: a user's kernel in OpenCL C must declare its workgroup size, and may name its function") {
  DeviceInfo device = sample_device();
  device.dialects = {Dialect::opencl_c};
  UserKernelSpec spec = saxpy_spec();
  spec.dialect = Dialect::opencl_c;
  spec.text = "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void saxpy(__global float* x) { *x = A; }\n";
  const auto refused = [&] { return Generator().generate(spec, device, Dialect::opencl_c).error().message; };
  const auto plan = Generator().generate(spec, device, Dialect::opencl_c);
  REQUIRE(plan.has_value());
  CHECK(plan->passes.front().source.entry == "main");
  CHECK(plan->passes.front().source.dialect == Dialect::opencl_c);
  spec.entry = "saxpy";
  CHECK(Generator().generate(spec, device, Dialect::opencl_c)->passes.front().source.entry == "saxpy");
  spec.entry = "no name";
  CHECK_THAT(refused(), Catch::Contains("'no name'"));
  spec.entry = "saxpy";
  spec.text = "// reqd_work_group_size\n__kernel void saxpy(__global float* x) { *x = A; }\n";
  CHECK_THAT(refused(), Catch::Contains("reqd_work_group_size(64, 1, 1)"));
  spec.constants = {{"__A", "1"}};
  spec.text = "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void saxpy() {}\n";
  CHECK_THAT(refused(), Catch::Contains("'__A'") && Catch::Contains("OpenCL C"));
  spec.constants = {{"gl_A", "1"}};
  CHECK(Generator().generate(spec, device, Dialect::opencl_c).has_value());
}

TEST_CASE("dynamic_shaders: a constant must be a macro that GLSL allows") {
  for (const char* name : {"", "2A", "A B", "gl_A", "GL_A", "A__B", "A(x)", "A\n#undef A"}) {
    UserKernelSpec spec = saxpy_spec();
    spec.constants = {{name, "1"}};
    INFO("name '" << name << "'");
    CHECK(refusal_of(spec).code == StatusCode::invalid_argument);
  }
  for (const char* text : {"1\n#undef A", "1 \\", "1\r2"}) {
    UserKernelSpec spec = saxpy_spec();
    spec.constants = {{"A", text}};
    INFO("text '" << text << "'");
    CHECK(refusal_of(spec).code == StatusCode::invalid_argument);
  }
}

TEST_CASE("dynamic_shaders: boolean constants are comparisons, which serve #if and if alike") {
  UserKernelSpec spec = saxpy_spec();
  spec.constants = {{"A", "true"}, {"B", "false"}, {"C", "truest"}};
  spec.parameters = {{"FAST", {"true", "false"}}};
  const auto plan = Generator().generate_variant(spec, sample_device(), Dialect::glsl, "user:FAST=false");
  REQUIRE(plan.has_value());
  CHECK(plan->passes[0].source.constants ==
        std::vector<Define>{{"A", "(1 == 1)"}, {"B", "(1 == 0)"}, {"C", "truest"}, {"FAST", "(1 == 0)"}});
}

TEST_CASE("dynamic_shaders: barrier() is replaced where the device asks for it and the kernel has one") {
  DeviceInfo device = sample_device();
  device.glsl_barrier = "(fence(), barrier())";
  const Define barrier{"barrier()", device.glsl_barrier};
  const auto last = [&](const UserKernelSpec& spec) {
    const auto plan = Generator().generate(spec, device, Dialect::glsl);
    REQUIRE(plan.has_value());
    return plan->passes[0].source.constants.back();
  };
  UserKernelSpec spec = saxpy_spec();
  CHECK_FALSE(last(spec) == barrier);
  spec.text += "void sync() { barrier(); }\n";
  CHECK(last(spec) == barrier);
  spec = saxpy_spec();
  spec.constants.push_back({"SYNC", "barrier()"});
  CHECK(last(spec) == barrier);
  device.glsl_barrier.clear();
  CHECK(last(spec) == Define{"SYNC", "barrier()"});
}

TEST_CASE("dynamic_shaders: the names of a user's files go with the source, and its text must be text") {
  UserKernelSpec spec = saxpy_spec();
  spec.includes = {"lib/a.glsl"};
  spec.text = "\xef\xbb\xbf" + spec.text;
  const auto plan = Generator().generate(spec, sample_device(), Dialect::glsl);
  REQUIRE(plan.has_value());
  CHECK(plan->passes[0].source.files == std::vector<std::string>{"saxpy.comp", "lib/a.glsl"});
  CHECK(plan->passes[0].source.text == saxpy);
  for (const std::string version : {"#version \\\n430\n", "#\\\r\nversion 430\r\n", "\r#version 430\r"}) {
    CHECK(accepts(version + "layout(local_size_x = 1) in; void main() {}"));
  }
  spec.text.insert(10, 1, '\0');
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("NUL byte at offset 10"));
}

TEST_CASE("dynamic_shaders: a user's kernel must fit the device") {
  UserKernelSpec spec = saxpy_spec();
  spec.grid = {1, 65536, 1};
  CHECK(refusal_of(spec).code == StatusCode::unsupported);
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("grid[1] = 65536") && Catch::Contains("65535"));

  spec = saxpy_spec();
  spec.bindings.resize(9, {Access::read, 4});
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("9 bindings, expected at most 8"));

  spec = saxpy_spec();
  spec.entry = "saxpy";
  CHECK(refusal_of(spec).code == StatusCode::invalid_argument);
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("'saxpy', expected 'main'"));
}

TEST_CASE("dynamic_shaders: a kernel with parameters is served by its first variant, and by any that is asked for") {
  UserKernelSpec spec = saxpy_spec();
  spec.parameters = {{"TILE", {"8", "16"}}};
  spec.grid_expressions[0] = "1024 / TILE";
  const DeviceInfo device = sample_device();
  const auto first = Generator().generate(spec, device, Dialect::glsl);
  REQUIRE(first.has_value());
  CHECK(first->variant == "user:TILE=8");
  CHECK(first->passes[0].grid == std::array<std::uint32_t, 3>{128, 2, 3});
  CHECK(first->passes[0].source.constants.back() == Define{"TILE", "8"});
  const auto other = Generator().generate_variant(spec, device, Dialect::glsl, "user:TILE=16");
  REQUIRE(other.has_value());
  CHECK(other->passes[0].grid[0] == 64);
  CHECK(Generator().generate_variant(spec, device, Dialect::glsl, "user:TILE=7").error().code == StatusCode::not_found);
  spec.parameters[0].texts.clear();
  CHECK_THAT(refusal_of(spec).message, Catch::Contains("parameter TILE: has no values"));
}

}  // namespace kiln::dynamic_shaders
