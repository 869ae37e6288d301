// The tensors of a request: whether they fit its spec, and their contents kept from run to run.
//
// Thread-safety: none; one request's own. Ownership: a snapshot borrows its request.
#pragma once

#include <kiln/runtime.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace kiln {

// invalid_argument that names the tensor and both sides of the mismatch.
Status check_tensors(const RunRequest& request);

// The contents of a request's inout tensors before its first run, so that every run does the same work.
class InoutSnapshot {
 public:
  explicit InoutSnapshot(const RunRequest& request);
  void restore() const;

 private:
  const RunRequest& request_;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> saved_;
};

}  // namespace kiln
