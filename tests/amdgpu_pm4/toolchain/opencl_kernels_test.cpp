// The compiler of this machine, if it has one: kernels as people and the generator write them, for every target.
#include <kiln/kernel_text.hpp>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/device/build_device.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::Equals;
using Catch::StartsWith;

constexpr const char* direct_conv = R"(// direct, plain: a lane is one output
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void kiln_kernel(__global const float* restrict x, __global const float* restrict weights,
                 __global const float* restrict bias, __global float* restrict y) {
  int at = (int)get_global_id(0), row = (int)get_group_id(1), top = at / WIDTH - 1, left = at % WIDTH - 1;
  if (at >= WIDTH * HEIGHT) return;
  float sum = 0.0f;
  for (int c = 0; c < 16; ++c) {
    for (int r = 0; r < 3; ++r) {
      int iy = top + r;
      if (iy < 0 || iy >= HEIGHT) continue;
      for (int s = 0; s < 3; ++s) {
        int ix = left + s;
        if (ix < 0 || ix >= WIDTH) continue;
        sum += x[(c * HEIGHT + iy) * WIDTH + ix] * weights[((row * 16 + c) * 3 + r) * 3 + s];
      }
    }
  }
  sum += bias[row];
  sum = fmax(sum, 0.0f);
  y[row * WIDTH * HEIGHT + at] = sum;
}
)";

constexpr const char* shared_gemm = R"(// through shared memory, four columns a lane
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void kiln_kernel(__global const float* restrict a, __global const float4* restrict b, __global float4* restrict c) {
  __local float part[64];
  int lx = (int)get_local_id(0), ly = (int)get_local_id(1);
  int column = (int)get_global_id(0), row = (int)get_group_id(1) * 8 + ly;
  float4 sum = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
  for (int k = 0; k < 64; k += 8) {
    part[ly * 8 + lx] = a[row * 64 + k + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 8; ++i) sum += (float4)(part[ly * 8 + i]) * b[(k + i) * 16 + column];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * 16 + column] = sum;
}
)";

// The prelude, a line a family of functions.
constexpr const char* many_functions = R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void kiln_kernel(__global float4* f, __global int* n, __global uint* u, __global half* h, __global double* d,
                 __constant float* table, __global char* bytes) {
  __local int shared[64];
  size_t i = get_global_id(0) + get_global_offset(0);
  float4 v = f[i], w = f[i + 1];
  f[2] = fma(v, w, v) + mad(v, w, w) + fmax(v, w) + fmin(v, 0.5f) + max(v, w) + min(v, w) + clamp(v, 0.0f, 1.0f);
  f[3] = fabs(v) + sqrt(w) + rsqrt(w) + floor(v) + ceil(v) + trunc(v) + rint(v) + round(v) + copysign(v, w);
  f[4] = exp(v) + exp2(v) + log(w) + log2(w) + log10(w) + sin(v) + cos(v) + mix(v, w, 0.25f) + step(v, w);
  f[5] = native_exp(v) + native_sin(w) + native_recip(v) + native_powr(v, w) + normalize(v) * dot(v, w) + length(w);
  f[6] = convert_float4(convert_int4(v)) + as_float4(as_int4(w)) + vload4(i, table) + select(v, w, v < w);
  f[7].xyz = cross(v.xyz, w.xyz);
  vstore4(v, i, (__global float*)f);
  vstore3(w.xyz, i, (__global float*)f);
  n[0] = max(n[1], n[2]) + min(n[3], 4) + clamp(n[5], 0, 7) + (int)abs(n[6]) + mul24(n[1], n[2]) + mad24(n[1], n[2], 3) +
         mul_hi(n[1], n[2]) + popcount(n[4]) + clz(n[5]) + rotate(n[6], 3) + any(v < w) + all(v > w) + isnan(v.x) +
         convert_int_rte(v.y) + convert_uchar_sat(v.z) + add_sat(n[1], n[2]) + (int)sign(v.w) + select(1, 2, n[7]);
  n[1] = atomic_add(&n[8], 2) + atomic_max(&n[9], 3) + atomic_cmpxchg(&n[10], 4, 5) + atomic_inc(&shared[i & 63]);
  u[0] = atomic_sub(&u[1], 1u) + atomic_xchg(&u[2], 9u) + atomic_or(&u[3], 1u) + (uint)get_work_dim();
  h[0] = fma(h[1], h[2], (half)1.5f);
  h[1] = (half)vload_half(3, h) + M_PI_H * HALF_EPSILON;
  vstore_half4(vload_half4(0, h), 1, h);
  d[0] = sqrt(d[1]) / d[2] + fma(d[3], d[4], floor(d[5])) + isnan(d[6]) + sign(d[7]) + convert_int_rte(d[8]);
  bytes[0] = max(bytes[1], bytes[2]);
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  n[11] = shared[63 - (i & 63)] + (int)get_num_groups(0) + (int)get_global_size(1) + (int)get_local_linear_id();
}
)";

