// What a program is for, in words: short, and nothing that differs is left out that people ask for.
#include "runtime/planner.hpp"

#include <catch2/catch.hpp>

using namespace kiln;

TEST_CASE("runtime::program_purpose: a convolution says its shape, and of the rest what is unusual") {
  Conv2dSpec spec;
  spec.c = 128, spec.h = 28, spec.w = 30, spec.k = 256, spec.r = 3, spec.s = 5;
  ProgramPurpose purpose = purpose_of(spec, "direct/plain");
  CHECK(purpose.operation == "conv2d");
  CHECK(purpose.shape == "1x128x28x30 k256 3x5");
  CHECK(purpose.variant == "direct/plain");
  spec.stride_y = spec.stride_x = 2;
  spec.pad_y = 1, spec.pad_x = 2;
  spec.dilation_x = 3;
  spec.groups = 128;
  spec.activation = Activation::relu;
  CHECK(purpose_of(spec, "").shape == "1x128x28x30 k256 3x5 stride 2 pad 1x2 dilation 1x3 groups 128 relu");
}

TEST_CASE("runtime::program_purpose: a product says its sizes, a user's kernel its file and grid") {
  CHECK(purpose_of(GemmSpec{64, 32, 16}, "tiled").shape == "m64 n32 k16");
  UserKernelSpec kernel;
  kernel.grid = {16, 2, 1};
  CHECK(purpose_of(kernel, "").operation == "kernel");
  CHECK(purpose_of(kernel, "").shape == "main grid 16x2x1");  // of no file
  kernel.path = "/somewhere/of the user's/saxpy.comp";
  CHECK(purpose_of(kernel, "").shape == "saxpy.comp grid 16x2x1");
}
