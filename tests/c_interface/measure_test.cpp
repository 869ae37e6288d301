// Figures of docs/measurements/c-interface.md: kiln_test_c_interface "[measure]". Not part of a run of all tests.
#include "c_interface/cache.hpp"
#include "c_interface/runtime.hpp"
#include "c_interface/store.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <cstdio>

namespace kiln::test {
namespace {

// The fastest of 200 short rounds, in nanoseconds a call: other work of the machine does not count.
template <class Work>
double fastest_ns(int calls, const Work& work) {
  double fastest = 1e18;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t start = now_ns();
    for (int call = 0; call < calls; ++call) work();
    fastest = std::min(fastest, static_cast<double>(now_ns() - start) / calls);
  }
  return fastest;
}

TEST_CASE("measure: a memory hit by a finished key, through C and through C++", "[.][measure]") {
  const StoreFolder store;
  TextCompiler text;
  const auto cache = store.open();
  const Key key = key_of(cache.get(), "hot");
  REQUIRE(text.get(cache.get(), key.get()) == "compiled hot/3");
  const kiln_compiler compiler = text.compiler();
  ProgramCache& programs = *cache->programs;
  std::uintptr_t sum = 0;
  kiln_found found{};
  const double cpp_guard = fastest_ns(5000, [&] {
    const Guard guard = programs.enter();
    sum += reinterpret_cast<std::uintptr_t>(programs.find(key->key.digest, *key->device, guard));
  });
  const double c_guard = fastest_ns(5000, [&] {
    kiln_guard guard = kiln_cache_enter(cache.get());
    if (kiln_cache_find(cache.get(), key.get(), &guard, &found) != 0)
      sum += reinterpret_cast<std::uintptr_t>(found.object);
    kiln_guard_leave(&guard);
  });
  kiln_guard guard = kiln_cache_enter(cache.get());
  const Guard inner = programs.enter();
  const double cpp_find = fastest_ns(
      5000, [&] { sum += reinterpret_cast<std::uintptr_t>(programs.find(key->key.digest, *key->device, inner)); });
  const double c_find = fastest_ns(5000, [&] {
    if (kiln_cache_find(cache.get(), key.get(), &guard, &found) != 0)
      sum += reinterpret_cast<std::uintptr_t>(found.object);
  });
  kiln_guard_leave(&guard);
  const c_interface::CallbackSource source(key->key, compiler);
  const double cpp_handle = fastest_ns(5000, [&] {
    sum += reinterpret_cast<std::uintptr_t>(programs.get_or_build(key->key, source, *key->device)->program.get());
  });
  const double c_handle = fastest_ns(5000, [&] {
    kiln_program* program = nullptr;
    kiln_status_free(kiln_cache_get_or_build(cache.get(), key.get(), &compiler, &program));
    sum += reinterpret_cast<std::uintptr_t>(kiln_program_object(program));
    kiln_program_free(program);
  });
  std::printf("find within a guard: C++ %.1f ns, C %.1f ns\n", cpp_find, c_find);
  std::printf("enter, find, leave:  C++ %.1f ns, C %.1f ns\n", cpp_guard, c_guard);
  std::printf("into a handle:       C++ %.1f ns, C %.1f ns\n", cpp_handle, c_handle);
  CHECK(sum != 0);
}

TEST_CASE("measure: a run of a small gemm on the CPU, through C and through C++", "[.][measure]") {
  const StoreFolder folder;
  const kiln_cache_options options = folder.options();
  kiln_runtime* runtime = nullptr;
  must(kiln_open(&options, &runtime));
  kiln_job* job = nullptr;
  must(kiln_job_create(runtime, "small", &job));
  struct alignas(64) Line {
    float values[16];
  } a{}, b{}, c{};
  const std::int64_t shape[] = {4, 4};
  const kiln_tensor ta = kiln_tensor_of(a.values, KILN_F32, 2, shape),
                    tb = kiln_tensor_of(b.values, KILN_F32, 2, shape),
                    tc = kiln_tensor_of(c.values, KILN_F32, 2, shape);
  must(kiln_job_gemm(job, &ta, &tb, nullptr, 0, &tc));
  must(kiln_job_device(job, "cpu"));
  must(kiln_job_run(job));
  const double cpp = fastest_ns(20, [&] { static_cast<void>(runtime->runtime->run(job->request)); });
  const double c_run = fastest_ns(20, [&] { kiln_status_free(kiln_job_run(job)); });
  std::printf("a run: C++ %.2f us, C %.2f us\n", cpp / 1e3, c_run / 1e3);
  kiln_job_free(job);
  kiln_close(runtime);
}

}  // namespace
}  // namespace kiln::test