std::vector<std::byte> code_of(Toolchain& clang, const std::string& body) {
  const auto compiled = compile_kernel(
      clang,
      opencl("__kernel __attribute__((reqd_work_group_size(64, 1, 1)))\n"
             "void kiln_kernel(__global const float* x, __global float* y) { int i = (int)get_global_id(0); " +
             body + " }"),
      "k.cl", Target::gfx1100, soon());
  INFO((compiled ? std::string() : compiled.error().text()));
  REQUIRE(compiled.has_value());
  const auto object = read_code_object(compiled->object);
  REQUIRE(object.has_value());
  return object->image;
}

}  // namespace

TEST_CASE("kernels: convolution and product as the generator writes them, for every target") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  for (const char* const text : {direct_conv, shared_gemm}) {
    for (const Target target : {Target::gfx1030, Target::gfx1100, Target::gfx1101, Target::gfx1102, Target::gfx1103,
                                Target::gfx1151, Target::gfx1200}) {
      INFO(to_string(target) << "\n" << text);
      KernelSource source = opencl(text);
      source.constants = {{"WIDTH", "14"}, {"HEIGHT", "14"}};
      const auto compiled = compile_kernel(*clang, source, "generated.cl", target, soon());
      INFO((compiled ? compiled->said : compiled.error().text()));
      REQUIRE(compiled.has_value());
      CHECK(compiled->said.empty());
      const auto object = read_code_object(compiled->object);
      REQUIRE(object.has_value());
      const KernelCode& kernel = object->kernels.at(0);
      CHECK(check_dispatch(*object, kernel).ok() == is_dispatched(target));
      CHECK(kernel.required_workgroup[0] * kernel.required_workgroup[1] == 64);
      CHECK(kernel.lds_bytes == (text == shared_gemm ? 256u : 0u));
      // Buffers alone: nothing hidden is needed where the text tells its workgroup.
      for (const KernelArgument& argument : kernel.arguments) CHECK(argument.kind == ArgumentKind::global_buffer);
      CHECK(buffer_names(kernel).back() == (text == shared_gemm ? "c" : "y"));
    }
  }
}

TEST_CASE("kernels: the whole prelude compiles, and needs nothing that is not offered") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  for (const std::string& text :
       {std::string(many_functions), "#define JOIN(a, b) a##b\n" + std::string(many_functions)}) {
    for (const Target target : {Target::gfx1030, Target::gfx1100}) {
      const auto compiled = compile_kernel(*clang, opencl(text), "many.cl", target, soon());
      INFO((compiled ? compiled->said : compiled.error().text()));
      REQUIRE(compiled.has_value());
      CHECK(compiled->said.empty());
      const auto object = read_code_object(compiled->object);
      REQUIRE(object.has_value());
      CHECK(check_dispatch(*object, object->kernels.at(0)).text() == "ok");
    }
  }
}

