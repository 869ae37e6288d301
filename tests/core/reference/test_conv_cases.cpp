#include "support/conv_cases.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

using namespace kiln;

TEST_CASE("conv cases: the workload tables", "[conv_cases]") {
  const auto resnet = support::workload_cases("resnet50");
  REQUIRE(resnet.size() == 23);
  CHECK(resnet.front().name == "conv1");
  CHECK(canonical_text(resnet.front().spec) ==
        "conv2d n=1 c=3 h=224 w=224 k=64 r=7 s=7 stride_y=2 stride_x=2 pad_y=3 pad_x=3 dilation_y=1 dilation_x=1 "
        "groups=1 "
        "dtype=f32 layout=nchw bias=0 activation=none accuracy=direct");
  CHECK(support::workload_cases("mobilenet_v2").size() == 24);
  CHECK(support::workload_cases("vgg16").size() == 9);
  CHECK(support::workload_cases("prior_system").size() == 4);
  CHECK_THROWS_WITH(support::workload_cases("none"), Catch::Contains("none.csv"));
}

TEST_CASE("conv cases: random ones are valid, within the limit, the same each time, and cover what they claim",
          "[conv_cases]") {
  const auto cases = support::random_cases(300, 7, 1 << 20);
  REQUIRE(cases.size() == 300);
  CHECK(cases == support::random_cases(300, 7, 1 << 20));
  CHECK(cases != support::random_cases(300, 8, 1 << 20));
  const auto some = [&](const char* what, auto holds) {
    INFO(what);
    CHECK(std::count_if(cases.begin(), cases.end(), holds) >= 10);
  };
  for (const Conv2dSpec& spec : cases) {
    CHECK(validate(spec).ok());
    CHECK(flops(spec) / 2 <= 1 << 20);
  }
  using Spec = const Conv2dSpec&;
  some("batch", [](Spec s) { return s.n > 1; });
  some("odd sizes", [](Spec s) { return s.h % 2 == 1 && s.w % 2 == 1 && s.h != s.w; });
  some("uneven stride", [](Spec s) { return s.stride_y != s.stride_x; });
  some("uneven pad", [](Spec s) { return s.pad_y != s.pad_x; });
  some("dilation", [](Spec s) { return s.dilation_y > 1 || s.dilation_x > 1; });
  some("groups", [](Spec s) { return s.groups > 1 && s.groups < s.c; });
  some("depthwise", [](Spec s) { return s.groups > 1 && s.groups == s.c; });
  some("depthwise with a multiplier", [](Spec s) { return s.groups > 1 && s.groups == s.c && s.k > s.c; });
  some("1x1", [](Spec s) { return s.r == 1 && s.s == 1; });
  some("uneven kernel", [](Spec s) { return s.r != s.s; });
  some("kernel as large as the input",
       [](Spec s) { return s.out_h() == 1 && s.out_w() == 1 && s.r == s.h + 2 * s.pad_y; });
  some("bias and relu", [](Spec s) { return s.bias == Bias::per_channel && s.activation == Activation::relu; });
  some("neither", [](Spec s) { return s.bias == Bias::none && s.activation == Activation::none; });
}
