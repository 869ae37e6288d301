// Texts of users' kernels at the edges of what is read in them: comments, strings, directives, brackets.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

UserKernelSpec text_kernel(const std::string& text, Dialect dialect = Dialect::glsl) {
  UserKernelSpec spec;
  spec.path = "some.comp";
  spec.text = text;
  spec.dialect = dialect;
  spec.constants = {{"A", "1"}};
  spec.bindings = {{Access::read_write, 4096}};
  spec.grid = {1, 1, 1};
  return spec;
}

DeviceInfo reading_device(std::vector<Dialect> dialects = {Dialect::glsl}) {
  DeviceInfo device = sample_device();
  device.dialects = std::move(dialects);
  return device;
}

// The kernel's only pass, or "" and why there is none.
struct Written {
  Pass pass;
  std::string why;
  std::vector<std::string> notes;
};

Written written_of(const UserKernelSpec& spec, const DeviceInfo& device) {
  auto plan = Generator().generate(spec, device, spec.dialect);
  if (!plan) return {{}, plan.error().message, {}};
  REQUIRE(plan->passes.size() == 1);
  return {plan->passes[0], "", plan->notes};
}
Written written_of(const UserKernelSpec& spec) { return written_of(spec, reading_device({spec.dialect})); }

// "" where the text is taken.
std::string why_not(const std::string& text) { return written_of(text_kernel(text)).why; }

const std::string begin = "#version 430\n";
const std::string sized = "layout(local_size_x = 1) in; void main() {}";
const std::string no_size =
    "kernel some.comp: declares no local size, expected workgroup = [64, 1, 1] in the job or \"layout(local_size_x = "
    "64) "
    "in;\" in the text";

}  // namespace

TEST_CASE("dynamic_shaders::text: what stands in a comment declares nothing, and what stands behind it does") {
  CHECK(why_not(begin + sized) == "");
  CHECK(why_not(begin + "/**/" + sized) == "");
  CHECK(why_not(begin + "/***/" + sized) == "");
  CHECK(why_not(begin + "/*/ " + sized + " */") == no_size);
  CHECK(why_not(begin + "/* " + sized) == no_size);  // never closed
  CHECK(why_not(begin + "// " + sized) == no_size);
  CHECK(why_not(begin + "//\r" + sized) == "");
  CHECK(why_not(begin + "// goes on \\\n" + sized) == no_size);
  CHECK(why_not(begin + "// goes on \\\r\n" + sized) == no_size);
  CHECK(why_not(begin + "/* a */ /* b */ " + sized + " /* c */") == "");
  CHECK(why_not(begin + "layout(local_size_x = 8 / 2) in; void main() {}") == "");
  CHECK(why_not(begin + sized + " /") == "");
  CHECK(why_not(begin + "lay/**/out(local_/**/size_x = 1) in; void main() {}") == no_size);  // a comment is a blank
}

TEST_CASE("dynamic_shaders::text: no comment begins in a string, which ends with its line") {
  CHECK(why_not(begin + "#pragma \"/*\"\n" + sized) == "");
  CHECK(why_not(begin + "#pragma \"//\" \"/*\"\n" + sized) == "");
  CHECK(why_not(begin + "#pragma \"open\n// " + sized) == no_size);
  CHECK(why_not(begin + "#pragma \"open\r// " + sized) == no_size);
  CHECK(why_not(begin + "#pragma \"a\"/* " + sized) == no_size);
  CHECK(why_not(begin + sized + " \"") == "");
  CHECK(why_not(begin + sized + " \"\"") == "");
}

TEST_CASE("dynamic_shaders::text: only blanks stand before the version, and between its sign and its word") {
  for (const std::string good :
       {"#version 430\n", "\v\f \t\r\n#version 430\n", "# \t version 430\n", "/* a */#version 430\n"}) {
    INFO(good);
    CHECK(why_not(good + sized) == "");
  }
  for (const std::string bad : {"#versio 430\n", "version 430\n", "#\nversion 430\n", "#", "##version 430\n",
                                "a #version 430\n", "#\vversion 430\n"}) {
    INFO(bad);
    CHECK(why_not(bad + "\n" + sized) ==
          "kernel some.comp: does not begin with a #version line, expected \"#version 430\" or later");
  }
  CHECK_THAT(why_not(""), Catch::Contains("does not begin with a #version line"));
}