TEST_CASE("kernels: a workgroup that the text does not tell is told by hidden arguments") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto compiled = compile_kernel(
      *clang, opencl("__kernel void k(__global int* y) { y[get_global_id(0)] = (int)get_global_size(0); }", "main"),
      "k", Target::gfx1100, soon());
  REQUIRE(compiled.has_value());
  const auto object = read_code_object(compiled->object);
  REQUIRE(object.has_value());
  const KernelCode& kernel = object->kernels.at(0);
  CHECK(kernel.required_workgroup == std::array<std::uint32_t, 3>{});
  CHECK(check_dispatch(*object, kernel).text() == "ok");
  CHECK(std::count_if(kernel.arguments.begin(), kernel.arguments.end(), [](const KernelArgument& argument) {
          return argument.kind == ArgumentKind::hidden_group_size_x;
        }) == 1);
}

TEST_CASE("kernels: a private array needs neither local memory nor a dispatch packet") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const std::string body =
      "  uchar a[24]; int s = 0;\n"
      "  for (int k = 0; k < 24; k++) a[k * 7 % 24] = x[k];\n"
      "  for (int k = 0; k < x[0]; k++) s += a[k * x[k] % 24];\n"
      "  y[get_global_id(0)] = s;\n}\n";
  for (const char* const attribute : {"", "__attribute__((reqd_work_group_size(64, 1, 1))) "}) {
    for (const Target target : {Target::gfx1030, Target::gfx1100}) {
      const auto compiled = compile_kernel(
          *clang,
          opencl("kernel " + std::string(attribute) + "void k(global const uchar* x, global int* y) {\n" + body, "k"),
          "k.cl", target, soon());
      INFO((compiled ? compiled->said : compiled.error().text()));
      REQUIRE(compiled.has_value());
      const auto object = read_code_object(compiled->object);
      REQUIRE(object.has_value());
      CHECK(check_dispatch(*object, object->kernels.at(0)).text() == "ok");
      CHECK(object->kernels.at(0).lds_bytes == 0);
    }
  }
}

TEST_CASE("kernels: a product and its sum round once within an expression, twice across statements") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto same = [&clang](const char* one, const char* other) {
    return code_of(*clang, one) == code_of(*clang, other);
  };
  CHECK(same("y[i] = x[i] * x[i + 1] + y[i];", "y[i] = fma(x[i], x[i + 1], y[i]);"));
  CHECK(same("float sum = y[i]; sum += x[i] * x[i + 1]; y[i] = sum;",
             "float sum = y[i]; sum = fma(x[i], x[i + 1], sum); y[i] = sum;"));
  CHECK_FALSE(same("float p = x[i] * x[i + 1]; y[i] = p + y[i];", "y[i] = fma(x[i], x[i + 1], y[i]);"));
}

TEST_CASE("kernels: calls with doubles alone are done in double, also where literals are the only doubles") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto same = [&clang](const char* one, const char* other) {
    return code_of(*clang, one) == code_of(*clang, other);
  };
  CHECK(same("y[i] = floor(x[i] * 0.1);", "double a = x[i] * 0.1; y[i] = floor(a);"));
  CHECK(same("y[i] = max(x[i] * 0.1, 0.0);", "double a = x[i] * 0.1; y[i] = max(a, 0.0);"));
  CHECK(same("y[i] = clamp(x[i] * 0.1, 0.0, 1.0);", "double a = x[i] * 0.1; y[i] = clamp(a, 0.0, 1.0);"));
  CHECK(same("y[i] = x[i] * sqrt(2.0);", "double root = sqrt(2.0); y[i] = x[i] * root;"));
  CHECK(same("y[i] = fma(x[i] * 0.1, 0.5, 1.0);", "double a = x[i] * 0.1; y[i] = fma(a, 0.5, 1.0);"));
  // Beside another type a double becomes that one, and integers become float.
  CHECK(same("y[i] = fmax(x[i], 0.0) + max(1.0, x[i]) + clamp(x[i], 0.0, 4.0) + mad(x[i], 2.0, 0.5);",
             "y[i] = fmax(x[i], 0.0f) + max(1.0f, x[i]) + clamp(x[i], 0.0f, 4.0f) + mad(x[i], 2.0f, 0.5f);"));
  CHECK(same("y[i] = max(i, 3.0) + clamp(i, 0.0, 255.0);", "y[i] = max(i, 3) + clamp(i, 0, 255);"));
  CHECK(same("y[i] = sqrt(i) + fmax(i, 0.5);", "y[i] = sqrt((float)i) + fmax((float)i, 0.5f);"));
  CHECK(same("y[i] = fmax(x[i], 0.0); /* no double */", "y[i] = fmax(x[i], 0.0f);"));
  const auto said = [&clang](const std::string& value) {
    const std::string text = "kernel void k(global int* y) { y[0] = " + value + "; }\n";
    const auto compiled = compile_kernel(*clang, opencl(text, "k"), "k.cl", Target::gfx1100, soon());
    return compiled ? compiled->said : compiled.error().text();
  };
  CHECK_THAT(said("max(y[1], 0.5)"), Contains("k.cl:1:") && Contains("a double that is no whole number becomes an "));
  CHECK(said("clamp(y[1], 0.0, 255.0)").empty());
}

