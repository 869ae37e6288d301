// That everything is computed on the pool: OpenMP keeps the threads of a team until the thread that opened it ends, so
// a team that was ever formed shows among the process's threads.
#include <catch2/catch.hpp>

#include <omp.h>

#include <filesystem>

#include "cpu/cpu_under_test.hpp"
#include "support/in_child.hpp"

namespace kiln::cpu_test {
namespace {

std::ptrdiff_t threads_of_process() {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries("/proc/self/task"), Entries());
}

Conv2dSpec square_conv(std::int64_t c, std::int64_t extent, std::int64_t k, std::int64_t taps) {
  Conv2dSpec spec;
  spec.c = c, spec.h = spec.w = extent, spec.k = k, spec.r = spec.s = taps;
  spec.pad_y = spec.pad_x = taps / 2;
  return spec;
}

}  // namespace

#if !defined(__SANITIZE_THREAD__)  // which takes a team's meetings for races
TEST_CASE("what a team's threads would look like is seen", "[team]") {
  // In a process of its own: LLVM's OpenMP serves nobody after a hard pause.
  const test::ChildEnd end = test::in_child([]() -> std::string {
    const std::ptrdiff_t before = threads_of_process();
    int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
    members += 1;
    if (members != 3) return std::to_string(members) + " members";
    return threads_of_process() >= before + 2 ? "" : "threads of the team are not seen";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}
#endif

TEST_CASE("gemms, convolutions, reorders and packing form no OpenMP team", "[team]") {
  const OpenedCpu cpu({{"threads", std::int64_t{3}}, {"tuning_ms", std::int64_t{3}}});
  const int allowed = omp_get_max_threads();
  std::vector<KernelSpec> specs{
      GemmSpec{200, 300, 100},    GemmSpec{1, 1000, 300},    GemmSpec{300, 1, 400},
      GemmSpec{4, 4, 4},          GemmSpec{700, 700, 700},  // its constant is packed in pieces
      square_conv(64, 28, 64, 3), square_conv(3, 56, 16, 7), square_conv(128, 7, 128, 3),
      square_conv(64, 5, 96, 1),  square_conv(5, 3, 7, 3)};
  for (const std::int64_t groups : {2, 96}) {
    Conv2dSpec grouped = square_conv(96, 5, 96, 3);
    grouped.groups = groups;
    specs.emplace_back(grouped);
  }
  Conv2dSpec winograd = square_conv(32, 28, 32, 3);
  winograd.accuracy = Accuracy::winograd;
  specs.emplace_back(winograd);
  Conv2dSpec images = square_conv(3, 4, 5, 3);
  images.n = 50;
  specs.emplace_back(images);
  constexpr std::ptrdiff_t pool_threads = 2;  // beside the caller
  const std::ptrdiff_t before = threads_of_process();
  for (const KernelSpec& spec : specs) {
    INFO(canonical_text(spec));
    Job job(*cpu.device, spec, 1);
    REQUIRE(job.run().ok());
    REQUIRE(job.run().ok());
    CHECK(job.difference() == "");
    CHECK(threads_of_process() <= before + pool_threads);
  }
  CHECK(threads_of_process() <= before + pool_threads);  // one that is just ending may have been counted before
  CHECK(omp_get_max_threads() == allowed);               // what the caller set is the caller's
}

}  // namespace kiln::cpu_test
