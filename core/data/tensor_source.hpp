// Where a job's tensors come from and go to: "random:SEED", a .npy file or a PNG picture, as the configuration names
// them.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's.
// Every error names the role ("input", "weights") and the source, what was found and what was expected.
#pragma once

#include "base/os/atomic_file.hpp"

#include <kiln/config.hpp>
#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace kiln::data {

// What a tensor is loaded for.
struct TensorRequest {
  DType dtype = DType::f32;
  Shape shape;
  std::string_view role;      // in messages
  Alpha alpha = Alpha::keep;  // of a PNG
};

// A relative file name is relative to `base`. The tensor has exactly this dtype and shape, or there is none:
// invalid_argument where the source holds another, or is of an unknown kind. note: gets what a user should know of a
// source that will do all the same: that a picture's alpha is left out though it was to be kept. null: nobody wants it.
Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base,
                                                const TensorRequest& request, std::string* note = nullptr);
// The failures of load_tensor() that the source's name and the start of its file show; no element is read.
Status check_tensor(std::string_view source, const std::filesystem::path& base, const TensorRequest& request);
// dtype and shape of a .npy file. invalid_argument for other sources: `role` takes a .npy file alone.
Result<TensorRequest> npy_form(std::string_view source, const std::filesystem::path& base, std::string_view role);
// invalid_argument: store_tensor() would refuse the file's extension, or the tensor for it.
Status check_storable(const std::filesystem::path& path, DType dtype, const Shape& shape);

// By extension, .npy or .png (upper case too). Makes the parent folder where it is missing. The file is complete, and
// takes its name with commit() or commit_files().
Result<AtomicFile> prepare_tensor(const std::filesystem::path& path, const HostTensor& tensor);
// prepare_tensor() and its commit().
Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