TEST_CASE("kernels: abs() of the least integer is not undefined, and every type of integers has one") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  CHECK_FALSE(code_of(*clang, "y[i] = abs((int)x[i]) >= 2147483648u;") == code_of(*clang, "y[i] = 0;"));
  std::string body;
  for (const std::string type : {"char", "short", "int", "long"}) {
    for (const char* const width : {"", "2", "3", "4", "8", "16"}) {
      const std::string of_sign = type + width, result = "u" + of_sign;
      for (const std::string& argument : {of_sign, result}) {
        body += "*(global " + result + "*)y = abs(*(global const " + argument + "*)x); y += 64;\n";
      }
    }
  }
  CHECK_FALSE(code_of(*clang, body).empty());
}

TEST_CASE("kernels: names like a conversion's are the text's own, and a conversion takes a compound literal") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const std::string text =
      "float convert_half_to_float(half h, float scale) { return h * scale; }\n"
      "int convert_and_saturate(float a, int most) { return min((int)a, most); }\n"
      "kernel void k(global float* y, global int4* n) {\n"
      "  y[0] = convert_half_to_float((half)y[1], 2.0f) + convert_and_saturate(y[2], 7);\n"
      "  n[0] = convert_int4_sat((float4){y[3], y[4], y[5], y[6]});\n"
      "}\n";
  const auto compiled = compile_kernel(*clang, opencl(text, "k"), "k.cl", Target::gfx1100, soon());
  INFO((compiled ? std::string() : compiled.error().text()));
  CHECK(compiled.has_value());
}

TEST_CASE("kernels: the text is told that it is OpenCL C 2.0, without images") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto compiled = compile_kernel(*clang,
                                       opencl("#if __OPENCL_VERSION__ != 200 || __OPENCL_C_VERSION__ != 200\n"
                                              "#error another version\n"
                                              "#endif\n"
                                              "#ifdef __IMAGE_SUPPORT__\n"
                                              "#error images\n"
                                              "#endif\n"
                                              "__kernel void k(__global int* y) { y[0] = 1; }\n",
                                              "k"),
                                       "k.cl", Target::gfx1100, soon());
  INFO((compiled ? std::string() : compiled.error().text()));
  CHECK(compiled.has_value());
}

