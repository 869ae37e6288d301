// Specialization constants: the job's constants are their values.
#include <cstring>

#include "vulkan/kernel_under_test.hpp"

namespace kiln::vulkan {
namespace {

constexpr const char* declared =
    "layout(constant_id = 0) const int FIRST = 1; layout(constant_id = 1) const float GAIN = 0.5;\n"
    "layout(constant_id = 2) const bool ON = false; layout(constant_id = 3) const uint COUNT = 2;\n"
    "shared float kept[COUNT * 2];\n";
const std::string half =
    "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\nlayout(local_size_x = 64) in;\n"
    "layout(constant_id = 9) const float16_t HALF = 1.5hf;\n";
const std::string all = "FIRST + GAIN + (ON ? 100 : 0) + kept.length() * 1000";

}  // namespace

TEST_CASE("vulkan: specialization constants have the values of the job's constants",
          "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  check(Kernel(declared, all), {4001.5F});
  check(Kernel(declared, all).constant("FIRST", "-7"), {3993.5F});
  check(Kernel(declared, all).constant("GAIN", "0.25").constant("ON", "(1 == 1)"), {4101.25F});
  check(Kernel(declared, all).constant("GAIN", "3").constant("COUNT", "0x5u"), {10004});
  check(Kernel(declared, all + " + MACRO").constant("MACRO", "20").constant("FIRST", "2"), {4022.5F});
  check(Kernel(declared, "1").constant("FIRST", "2"), {1});  // none is used
  check(Kernel("layout(constant_id = 9) const double WIDE = 1.0;\n", "WIDE").constant("WIDE", "2.5"), {2.5F});
  check(Kernel(half, "HALF").constant("HALF", "-0.1"), {-0.0999755859375F});
}

TEST_CASE("vulkan: an array's length may be computed from a specialization constant of any integer type",
          "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  const auto kernel = [](const std::string& type, const std::string& length) {
    return Kernel(
        "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\nlayout(local_size_x = 64) in;\n"
        "layout(constant_id = 0) const " +
            type + " N = " + type + "(2);\nshared float kept[" + length + "];\n",
        "(kept[0] = 1.0, barrier(), kept[0] + kept.length() * 10)");
  };
  check(kernel("int64_t", "int(N)"), {21});
  check(kernel("int64_t", "int(N)").constant("N", "5"), {51});
  check(kernel("int64_t", "int(-N)").constant("N", "-6"), {61});
  check(kernel("int64_t", "int(N * N - N / 2L)").constant("N", "4"), {141});
  check(kernel("int64_t", "N > 5000000000L ? int(N >> 32) : 7").constant("N", "0x900000000"), {91});
  check(kernel("uint64_t", "uint(N)"), {21});
  check(kernel("uint64_t", "uint(N * N - N / 2UL)").constant("N", "4"), {141});
  check(kernel("uint16_t", "uint(N) / 100").constant("N", "60000"), {6001});
  check(kernel("uint8_t", "uint(uint64_t(N) + 1UL)").constant("N", "255"), {2561});
  check(kernel("uint64_t", "N > 5000000000UL ? 9 : 7").constant("N", "0x900000000"), {91});
  refuse(kernel("int64_t", "int(N)").constant("N", "1000000"), "4000000 bytes of shared memory, the device has");
  check(kernel("int16_t", "int(-N) / 100").constant("N", "-600"), {61});
  check(kernel("int8_t", "int(N) + 138").constant("N", "-128"), {101});
}

TEST_CASE("vulkan: a declaration that the text leaves out makes no specialization constant",
          "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  const std::string guarded =
      "// layout(constant_id = 0) const int FIRST = 1;\n"
      "#if 0\nlayout(constant_id = 0) const int FIRST = 1;\n#endif\n";
  check(Kernel(guarded, "FIRST").constant("FIRST", "5"), {5});
  const std::string or_macro = "#ifndef FIRST\nlayout(constant_id = 0) const int FIRST = 1;\n#endif\n";
  check(Kernel(or_macro, "FIRST").constant("FIRST", "5"), {5});
  check(Kernel(or_macro, "FIRST"), {1});
}

TEST_CASE("vulkan: a constant in the value or the number of a specialization constant is a macro",
          "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  const std::string text = "layout(constant_id = ID) const int COUNT = WIDTH * 2;\n";
  check(Kernel(text, "COUNT").constant("WIDTH", "8").constant("ID", "3"), {16});
  check(Kernel(text, "COUNT").constant("WIDTH", "8").constant("ID", "3").constant("COUNT", "5"), {5});
  const std::string compared = "layout(constant_id = 0) const bool WIDE = (N == 3);\n";
  check(Kernel(compared, "WIDE ? 7 : 1").constant("N", "3"), {7});
  check(Kernel(compared, "WIDE ? 7 : 1").constant("N", "2"), {1});
  check(Kernel(compared, "WIDE ? 7 : 1").constant("N", "2").constant("WIDE", "(1 == 1)"), {7});
}

TEST_CASE("vulkan: a macro of the text may declare a specialization constant", "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  const std::string by_macro =
      "#define SPEC(id, name, value) layout(constant_id = id) const int name = value\n"
      "SPEC(0, FIRST, 1);\n#if MORE\nSPEC(1, SECOND, 2);\n#else\nconst int SECOND = 20;\n#endif\n";
  check(Kernel(by_macro, "FIRST + SECOND").constant("FIRST", "5").constant("MORE", "0"), {25});
  check(Kernel(by_macro, "FIRST + SECOND").constant("SECOND", "7").constant("MORE", "1"), {8});
}

