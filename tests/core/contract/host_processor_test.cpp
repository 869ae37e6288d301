#include <kiln/host_processor.hpp>

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstdio>
#include <string>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

TEST_CASE("host processor: all processors count, also those that the calling thread may not use") {
  const unsigned all = host_processors();
  CHECK(all >= host_cores());
  CHECK(all == static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF)));
}

#if defined(__x86_64__)
TEST_CASE("host processor: the instruction sets are what CPUID answers, but for what the system switches on") {
  unsigned words[4] = {};
  char extra = 0;
  const std::string text = host_instructions();
  REQUIRE(std::sscanf(text.c_str(), "%x %x %x %x%c", &words[0], &words[1], &words[2], &words[3], &extra) == 4);
  CHECK(text == host_instructions());
  unsigned a = 0, b = 0, c = 0, d = 0;
  REQUIRE(__get_cpuid(1, &a, &b, &c, &d) != 0);
  CHECK(words[0] == (c & 0xf7ffffffu));
  CHECK(words[1] == d);
  CHECK((words[1] & 1u << 26) != 0);  // SSE2, which every such processor has
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    CHECK(words[2] == b);
    CHECK(words[3] == (c & 0xffffffefu));
  }
}
#endif
