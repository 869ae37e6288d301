// What kernels in OpenCL C may not use: refused by its name at its place, as far as the entry reaches it.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

using Catch::Contains;

TEST_CASE("kernels: what is not offered is refused by its name, at its place") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const std::pair<const char*, const char*> refused[] = {{"printf(\"%d\", 3);", "printf"},
                                                         {"prefetch(y, 1); y[0] = get_fence(y);", "get_fence"},
                                                         {"release_event(1);", "release_event"},
                                                         {"to_local(y);", "to_local"},
                                                         {"enqueue_kernel(1, 2);", "enqueue_kernel"},
                                                         {"read_pipe(n, &y);", "read_pipe"},
                                                         {"y[0] = read_imagef(3, 4).x;", "read_imagef"}};
  for (const auto& [statement, name] : refused) {
    INFO(statement);
    const std::string text =
        "\n__kernel void k(__global float* y, __local float* l) { " + std::string(statement) + " }\n";
    CHECK_THAT(
        compile_kernel(*clang, opencl(text, "k"), "mine.cl", Target::gfx1100, soon()).error().text(),
        Contains("mine.cl:2:") && !Contains("kiln_no_") &&
            Contains("error: '" + std::string(name) + "' is unavailable: " + std::string(name) + " is not offered"));
  }
  // A sampler outside the kernels is for those that read an image.
  const auto with_sampler = [&clang](const std::string& statement) {
    return compile_kernel(*clang,
                          opencl("constant sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_NEAREST;\n"
                                 "const sampler_t t = CLK_ADDRESS_CLAMP;\n"
                                 "__kernel void k(__global int* y) { " +
                                     statement + " }",
                                 "k"),
                          "mine.cl", Target::gfx1100, soon());
  };
  CHECK(with_sampler("y[0] = 1;").has_value());
  const std::string sampler = with_sampler("y[0] = read_imagef(y, s, y).x;").error().text();
  CHECK_THAT(sampler, Contains("error: 'read_imagef' is unavailable") && !Contains("undeclared"));
  const std::string image = compile_kernel(*clang, opencl("__kernel void k(__read_only image2d_t i) {}", "k"),
                                           "mine.cl", Target::gfx1100, soon())
                                .error()
                                .text();
  CHECK_THAT(image, Contains("image2d_t is not offered") && !Contains("access qualifier"));
  // A function of the source's own may have such a name.
  CHECK(compile_kernel(*clang,
                       opencl("int printf(float a) { return (int)a; }\n"
                              "__kernel void k(__global int* y) { y[0] = printf(2.0f); }",
                              "k"),
                       "mine.cl", Target::gfx1100, soon())
            .has_value());
}

TEST_CASE("kernels: what other kernels of the file use does not matter") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto compile = [&clang](const std::string& text, const std::string& entry) {
    KernelSource source = opencl(text, entry);
    source.workgroup = {64, 1, 1};
    return compile_kernel(*clang, source, "mine.cl", Target::gfx1100, soon());
  };
  const std::string text =
      "struct Pair { int a, b; };\n"
      "constant int table[] = {1, 2};\n"
      "#define HELP help\n"
      "/* picture( */ float pixel(read_only image2d_t from) { return read_imagef(from, (int2)(0, 0)).x; }\n"
      "int help(int a) { if (a > 1) { a += table[a & 1]; } return a; }  // for buffers\n"
      "__kernel __attribute__((work_group_size_hint(64, 1, 1))) void buffers(__global int* y) {\n"
      "  struct Pair pair = {1, 2};\n"
      "  y[get_global_id(0)] = HELP(pair.b);\n"
      "}\n"
      "__kernel void picture(read_only image2d_t from, __global float* y) {\n"
      "#ifdef LOUD\n"
      "  printf(\"{ %f\", y[0]);\n"
      "#endif\n"
      "  y[0] = pixel(from);\n"
      "}\n";
  CHECK(compile(text, "buffers").has_value());
  CHECK_THAT(compile(text, "picture").error().text(), Contains("mine.cl:4:") && Contains("image2d_t is not offered"));
  // Neither a mistake of the kernel itself nor what it reaches is passed over.
  const std::string wrong = text + "__kernel void spelt(__global int* y) { y[0] = hlep(1); }\n";
  CHECK_THAT(compile(wrong, "spelt").error().text(),
             Contains("mine.cl:16:47: error: use of undeclared identifier 'hlep'"));
  const std::string far =
      text + "float far() { return pixel(0); }\n__kernel void reaches(__global float* y) { *y = far(); }\n";
  CHECK_THAT(compile(far, "reaches").error().text(), Contains("mine.cl:4:") && Contains("is not offered"));
}

TEST_CASE("kernels: recursion is refused") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const std::string text =
      "int odd(int n);\n"
      "int even(int n) { return n == 0 ? 1 : odd(n - 1); }\n"
      "int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n"
      "int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
      "kernel void a(global int* y) { y[0] = fib(y[1]); }\n"
      "kernel void b(global int* y) { y[0] = odd(y[1]); }\n"
      "kernel void c(global int* y) { y[0] = y[1]; }\n";
  const auto refusal = [&](const std::string& entry) {
    const auto compiled = compile_kernel(*clang, opencl(text, entry), "t.cl", Target::gfx1100, soon());
    return compiled ? "none" : compiled.error().text();
  };
  CHECK(refusal("a") == "invalid_argument: t.cl: function 'fib' calls itself; OpenCL C does not support recursion");
  CHECK(refusal("b") ==
        "invalid_argument: t.cl: function 'odd' calls 'even', which calls 'odd'; OpenCL C does not support recursion");
  CHECK(refusal("c") == "none");
}

TEST_CASE("kernels: a text that defines a constant again is refused, because the job's value would have no effect") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto compile = [&clang](const std::string& lines) {
    KernelSource source = opencl(lines + "__kernel void k(__global int* y) { y[0] = N; }\n", "k");
    source.constants = {{"N", "7"}};
    return compile_kernel(*clang, source, "mine.cl", Target::gfx1100, soon());
  };
  CHECK_THAT(compile("#define N 3\n").error().text(), Contains("mine.cl:1:9: error: macro 'N'"));
  CHECK_THAT(compile("\n#undef N\n#define N 3\n").error().text(), Contains("mine.cl:2:8: error: macro 'N'"));
  CHECK(compile("#ifndef N\n#define N 3\n#endif\n#define M 1\n#define M 2\n").has_value());
}

}  // namespace kiln::amdgpu_pm4