TEST_CASE("vulkan: a value that a specialization constant cannot have is refused",
          "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  refuse(Kernel(declared, all).constant("FIRST", "2.5"), "constant FIRST: found 2.5, expected an integer of 32 bits");
  refuse(Kernel(declared, all).constant("FIRST", "2147483648"), "expected an integer of 32 bits");
  refuse(Kernel(declared, all).constant("COUNT", "-1"), "expected an unsigned integer of 32 bits");
  refuse(Kernel(declared, all).constant("ON", "2"), "expected true or false for a bool");
  refuse(Kernel(declared, all).constant("GAIN", "x"), "constant GAIN: found x, expected a number");
  refuse(Kernel(declared, all).constant("GAIN", "1e300"), "constant GAIN: found 1e300");
  refuse(Kernel(declared, all).constant("GAIN", "(1 == 1)"), "constant GAIN: found true, expected a number");
  refuse(Kernel(half, "HALF").constant("HALF", "65505"), "constant HALF: found 65505");
  refuse(Kernel(declared, "kept[i] = 1.0").constant("COUNT", "1000000"), "bytes of shared memory, the device has");
}

TEST_CASE("vulkan: the job's workgroup is that of local_size_x_id", "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  const std::string sized = "#version 450\nlayout(local_size_x_id = 3, local_size_y = 1) in;\n";
  check(Kernel(sized, "gl_WorkGroupSize.x").workgroup({16, 1, 1}), {16, 16, 16});
  check(Kernel(sized, "gl_WorkGroupSize.x").workgroup({64, 1, 1}), {64});
  refuse(Kernel(sized, "gl_WorkGroupSize.x").workgroup({16, 2, 1}), "declares a workgroup of 16x1x1, expected 16x2x1");
  check(Kernel("#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
               "layout(local_size_x = 64, local_size_x_id = 0) in;\n"
               "const uint64_t n = uint64_t(gl_WorkGroupSize.x);\n",
               "n")
            .workgroup({32, 1, 1}),
        {32, 32});
  check(Kernel("#version 450\nlayout(local_size_x_id = 3) in;\nlayout(constant_id = 3) const int SIZE = 4;\n",
               "SIZE * 100 + gl_WorkGroupSize.x")
            .constant("SIZE", "8"),
        {808});
}

TEST_CASE("vulkan: one specialization constant that is declared with two values must be given",
          "[vulkan][interface][specialization]") {
  if (!Vulkan::instance().usable()) return;
  const Kernel two("#version 450\nlayout(local_size_x_id = 3) in;\nlayout(constant_id = 3) const int SIZE = 4;\n",
                   "SIZE * 100 + gl_WorkGroupSize.x");
  refuse(Kernel(two), "specialization constant 3 is declared as");
  refuse(Kernel(two), "SIZE = 4");
  refuse(Kernel(two), "gl_WorkGroupSize[0] = 1");
  refuse(Kernel(two), "Give constants = { SIZE = … }");
  check(Kernel(two).workgroup({8, 1, 1}), {808});
  check(Kernel(two).constant("SIZE", "1"), {101});
  check(Kernel("#version 450\nlayout(local_size_x = 4, local_size_x_id = 3) in;\n"
               "layout(constant_id = 3) const int SIZE = 4;\n",
               "SIZE * 100 + gl_WorkGroupSize.x"),
        {404});
}

TEST_CASE("vulkan: constants of a SPIR-V module have its names, or their numbers", "[vulkan][spirv][specialization]") {
  if (!Vulkan::instance().usable()) return;
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::string("#version 450\nlayout(local_size_x = 1) in;\n") + declared +
                "layout(binding = 0) writeonly buffer Y { float y; };\nvoid main() { y = " + all + "; }\n";
  const auto module_of = [&](bool named) {
    const std::string whole = support::module_of(source);
    std::string module = whole.substr(0, 20);
    for (std::size_t at = 20; at < whole.size();) {
      std::uint32_t word = 0;
      std::memcpy(&word, whole.data() + at, sizeof word);
      if (named || (word & 0xffffU) != 5) module += whole.substr(at, std::size_t{word >> 16} * 4);  // OpName
      at += std::size_t{word >> 16} * 4;
    }
    return module;
  };
  UserKernelSpec kernel;
  kernel.dialect = Dialect::code_object;
  kernel.path = "mine.spv";
  kernel.text = module_of(true);
  kernel.bindings.resize(1);
  kernel.bindings[0].access = Access::write;
  kernel.bindings[0].bytes = 4;
  const auto run = [&](std::vector<Define> constants) {
    kernel.constants = std::move(constants);
    CHECK(validate(KernelSpec(kernel)).ok());
    std::vector<std::vector<std::byte>> tensors{std::vector<std::byte>(4)};
    Status status = support::run_kernel(kernel, tensors);
    return std::pair(status, values_of_bytes<float>(tensors[0])[0]);
  };
  CHECK(run({}).second == 4001.5F);
  CHECK(run({{"FIRST", "5"}, {"ON", "(1 == 1)"}}).second == 4105.5F);
  CHECK_THAT(run({{"NONE", "5"}}).first.message, Catch::Contains("constant NONE: the module has no such") &&
                                                     Catch::Contains("(it has ") && Catch::Contains("FIRST"));
  kernel.text = module_of(false);
  CHECK(run({{"constant0", "5"}, {"constant3", "4"}}).second == 8005.5F);
}

}  // namespace kiln::vulkan