TEST_CASE("kernels: functions are compiled as far as a kernel calls them, inline or not") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const std::string body =
      "(int a, int b) {\n"
      "  int s = 0;\n"
      "  for (int i = 0; i < a; i++) for (int j = 0; j < b; j++) s ^= i * j + (s << 1);\n"
      "  for (int i = 0; i < a; i++) for (int j = 0; j < b; j++) s += i * j ^ (s >> 1);\n"
      "  return s;\n}\n";
  const std::string kernels =
      "kernel void one(global int* y) { y[0] = mix2(y[1], y[2]); }\n"
      "kernel void two(global int* y) { y[0] = mix2(y[1], y[2]) + mix2(y[3], y[4]); }\n";
  const auto compile = [&clang](const std::string& text, const std::string& entry) {
    return compile_kernel(*clang, opencl(text, entry), "k.cl", Target::gfx1100, soon());
  };
  // The compiler is told to keep calls as calls, so that the definition is needed.
  const auto plain = compile("__attribute__((noinline)) int mix2" + body + kernels, "two");
  const auto is_inline = compile("inline __attribute__((noinline)) int mix2" + body + kernels, "two");
  INFO((is_inline ? std::string() : is_inline.error().text()));
  REQUIRE((plain && is_inline));
  const auto code = read_code_object(plain->object);
  REQUIRE(code.has_value());
  CHECK(read_code_object(is_inline->object)->image == code->image);
  const auto is_extern = compile("extern inline __attribute__((noinline)) int mix2" + body + kernels, "two");
  REQUIRE(is_extern.has_value());
  CHECK(read_code_object(is_extern->object)->image == code->image);
  REQUIRE(code->kernels.size() == 2);
  CHECK(code->kernels[0].name == "one");
  // What no kernel calls makes nothing larger.
  const auto more = compile("int unused" + body + "int mix2" + body + kernels, "one");
  const auto less = compile("int mix2" + body + kernels, "one");
  REQUIRE((more && less));
  CHECK(read_code_object(more->object)->image == read_code_object(less->object)->image);
  CHECK(compile("int add(int a);\nkernel void k(global int* y) { y[0] = add(y[1]); }\n", "k").error().text() ==
        "unsupported: k.cl: function or variable 'add' has no definition in the text");
}

TEST_CASE("kernels: the library is linked where it is called, and its absence is named") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  CHECK_FALSE(assemble(opencl(shared_gemm), "k.cl")->calls_library);
  KernelSource with_constants = opencl(direct_conv);
  with_constants.constants = {{"WIDTH", "14"}, {"HEIGHT", "14"}};
  CHECK_FALSE(assemble(with_constants, "k.cl")->calls_library);
  with_constants.constants[1].text = "sin";
  CHECK(assemble(with_constants, "k.cl")->calls_library);
  const KernelSource calling = opencl("__kernel void kiln_kernel(__global float* y) { y[0] = pow(y[1], y[2]); }");
  CHECK(assemble(calling, "k.cl")->calls_library);
  CHECK(assemble(opencl("#define POWER pow\n"), "k.cl")->calls_library);
  CHECK(assemble(opencl("int a = tgamma(1);\n"), "k.cl")->calls_library);
  // What is not seen to be a call is linked all the same, for it is undeclared without.
  const KernelSource hidden =
      opencl("#define TYPE\n__kernel void kiln_kernel(__global float* y) { TYPE sin(y[0]); y[0] = TYPE sin(y[1]); }");
  CHECK_FALSE(assemble(hidden, "k.cl")->calls_library);
  CHECK(compile_kernel(*clang, hidden, "k.cl", Target::gfx1100, soon()).has_value());
  ToolchainSettings settings;
  settings.place = CompilerPlace::child;
  settings.library = "/nowhere/at/all";
  const auto without = open_toolchain(settings, nullptr, {});
  REQUIRE(without.has_value());
  CHECK(identity_of(**without) != identity_of(*clang));
  CHECK_THAT(compile_kernel(**without, calling, "k.cl", Target::gfx1100, soon()).error().text(),
             Contains("k.cl:1:") && Contains("'pow'") && Contains("/nowhere/at/all") && Contains("rocm-device-libs"));
  CHECK(compile_kernel(**without, opencl(shared_gemm), "k.cl", Target::gfx1100, soon()).has_value());
  CHECK_THAT(compile_kernel(**without, hidden, "k.cl", Target::gfx1100, soon()).error().text(),
             Contains("'sin'") && Contains("rocm-device-libs"));
  const DeviceLibrary library = find_device_library("auto", nullptr);
  CHECK(find_device_library(library.folder.string(), nullptr).identity == library.identity);
}

