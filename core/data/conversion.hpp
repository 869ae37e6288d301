// Lossless conversion of a tensor to another element type.
//
// Thread-safety: a free function. Ownership: the result is the caller's.
#pragma once

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <memory>

namespace kiln::data {

// Every element keeps its value; NaN stays NaN. invalid_argument: the error names both types and the first element
// whose value the new type does not have.
Result<std::shared_ptr<HostTensor>> converted(const HostTensor& tensor, DType dtype);

}  // namespace kiln::data
