#include "reference/summation.hpp"

#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::reference {

void parallel_for(std::int64_t count, unsigned threads, const std::function<void(std::int64_t)>& task) {
  if (threads == 0) threads = host_cores();
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    const std::int64_t wanted = std::min<std::int64_t>(threads, count) - 1;
    std::vector<std::thread> others;
    if (wanted > 0) others.reserve(static_cast<std::size_t>(wanted));
    while (static_cast<std::int64_t>(others.size()) < wanted) {
      auto other = start_thread(work);
      if (!other) break;  // fewer do the same work
      others.push_back(std::move(*other));
    }
    work();
    for (std::thread& other : others) other.join();
  }
  if (failure) std::rethrow_exception(failure);
}

namespace {

using Block [[gnu::vector_size(dot_lanes * sizeof(double))]] = double;
using Bits [[gnu::vector_size(dot_lanes * sizeof(double))]] = std::int64_t;

}  // namespace

// Clones are chosen by an ifunc, which runs before a sanitizer is ready.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
[[gnu::target_clones("avx512f", "avx2", "default")]]
#endif
void dot_rows(const DotRows& work) noexcept {
  constexpr std::int64_t all_but_sign = 0x7FFFFFFFFFFFFFFF;
  const std::size_t row = work.blocks * dot_lanes;
  for (std::size_t block = 0; block < work.blocks; ++block) {
    const double* const from = work.planes + (work.origin + static_cast<std::int64_t>(block * dot_lanes));
    const double* weight = work.weights;
    Block sum0{}, sum1{}, sum2{}, sum3{};
    Block magnitude0{}, magnitude1{}, magnitude2{}, magnitude3{};
    for (std::size_t tap = 0; tap < work.taps; ++tap, weight += dot_rows_at_once) {
      Block x;
      __builtin_memcpy(&x, from + work.offsets[tap], sizeof x);
      const Block product0 = x * weight[0];
      const Block product1 = x * weight[1];
      const Block product2 = x * weight[2];
      const Block product3 = x * weight[3];
      sum0 += product0;
      sum1 += product1;
      sum2 += product2;
      sum3 += product3;
      magnitude0 += reinterpret_cast<Block>(reinterpret_cast<Bits>(product0) & all_but_sign);
      magnitude1 += reinterpret_cast<Block>(reinterpret_cast<Bits>(product1) & all_but_sign);
      magnitude2 += reinterpret_cast<Block>(reinterpret_cast<Bits>(product2) & all_but_sign);
      magnitude3 += reinterpret_cast<Block>(reinterpret_cast<Bits>(product3) & all_but_sign);
    }
    double* const sums = work.sums + block * dot_lanes;
    double* const magnitudes = work.magnitudes + block * dot_lanes;
    __builtin_memcpy(sums, &sum0, sizeof sum0);
    __builtin_memcpy(sums + row, &sum1, sizeof sum1);
    __builtin_memcpy(sums + 2 * row, &sum2, sizeof sum2);
    __builtin_memcpy(sums + 3 * row, &sum3, sizeof sum3);
    __builtin_memcpy(magnitudes, &magnitude0, sizeof magnitude0);
    __builtin_memcpy(magnitudes + row, &magnitude1, sizeof magnitude1);
    __builtin_memcpy(magnitudes + 2 * row, &magnitude2, sizeof magnitude2);
    __builtin_memcpy(magnitudes + 3 * row, &magnitude3, sizeof magnitude3);
  }
}

}  // namespace kiln::reference
