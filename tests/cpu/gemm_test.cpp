#include <catch2/catch.hpp>

#include <random>

#include "cpu/cpu_under_test.hpp"

namespace kiln::cpu_test {

TEST_CASE("gemm is right, with and without bias and relu") {
  Device& device = *shared_cpu().device;
  std::mt19937 random(11);
  std::uniform_int_distribution<std::int64_t> extent(1, 97);
  for (int i = 0; i < 60; ++i) {
    GemmSpec spec{extent(random), extent(random), extent(random)};
    if (i % 7 == 0) spec.m = 1;
    if (i % 11 == 0) spec.n = 1;
    spec.bias = i % 2 == 0 ? Bias::per_channel : Bias::none;
    spec.activation = i % 3 == 0 ? Activation::relu : Activation::none;
    INFO(canonical_text(spec));
    Job job(device, spec, static_cast<std::uint64_t>(i));
    REQUIRE(job.run().ok());
    CHECK(job.difference() == "");
    job.poison();  // the run that chose is not the run that repeats
    REQUIRE(job.run().ok());
    CHECK(job.difference() == "");
  }
}

}  // namespace kiln::cpu_test
