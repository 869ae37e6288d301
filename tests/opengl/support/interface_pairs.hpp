// Random compute programs with random interfaces, and jobs for them whose result or refusal is known beforehand.
//
// Thread-safety: one object per thread. Ownership: values; a pair shares its tensors with its request.
//
//   InterfacePairs pairs(seed);
//   const InterfacePair pair = pairs.next();
//   const RunReport report = runtime.run(pair.request);
//   CHECK(pair.fault(report.status) == "");
#pragma once

#include <kiln/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "opengl/support/interface_program.hpp"

namespace kiln::support {

struct InterfacePair {
  RunRequest request;
  std::string what;                // "right", or what is wrong with the job
  std::vector<std::string> words;  // of the message, where the job must be refused; none: it must run

  struct Expected {  // of a tensor after the run
    std::vector<std::byte> bytes;
    std::vector<bool> compared;
  };
  std::vector<Expected> expected;  // one for each tensor

  std::string fault(const Status& status) const;  // "": as expected
  std::string text() const;                       // the program and the job, for messages
};

class InterfacePairs {
 public:
  explicit InterfacePairs(std::uint64_t seed) : random_(seed) {}

  InterfacePair next();  // five jobs in a row have one program

 private:
  std::mt19937_64 random_;
  InterfaceProgram program_;
  unsigned left_ = 0;
};

}  // namespace kiln::support
