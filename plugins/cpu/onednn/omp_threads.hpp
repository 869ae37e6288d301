// OmpThreads: for its lifetime, parallel regions of the calling thread use the given number of threads.
//
// Thread-safety: the setting belongs to the calling thread alone; other threads' regions are untouched. OpenMP gives
// every thread that opens a parallel region a team of its own, which stays until that thread ends. With more than one
// team libgomp holds the cores oversubscribed and puts idle workers to sleep at once, which costs a wake-up per region:
// submit from one thread (as the executor does) for full speed.
#pragma once

#include <omp.h>

namespace kiln::cpu {

class OmpThreads {
 public:
  explicit OmpThreads(int threads) noexcept : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;
  ~OmpThreads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace kiln::cpu
