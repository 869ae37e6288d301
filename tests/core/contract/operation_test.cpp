// The table of operations.
#include <kiln/operation.hpp>

#include <catch2/catch.hpp>

using namespace kiln;

TEST_CASE("operations: the table has one entry for each spec, found by spec and by name", "[contract]") {
  const std::vector<std::pair<KernelSpec, std::string>> specs = {
      {Conv2dSpec{}, "conv2d"}, {GemmSpec{}, "gemm"}, {UserKernelSpec{}, "kernel"}};
  CHECK(operations().size() == specs.size());
  for (const auto& [spec, name] : specs) {
    INFO(name);
    CHECK(operation_of(spec).name == name);
    CHECK(operation(spec) == name);
    CHECK(operation_named(name) == &operation_of(spec));
    CHECK(operation_of(spec).is_layer == (name != "kernel"));
  }
  CHECK(operation_named("conv3d") == nullptr);
}

TEST_CASE("operations: operands, shape and family of layers", "[contract]") {
  Conv2dSpec conv;
  conv.n = 2, conv.c = 4, conv.h = 9, conv.w = 11, conv.k = 8, conv.r = 3, conv.s = 2;
  conv.stride_y = 2, conv.groups = 2, conv.bias = Bias::per_channel, conv.activation = Activation::relu;
  const std::vector<Operand> operands = operation_of(conv).operands(conv);
  REQUIRE(operands.size() == 4);
  CHECK(operands[0].shape == Shape{2, 4, 9, 11});
  CHECK(operands[1].shape == Shape{8, 2, 3, 2});
  CHECK(operands[2].name == "bias");
  CHECK(operands[2].bytes == 32);
  CHECK(operands[3].role == TensorRole::output);
  CHECK(operands[3].shape == Shape{2, 8, 4, 10});
  CHECK(operation_of(conv).shape(conv) == "2x4x9x11 k8 3x2 stride 2x1 groups 2 relu");
  CHECK(operation_of(conv).family(conv) == "3x2 grouped direct f32");
  CHECK(operation_of(conv).saving(conv) == 1);
  conv.pad_y = 1, conv.stride_y = 1, conv.activation = Activation::none;
  CHECK(operation_of(conv).saving(conv) == Approx(27.0 / 25));  // two of 27 row taps lie outside
  GemmSpec gemm{5, 6, 7};
  CHECK(operation_of(gemm).operands(gemm)[1].shape == Shape{7, 6});
  CHECK(operation_of(gemm).shape(gemm) == "m5 n6 k7");
  CHECK(operation_of(gemm).family(gemm) == "thin f32");
}

TEST_CASE("operations: a kernel's operands are its bindings that are not local, and its uniforms", "[contract]") {
  UserKernelSpec kernel;
  kernel.path = "folder/saxpy.comp", kernel.grid = {4, 2, 1};
  kernel.bindings = {{Access::read, 64}, {Access::read_write, 32, BindingKind::local}, {Access::write, 128}};
  kernel.bindings[0].shape = {16};
  kernel.uniforms = {{"gain", UserKernelSpec::Uniform::Type::number, {3}}};
  const std::vector<Operand> operands = operation_of(kernel).operands(kernel);
  REQUIRE(operands.size() == 3);
  CHECK(operands[0].shape == Shape{16});
  CHECK(operands[1].name == "binding 2");
  CHECK(operands[1].role == TensorRole::inout);
  CHECK(operands[2].bytes == 24);
  CHECK(operation_of(kernel).shape(kernel) == "saxpy.comp grid 4x2x1");
}