TEST_CASE("dynamic_shaders::text: a size is declared in brackets that are open, first or behind a comma") {
  const auto declares = [](const std::string& body) { return why_not(begin + body) == ""; };
  CHECK(declares("layout(binding = (1), local_size_x = 4) in; void main() {}"));
  CHECK(declares("layout(local_size_z=4) in; void main() {}"));
  CHECK(declares("layout(\n\tlocal_size_x\n=\n4) in; void main() {}"));
  CHECK(declares("#if local_size_x\n#endif\nvoid main() {}"));
  CHECK(declares(" \t# define B local_size_x = 4\nvoid main() {}"));
  CHECK(declares("#define B\nlayout(local_size_x = 4) in; void main() {}"));
  CHECK_FALSE(declares("int a(int b[(2)]), local_size_x = 1; void main() {}"));
  CHECK_FALSE(declares("void main() { for (int i = 0; local_size_x = 2;) {} }"));
  CHECK_FALSE(declares("int local_size_x = 1; void main() {}"));
  CHECK_FALSE(declares("void main() { f(a local_size_x = 1); }"));
  CHECK_FALSE(declares("void main() { f(local_size_x); }"));
  CHECK_FALSE(declares("void main() { f(local_size_x == 4); }"));
  CHECK_FALSE(declares("layout(local_size_x"));
  CHECK_FALSE(declares("int b = (1); local_size_x = 4; void main() {}"));
  CHECK(declares("int local_size_x = 1; layout(local_size_x = 4) in; void main() {}"));  // the second one does
}

TEST_CASE("dynamic_shaders::text: a constant's name and value, and why they are refused") {
  const auto refused = [](const Define& constant, Dialect dialect) {
    UserKernelSpec spec = text_kernel(begin + sized, dialect);
    if (dialect == Dialect::opencl_c) spec.text = "__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void f() {}";
    spec.constants = {constant};
    return written_of(spec).why;
  };
  const auto name = [&](const std::string& each, Dialect dialect) { return refused({each, "1"}, dialect); };
  const std::string rest = ": expected a name of letters, digits and underscores that is not reserved in ";
  for (const std::string bad : {"gl_A", "GL_A", "__A", "A__B", "A__", "2A", ""}) {
    CHECK(name(bad, Dialect::glsl) == "kernel some.comp: constant '" + bad + "'" + rest + "GLSL");
  }
  for (const std::string good : {"A_B", "_A", "Agl_", "AGL_B", "gl", "A2_"}) CHECK(name(good, Dialect::glsl) == "");
  CHECK(name("__A", Dialect::opencl_c) == "kernel some.comp: constant '__A'" + rest + "OpenCL C");
  for (const std::string good : {"A__B", "_A", "gl_A", "GL_A"}) CHECK(name(good, Dialect::opencl_c) == "");
  for (const std::string bad : {"\n", "1\n", "1\r", "\\", "1\\2"}) {
    CHECK(refused({"A", bad}, Dialect::glsl) ==
          "kernel some.comp: constant A: value must be one line without a backslash");
  }
  CHECK(refused({"A", ""}, Dialect::glsl) == "");
}

TEST_CASE("dynamic_shaders::text: a constant is defined again only behind an #undef of its own") {
  const std::string refused =
      "kernel some.comp: constant A: the text has #undef A and defines A again, so the value in the job has no effect. "
      "Remove the #undef or the constant";
  for (const std::string bad : {"#undef A\n#define A", "#undef A\r#define A 7\n", "\t#\tundef\tA\n\n#define A 7\n",
                                "#undef A\n#undef A\n#define A 7\n", "#define A 1\n#undef A\n#define A 7\n"}) {
    INFO(bad);
    CHECK(why_not(begin + sized + "\n" + bad) == refused);
  }
  for (const std::string good :
       {"#define A 7\n#undef A\n", "#undef A\n#undef A", "#undef A\n#define B 7\n", "#undef A\n#if A\n",
        "#undef A\ndefine A 7\n", "#undef\n#define A 7\n", "#undef A1\n#define A 7\n", "#\n#define A 7"}) {
    INFO(good);
    CHECK(why_not(begin + sized + "\n" + good) == "");
  }
}