TEST_CASE("kernels: the same text gives the same bytes") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  KernelSource source = opencl(direct_conv);
  source.constants = {{"WIDTH", "14"}, {"HEIGHT", "14"}};
  const auto first = compile_kernel(*clang, source, "a.cl", Target::gfx1100, soon());
  const auto second = compile_kernel(*clang, source, "a.cl", Target::gfx1100, soon());
  REQUIRE((first && second));
  CHECK(first->object == second->object);
}

TEST_CASE("kernels: errors stand with their file and line, and warnings come through") {
  const auto clang = clang_of_this_machine();
  if (clang == nullptr) return;
  const auto compile = [&clang](const std::string& text) {
    return compile_kernel(*clang, opencl(text, "main"), "dir/mine.cl", Target::gfx1100, soon());
  };
  CHECK_THAT(compile("__kernel void k() {\n  int a = ;\n}\n").error().text(),
             StartsWith("invalid_argument: dir/mine.cl:2:11: error: "));
  CHECK_THAT(compile("\n__kernel void k(__global float* y) { y[0] = mispelt(y[1]); }\n").error().text(),
             Contains("dir/mine.cl:2:45: error: use of undeclared identifier 'mispelt'"));
  CHECK_THAT(compile("#error not here\n").error().text(), Contains("dir/mine.cl:1:2: error: not here"));
  for (const char* const without : {"int a;\n", "void f(global float* y) { y[0] = 1.0f; }\n"}) {
    CHECK_THAT(compile(without).error().text(),
               StartsWith("invalid_argument") && Contains("no kernel found, expected a function declared __kernel"));
  }
  CHECK_THAT(
      compile("global int first = 1, second[3] = {2};\n"
              "kernel void k(global int* y) { y[0] = first++ + second[y[1]]++; }\n")
          .error()
          .text(),
      Equals("unsupported: dir/mine.cl: variables 'first', 'second' outside kernels can be written by a kernel; only "
             "constant variables are supported. Pass the variables as bindings"));
  CHECK_THAT(compile("global int counter;\nkernel void k(global int* y) { y[0] = counter++; }\n").error().text(),
             Contains("mine.cl: variable 'counter' outside kernels can be written by a kernel; only constant "
                      "variables are supported. Pass the variable as a binding"));
  CHECK(compile("__attribute__((reqd_work_group_size(2048, 1, 1))) kernel void k(global int* y) { y[0] = 1; }\n")
            .error()
            .text() ==
        "unsupported: dir/mine.cl: kernel 'k': workgroup has 2048 x 1 x 1 work-items, expected at most 1024");
  const auto warned = compile("#warning mind\n__kernel void k() {}\n");
  REQUIRE(warned.has_value());
  CHECK_THAT(warned->said, Contains("dir/mine.cl:1:2: warning: mind"));
  const auto wide = compile("#warning mind\n__kernel void k(__global ulong* y) { y[0] = y[1] * 3ULL; }\n");
  REQUIRE(wide.has_value());
  CHECK_THAT(wide->said, StartsWith("dir/mine.cl: warning: 'ULL' of 3ULL means 128 bits in OpenCL C: write UL\n") &&
                             Contains("warning: mind"));
  CHECK_THAT(compile("__kernel void a() {}\n__kernel void b() {}\n").error().text(),
             Contains("the text has several kernels, a and b: choose one with entry = \"a\""));
  CHECK_THAT(
      compile_kernel(*clang, opencl("kernel void a() {}\nkernel void b() {}\n", "c"), "k.cl", Target::gfx1100, soon())
          .error()
          .text(),
      Contains("entry 'c' is not a kernel of the text: expected one of a, b"));
}

