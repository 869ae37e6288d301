#include <kiln/host_processor.hpp>

#include <sched.h>

#include <catch2/catch.hpp>

#include <thread>

using namespace kiln;

TEST_CASE("host processor: the roof is of the cores that the calling thread may use") {
  const int cores = host_cores();
  const double roof = host_roof_gflops();
  CHECK(cores >= 1);
#if defined(__x86_64__)
  CHECK(roof >= 50.0 * cores);  // SSE: 8 operations a cycle
#endif
  CHECK(roof <= 500.0 * cores);  // AVX-512: 64
  int cores_of_one = 0;
  double roof_of_one = 0;
  std::jthread([&] {
    cpu_set_t mine, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof mine, &mine);
    for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &mine)) CPU_SET(core, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
    cores_of_one = host_cores();
    roof_of_one = host_roof_gflops();
  }).join();
  CHECK(cores_of_one == 1);
  CHECK(roof_of_one * cores == Approx(roof));
}