TEST_CASE("dynamic_shaders::text: version 4.60 is lowered wherever its number stands, with a note") {
  DeviceInfo device = reading_device();
  device.driver_identity = {{"gl", "4.50"}, {"glsl", "4.50 NVIDIA"}};
  for (const std::string before :
       {"#version ", "#version\t", "# version  ", "#/* version 1 */version ", "// version\n#version "}) {
    INFO(before);
    const Written lowered = written_of(text_kernel(before + "460\n" + sized), device);
    CHECK(lowered.why == "");
    CHECK(lowered.pass.source.text == before + "450\n" + sized);
    CHECK(lowered.notes == std::vector<std::string>{
                               "opengl:0: supports GLSL 4.50, so the source with #version 460 was compiled as 450"});
  }
  const std::string commented = "#/* version 460 */version 430\n" + sized;
  CHECK(written_of(text_kernel(commented), device).pass.source.text == commented);
  CHECK(written_of(text_kernel(commented), device).notes.empty());
  CHECK(written_of(text_kernel("#version 450\n#define version 460\n" + sized), device).pass.source.text ==
        "#version 450\n#define version 460\n" + sized);
  for (const std::string other : {"4.5", "4.60", "14.50", ""}) {
    device.driver_identity = {{"gl", "4.50"}, {"glsl", other}};
    const Written same = written_of(text_kernel("#version 460\n" + sized), device);
    CHECK(same.pass.source.text == "#version 460\n" + sized);
    CHECK(same.notes.empty());
  }
  device.driver_identity = {{"gl", "4.50"}};
  CHECK(written_of(text_kernel("#version 460\n" + sized), device).notes.empty());
}

TEST_CASE("dynamic_shaders::text: the job's local size stands in front of the first declaration outside #if") {
  const std::string size = "layout(local_size_x = 2, local_size_y = 3, local_size_z = 4) in; ";
  const auto check = [&](const std::string& before, const std::string& after) {
    INFO(before << "|" << after);
    UserKernelSpec spec = text_kernel(before + after);
    spec.workgroup = {2, 3, 4};
    CHECK(written_of(spec).pass.source.text == before + size + after);
  };
  check("#version 430", "");
  check("#version 430\n", "");
  check("/* a */\n#version 430\n \t", "void main() {}");
  check("#version 430\r\n\r\n", "void main() {}");
  check("#version 430\n// a \\\nb\n", "void main() {}");
  check("#version 430\n// a /* b\n", "void main() {}");
  check("#version 430 // a /* b\n", "void main() {} */");
  check("#version 430 /* a\n*/\n", "void main() {}");
  check("#version 430\n/* never closed", "");
  check("#version 430\n/**/", "void main() {}");
  check("#version 430\n#if 1\nint a;\n#elif 2\nint b;\n#endif\n", "int c;");
  check("#version 430\n#if 1\n#ifndef B\nint a;\n#endif\nint b;\n#endif\n", "int c;");
  check("#version 430\n# if 1\nint a;\n# endif\n", "int c;");
  check("#version 430\n#include \"a\"\n#\n", "int c;");
  check("#version 430\n#define B \\\n int x;\n", "int c;");
  UserKernelSpec one = text_kernel("#version 430\nvoid main() {}");
  one.workgroup = {1, 1, 1};
  CHECK(written_of(one).pass.source.text ==
        "#version 430\nlayout(local_size_x = 1, local_size_y = 1, local_size_z = 1) in; void main() {}");
}

TEST_CASE("dynamic_shaders::text: OpenCL C takes the size of the job or of the text, and its text stays as it is") {
  UserKernelSpec spec = text_kernel("__kernel void f(__global float* a) { barrier(0); }", Dialect::opencl_c);
  const std::string refused =
      "kernel some.comp: declares no workgroup size, expected workgroup = [64, 1, 1] in the job or "
      "\"__attribute__((reqd_work_group_size(64, 1, 1)))\" at the kernel";
  DeviceInfo device = reading_device({Dialect::opencl_c});
  device.glsl_barrier = "(fence(), barrier())";
  device.driver_identity = {{"glsl", "4.50"}};
  CHECK(written_of(spec, device).why == refused);
  spec.workgroup = {8, 1, 1};
  const Written written = written_of(spec, device);
  CHECK(written.why == "");
  CHECK(written.pass.source.text == spec.text);
  CHECK(written.pass.source.workgroup == std::array<std::uint32_t, 3>{8, 1, 1});
  CHECK(written.pass.source.constants == std::vector<Define>{{"A", "1"}});  // no other barrier
  CHECK(written.notes.empty());
  spec.entry = "2f";
  CHECK(written_of(spec, device).why == "kernel some.comp: entry '2f', expected the name of a kernel function");
}

