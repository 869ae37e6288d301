#include <catch2/catch.hpp>

#include "conformance/shape_budget.hpp"
#include "support/conv_cases.hpp"

namespace kiln::conformance {

TEST_CASE("layers are made small without changing what makes them hard") {
  for (const char* table : {"mobilenet_v2", "prior_system", "resnet50", "vgg16"}) {
    for (const support::NamedConv& layer : support::workload_cases(table)) {
      const Conv2dSpec& full = layer.spec;
      const Conv2dSpec small = within_budget(full, 1e6);
      INFO(table << " " << layer.name << ": " << canonical_text(small));
      CHECK(validate(KernelSpec(small)).ok());
      CHECK(multiply_adds(small) <= 1e6);
      CHECK(small.h >= 7);
      CHECK(small.w >= 7);
      CHECK((small.r == full.r && small.s == full.s && small.stride_y == full.stride_y && small.pad_y == full.pad_y));
      CHECK((small.groups > 1) == (full.groups > 1));
      CHECK((small.groups == small.c) == (full.groups == full.c));
      CHECK(within_budget(full, multiply_adds(full)) == full);
    }
  }
}

}  // namespace kiln::conformance
