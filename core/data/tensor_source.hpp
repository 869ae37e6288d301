// Where a job's tensors come from and go to: "random:SEED", a .npy file or a PNG picture, as the configuration names
// them.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's.
// Every error names the role ("input", "weights") and the source, what was found and what was expected.
#pragma once

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <filesystem>
#include <memory>
#include <string_view>

namespace kiln::data {

// A relative file name is relative to `base`. The tensor has exactly this dtype and shape, or there is none:
// invalid_argument where the source holds another, or is of an unknown kind.
Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base, DType dtype,
                                                const Shape& expected, std::string_view role);

// By extension, .npy or .png (upper case too). Makes the parent folder where it is missing.
Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
