// Where a job's tensors come from and go to, as the configuration names them: "random:SEED", "zeros:", a .npy file, a
// PNG picture, a file of plain bytes (.bin, .raw), or "memory:NAME", a tensor of the application that describes the job.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's; that of an application is
// shared.
// Every error names the role ("input", "weights") and the source, what was found and what was expected.
#pragma once

#include "base/os/atomic_file.hpp"

#include <kiln/config.hpp>
#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::data {

// What the sources of one description refer to: tensors of its application by name, and constants that were made
// already, by source and shape.
struct Memory {
  std::map<std::string, std::shared_ptr<HostTensor>, std::less<>> tensors;
  std::map<std::string, std::shared_ptr<const Constant>, std::less<>> constants;
};

// What a tensor is loaded for.
struct TensorRequest {
  DType dtype = DType::f32;   // invalid: that of the source; plain bytes: u8; a PNG, "random:" and "zeros:": f32
  Shape shape;                // empty: that of the source
  std::string_view role;      // in messages
  Alpha alpha = Alpha::keep;  // of a PNG
  // A PNG as the texels of an image: its samples [H, W, C], with C = `channels`. Also without it a PNG of dtype u8 or
  // u16 gives samples, with the file's own channels.
  bool texels = false;
  std::int64_t channels = 0;       // 0: those of the file
  const Memory* memory = nullptr;  // null: no application has described the job
};

// A relative file name is relative to `base`. The tensor has the dtype and the shape of the request, where it says
// them: another dtype is converted without loss, another shape is invalid_argument. The tensor of an application is
// returned itself, so its dtype has to be that of the request. notes: gets what a user should know
// of a source that was loaded: a conversion, or alpha that is left out though it was to be kept. null: not wanted.
Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base,
                                                const TensorRequest& request,
                                                std::vector<std::string>* notes = nullptr);
// The same as a Constant, which does not change with the application's tensor. memory: null, or gets the constant, so
// that it is made once.
Result<std::shared_ptr<const Constant>> load_constant(std::string_view source, const std::filesystem::path& base,
                                                      const TensorRequest& request, Memory* memory,
                                                      std::vector<std::string>* notes = nullptr);

struct TensorForm {
  DType dtype = DType::invalid;
  Shape shape;
  bool operator==(const TensorForm&) const = default;
};
// The form that load_tensor() gives, or a failure that the source's name and the start of its file show; no element is
// read.
Result<TensorForm> form_of(std::string_view source, const std::filesystem::path& base, const TensorRequest& request);

// Whether the source is a file, not "random:SEED", "zeros:" or "memory:NAME".
bool is_file(std::string_view source) noexcept;
// NAME of "memory:NAME"; nullopt: another source.
std::optional<std::string_view> memory_name(std::string_view source) noexcept;
// Whether store_tensor() writes a PNG there.
bool is_picture(const std::filesystem::path& path);

// invalid_argument: store_tensor() would refuse the file's extension, or the tensor for it.
Status check_storable(const std::filesystem::path& path, DType dtype, const Shape& shape);

// By extension, .npy, .png, .bin or .raw (upper case too). Makes the parent folder where it is missing. The file is
// complete, and takes its name with commit() or commit_files().
Result<AtomicFile> prepare_tensor(const std::filesystem::path& path, const HostTensor& tensor);
// prepare_tensor() and its commit().
Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
