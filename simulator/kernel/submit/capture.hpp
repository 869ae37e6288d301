// Capture: the command buffers of every submission, each written to a file before it runs, for `kiln pm4 dump`.
//
// Thread-safety: REQUIRES one caller at a time, as the engine has. Ownership: borrows the journal. A file that cannot
// be written is told of there, and the job runs all the same.
#pragma once

#include <string>

#include "simulator/kernel/device/journal.hpp"
#include "simulator/kernel/submit/job.hpp"

namespace kiln::simulator::kernel {

class Capture {
 public:
  // Files go to the folder, which exists; none are written where it is empty.
  Capture(std::string folder, Journal& journal) : folder_(std::move(folder)), journal_(journal) {}

  // SUBMISSION-RING-N.pm4: dwords as they lie in memory. What a command buffer chains to is not followed.
  void write(const PendingJob& job);

 private:
  const std::string folder_;
  Journal& journal_;
};

}  // namespace kiln::simulator::kernel
