// Data: loads and stores the tensors of jobs, and creates requests from a configuration's jobs and pipelines.
//
// A source is "random:SEED", "zeros:", a .npy file, a PNG picture, a file of plain bytes (.bin, .raw) or "memory:NAME".
// "memory:NAME" is a tensor of the application that describes the job.
// Thread-safety: functions without shared state, from any thread. Ownership: the caller owns the tensors; a request shares
// the ownership, also of an application's tensors.
// Errors: each error has the role ("input", "weights"), the source, and the found and the expected value.
//
//   auto input = kiln::data::load_tensor("photo.png", {}, {kiln::DType::f32, {}, "input"});
//   if (!input) return input.error();
//   return kiln::data::store_tensor("photo.npy", **input);
#pragma once

#include <kiln/config.hpp>
#include <kiln/pipeline.hpp>
#include <kiln/result_files.hpp>
#include <kiln/run_request.hpp>
#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {
namespace [[gnu::visibility("default")]] data {

// The tensors of an application for "memory:NAME", and the existing constants by source and shape.
struct Memory {
  std::map<std::string, std::shared_ptr<HostTensor>, std::less<>> tensors;
  std::map<std::string, std::shared_ptr<const Constant>, std::less<>> constants;
};

// Required properties of a loaded tensor.
struct TensorRequest {
  DType dtype = DType::f32;   // invalid: the dtype of the source; plain bytes: u8; a PNG, "random:" and "zeros:": f32
  Shape shape;                // empty: the shape of the source
  std::string_view role;      // in messages
  Alpha alpha = Alpha::keep;  // of a PNG
  // true: load a PNG as the samples [H, W, C] of an image, with C = `channels`. false: a PNG with dtype u8 or u16 also gives
  // samples, with the channels of the file.
  bool texels = false;
  std::int64_t channels = 0;       // 0: the channels of the file
  Shape sides{};                   // of an image: its shape without the channels. Empty: not compared
  const Memory* memory = nullptr;  // null: no application has described the job
};

// Loads a tensor. A relative file name is relative to `base`. Converts another dtype to the dtype of the request without
// loss. For "memory:NAME", returns the application's tensor without a copy, so its dtype must match the request.
// invalid_argument: the source has another shape than the request. notes: receives notes for the user, for example about a
// conversion or dropped alpha; null: no notes.
Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base,
                                                const TensorRequest& request,
                                                std::vector<std::string>* notes = nullptr);
// Loads a Constant. Later changes of the application's tensor do not change it. memory: stores the Constant, so that the
// next call returns it again; null: not stored.
Result<std::shared_ptr<const Constant>> load_constant(std::string_view source, const std::filesystem::path& base,
                                                      const TensorRequest& request, Memory* memory,
                                                      std::vector<std::string>* notes = nullptr);

struct TensorForm {
  DType dtype = DType::invalid;
  Shape shape;
  bool operator==(const TensorForm&) const = default;
};
// Returns the form of the tensor that load_tensor() would return. Reads only the start of a file and no element. Returns
// the errors that it finds there.
Result<TensorForm> form_of(std::string_view source, const std::filesystem::path& base, const TensorRequest& request);

// Returns whether the source is a file, not "random:SEED", "zeros:" or "memory:NAME".
bool is_file(std::string_view source) noexcept;
// Returns NAME of "memory:NAME"; nullopt for another source.
std::optional<std::string_view> memory_name(std::string_view source) noexcept;
// Returns whether the source does not define dtype and shape: "random:SEED", "zeros:" or plain bytes.
bool lacks_form(std::string_view source);
// Returns whether store_tensor() writes a PNG to this path.
bool is_picture(const std::filesystem::path& path);

// invalid_argument: store_tensor() would reject the file's extension, or the tensor for this extension.
Status check_storable(const std::filesystem::path& path, DType dtype, const Shape& shape);

// Writes the tensor to an uncommitted file. The extension selects the format: .npy, .png, .bin or .raw, in lower or upper
// case. Creates the parent folder if it is missing. commit() or commit_files() makes the file visible.
Result<AtomicFile> prepare_tensor(const std::filesystem::path& path, const HostTensor& tensor);
// prepare_tensor() and its commit().
Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor);

// Converts a tensor without changing the value of an element; NaN stays NaN. invalid_argument: the new type cannot
// represent an element; the error names both types and the first such element.
Result<std::shared_ptr<HostTensor>> converted(const HostTensor& tensor, DType dtype);

// --- jobs and pipelines

// Creates the request of a [[job]] and loads its tensors. notes: receives notes on the inputs for the job's report; null:
// no notes. memory: the tensors for "memory:NAME"; null: none.
Result<RunRequest> make_request(const JobConfig& job, std::vector<std::string>* notes = nullptr,
                                Memory* memory = nullptr);

// Returns the dialect for the file extension of a source.
Result<Dialect> dialect_of(const std::filesystem::path& source);
// Returns the error of make_request() for a kernel's source, or ok.
Status check_source(const JobConfig& job);

// Return the request to load the input of a kernel's binding, image or sampler, and the request to load its expected
// result.
TensorRequest request_of(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                         const Memory* memory = nullptr);
TensorRequest request_of_expected(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                                  const Memory* memory = nullptr);
// Returns dtype and shape of a result without an input. An empty shape or DType::invalid: the shape or dtype of `expect`.
TensorForm form_of_output(const KernelBindingConfig& binding);

// Returns the kernel of a job without bindings and uniforms.
Result<UserKernelSpec> kernel_of(const JobConfig& job);
// Returns a binding without dtype and shape of its tensor.
UserKernelSpec::Binding declared(const KernelBindingConfig& binding);
bool has_values(const KernelBindingConfig& binding);  // written in the configuration
// Loads the input of a binding. REQUIRES: it has values or an input.
Result<std::shared_ptr<HostTensor>> load_binding(const JobConfig& job, const KernelBindingConfig& binding,
                                                 std::vector<std::string>* notes, const Memory* memory = nullptr);
// Adds the job's uniforms to `spec`. Returns their values, 8 bytes each (UserKernelSpec::Uniform), or null without uniforms.
Result<std::shared_ptr<HostTensor>> add_uniforms(const JobConfig& job, UserKernelSpec& spec);

// Source or destination of a layer's operand: `input`, `addend`, `weights`, `bias` or `output` of the job. Empty: none.
struct OperandSource {
  std::string key;
  std::string source;
};
// Returns the sources in the order of Operation::operands. REQUIRES: the job has a layer.
std::vector<OperandSource> sources_of(const JobConfig& job);

// Writes the results of a job to uncommitted files: `output` of a layer, every output and inout of a kernel.
// commit_files() commits them together.
Result<std::vector<AtomicFile>> prepare_outputs(const JobConfig& job, const RunRequest& request);
// Returns the names of the files of prepare_outputs().
std::vector<std::filesystem::path> outputs_of(const JobConfig& job);

// check: read dtype and shape of files but not their contents; the pipeline then has no host tensors and no weights.
enum class Contents : unsigned char { invalid = 0, check, load };

// Creates the request of a [[pipeline]], with a valid pipeline. Errors name the step and the tensor. memory: the tensors for
// "memory:NAME"; null: none. With Contents::check, a result "memory:NAME" may be missing; its step then defines its form.
Result<PipelineRequest> make_request(const PipelineConfig& config, Contents contents,
                                     std::vector<std::string>* notes = nullptr, Memory* memory = nullptr);

// Writes the results of a pipeline to uncommitted files.
Result<std::vector<AtomicFile>> prepare_outputs(const PipelineConfig& config, const PipelineRequest& request);

}  // namespace data
}  // namespace kiln
