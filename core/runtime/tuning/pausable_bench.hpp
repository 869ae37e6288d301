// PausableBench: a bench that gives way at once, from another thread, to who has a job to run.
//
// Thread-safety: pause() and resume() from any thread; the rest from the thread that measures. Ownership: the caller's.
#pragma once

#include <kiln/tuning.hpp>

namespace kiln {

class PausableBench : public VariantBench {
 public:
  // From its return on nothing is computed until resume(). A measurement in the works answers `cancelled` soon, and so
  // does one that is begun meanwhile.
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
  // Gives back what it holds while it is not needed; the next measurement gets it again.
  virtual void rest() noexcept = 0;
};

}  // namespace kiln