TEST_CASE("dynamic_shaders::text: a kernel that is compiled already is handed through byte by byte") {
  const std::string bytes = std::string("\xef\xbb\xbf\x7f") + "ELF" + std::string(1, '\0');
  const Written written = written_of(text_kernel(bytes, Dialect::code_object));
  CHECK(written.why == "");
  CHECK(written.pass.source.text == bytes);
}

TEST_CASE("dynamic_shaders::text: a language that the device does not read is told beside those that it does") {
  const UserKernelSpec spec = text_kernel(begin + sized);
  CHECK(written_of(spec, reading_device({Dialect::opencl_c})).why ==
        "kernel some.comp: written in glsl, expected opencl_c for device opengl:0");
  CHECK(written_of(spec, reading_device({Dialect::opencl_c, Dialect::code_object})).why ==
        "kernel some.comp: written in glsl, expected opencl_c or code_object for device opengl:0");
  CHECK(written_of(spec, reading_device({Dialect::opencl_c, Dialect::glsl})).why == "");
}

TEST_CASE("dynamic_shaders::text: a grid may be read from a tensor, where the device can, from its element on") {
  UserKernelSpec spec = text_kernel(begin + sized);
  UserKernelSpec::Binding grid{Access::read, 64};
  grid.kind = BindingKind::grid;
  grid.first = 3;
  spec.bindings.push_back(grid);
  DeviceInfo device = reading_device();
  CHECK(written_of(spec, device).why == "kernel some.comp: grid is a tensor, expected numbers for device opengl:0");
  device.indirect_grids = true;
  const Written written = written_of(spec, device);
  REQUIRE(written.pass.indirect.has_value());
  CHECK(*written.pass.indirect == IndirectGrid{1, 12});
  spec.bindings.pop_back();
  CHECK_FALSE(written_of(spec, device).pass.indirect.has_value());
}

TEST_CASE("dynamic_shaders::text: a grid as large as the device's is taken along each axis, one more is not") {
  DeviceInfo device = reading_device();
  device.max_grid = {4, 5, 6};
  UserKernelSpec spec = text_kernel(begin + sized);
  spec.grid = {4, 5, 6};
  CHECK(written_of(spec, device).pass.grid == std::array<std::uint32_t, 3>{4, 5, 6});
  for (std::size_t axis = 0; axis < 3; ++axis) {
    spec.grid = {4, 5, 6};
    const std::string most = std::to_string(spec.grid[axis]), more = std::to_string(++spec.grid[axis]);
    CHECK(written_of(spec, device).why ==
          "kernel some.comp: grid[" + std::to_string(axis) + "] = " + more + ", device opengl:0 takes at most " + most);
  }
}

TEST_CASE(
    "dynamic_shaders::text: images and samplers take no binding of a buffer, and memory of a workgroup none at all") {
  UserKernelSpec spec = text_kernel(begin + sized);
  const auto add = [&](BindingKind kind, Access access) {
    UserKernelSpec::Binding binding{access, 64};
    binding.kind = kind;
    binding.name = "b" + std::to_string(spec.bindings.size());
    binding.dtype = DType::u8;
    binding.shape = {4, 4, 4};
    spec.bindings.push_back(binding);
  };
  add(BindingKind::image, Access::write);
  add(BindingKind::sampler, Access::read);
  add(BindingKind::local, Access::read_write);
  DeviceInfo device = reading_device();
  device.max_bindings = 1;
  const Written written = written_of(spec, device);
  CHECK(written.why == "");
  CHECK(written.pass.source.views == std::vector<View>{View::storage, View::pixels, View::pixels});
  CHECK(written.pass.source.bindings == std::vector<Access>{Access::read_write, Access::write, Access::read});
  REQUIRE(written.pass.bindings.size() == 3);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(written.pass.bindings[i].index == i);
  add(BindingKind::buffer, Access::read);
  CHECK(written_of(spec, device).why == "kernel some.comp: device opengl:0: 2 bindings, expected at most 1");
}

}  // namespace kiln::dynamic_shaders
