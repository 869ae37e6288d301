// OmpAlone: for its lifetime, parallel regions that the calling thread opens run on that thread alone.
//
// Thread-safety: the setting belongs to the calling thread; other threads' regions are untouched. oneDNN asks OpenMP
// how many threads there are both where a primitive is made and where it runs, so both happen under one of these: then
// no team is ever formed, and no barrier of OpenMP's can hold up the pool on a core that another process has taken.
#pragma once

#include <omp.h>

namespace kiln::cpu {

class OmpAlone {
 public:
  OmpAlone() noexcept : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OmpAlone(const OmpAlone&) = delete;
  OmpAlone& operator=(const OmpAlone&) = delete;
  ~OmpAlone() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace kiln::cpu