TEST_CASE("kernels: compiled ahead of time, with the facts in words") {
  if (clang_of_this_machine() == nullptr) return;
  ToolchainSettings settings;
  settings.place = CompilerPlace::child;
  ClangAheadCompiler ahead(settings, {});
  CHECK(ahead.targets().front() == "gfx1030");
  CHECK(ahead.targets().back() == "gfx1201");
  CHECK(ahead.targets().size() == 10);
  const std::string text = "__kernel void k(__global float* y) { y[get_local_id(0)] = 1.0f; }\n";
  const auto program = ahead.compile({text, "k.cl", "gfx1100"});
  REQUIRE(program.has_value());
  CHECK(program->extension == "co");
  CHECK(program->binary.format == "amdgpu:gfx1100:code-object");
  CHECK(read_code_object(program->binary.bytes).has_value());
  REQUIRE(program->kernels.size() == 1);
  CHECK(program->kernels[0].name == "k");
  CHECK(program->kernels[0].facts.front() == std::pair<std::string, std::string>("wave", "32 lanes"));
  const auto recursive =
      ahead.compile({"int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
                     "kernel void r(global int* y) { y[0] = f(y[1]); }\n" +
                         text,
                     "k.cl", "gfx1100"});
  REQUIRE((recursive && recursive->kernels.size() == 2));
  CHECK(recursive->kernels[0].facts.back().second != recursive->kernels[1].facts.back().second);
  CHECK(recursive->kernels[1].facts.back() ==
        std::pair<std::string, std::string>("dispatch",
                                            "k.cl: function 'f' calls itself; OpenCL C does not support recursion"));
  CHECK(ahead.compile({text, "k.cl", "gfx906"}).error().text() ==
        "invalid_argument: target 'gfx906': expected one of " + target_names());
  CHECK_THAT(ahead.compile({"__kernel void k( {}\n", "k.cl", "gfx1201"}).error().text(), Contains("k.cl:1:18: error"));
  // As read_kernel_text() marks what it includes: string 0 is the file itself.
  const std::string included = "#line 1 \"" + line_marker(1) + "\"\nint wrong() { return ; 1 }\n";
  CHECK_THAT(ahead.compile({included + text, "k.cl", "gfx1100", {"parts/w.h"}}).error().text(),
             Contains("parts/w.h:1:25: error"));
}

TEST_CASE("kernels: a device that only builds gives the bytes of a compile, loads them, and runs nothing") {
  if (clang_of_this_machine() == nullptr) return;
  ToolchainSettings settings;
  ClangAheadCompiler ahead(settings, {});
  const auto device = ahead.open("gfx1032");
  REQUIRE(device.has_value());
  const DeviceInfo& info = (*device)->info();
  CHECK(info.id == "amdgpu:gfx1032");
  CHECK(info.device_identity ==
        std::vector<std::pair<std::string, std::string>>{{"vendor", "AMD"}, {"isa", "gfx1032"}, {"target", "gfx1030"}});
  KernelSource source = opencl("__kernel void k(__global float* y) { y[get_local_id(0)] = 1.0f; }\n", "k");
  source.workgroup = {64, 1, 1};
  source.bindings = {Access::write};
  const auto program = (*device)->build(source);
  REQUIRE(program.has_value());
  const auto binary = (*device)->serialize(**program);
  REQUIRE(binary.has_value());
  CHECK(binary->format == "amdgpu:gfx1030:v5");
  CHECK((*device)->load(source, *binary).has_value());
  ProgramBinary altered = *binary;
  altered.bytes.back() ^= std::byte{1};
  CHECK((*device)->load(source, altered).error().code == StatusCode::corrupt);
  source.bindings.push_back(Access::read);
  CHECK((*device)->build(source).error().code == StatusCode::invalid_argument);

  PassLaunch launch{program->get(), {}, PassLaunch::nothing};
  const auto nothing = (*device)->submit({std::span(&launch, 1)});
  REQUIRE(nothing.has_value());
  CHECK((*device)->wait(*nothing, soon()).has_value());
  CHECK((*device)->wait(*nothing + 1, soon()).error().code == StatusCode::invalid_argument);
  launch.grid = {1, 1, 1};
  CHECK((*device)->submit({std::span(&launch, 1)}).error().code == StatusCode::unsupported);
  CHECK((*device)->create_buffer({}).error().code == StatusCode::unsupported);
  CHECK(ahead.open("gfx1200").error().code == StatusCode::unsupported);
}

}  // namespace kiln::amdgpu_pm4
