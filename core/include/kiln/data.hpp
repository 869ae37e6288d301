// Data: the tensors of jobs as files, and the requests of a configuration's jobs and pipelines.
//
// A source is "random:SEED", "zeros:", a .npy file, a PNG picture, a file of plain bytes (.bin, .raw), or "memory:NAME", a
// tensor of the application that describes the job.
// Thread-safety: functions without shared state, from any thread. Ownership: tensors are the caller's; a request shares
// them, also those of an application.
// Errors: each names the role ("input", "weights") and the source, with the found and the expected value.
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

// The tensors of an application that "memory:NAME" refers to, and constants that were already made, by source and shape.
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
  Shape sides{};                   // of an image: its shape without the channels. Empty: not compared
  const Memory* memory = nullptr;  // null: no application has described the job
};

// A relative file name is relative to `base`. The tensor has the dtype and shape of the request, if given: another dtype
// is converted without loss, another shape is invalid_argument. A tensor of an application is returned itself, so its
// dtype must be that of the request. notes: receives notes for the user: a conversion, or alpha that was dropped; null:
// not wanted.
Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base,
                                                const TensorRequest& request,
                                                std::vector<std::string>* notes = nullptr);
// The same as a Constant, which does not change with the application's tensor. memory: stores the constant, so that it is
// made once; null: not stored.
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
// Whether the source has no form of its own: "random:SEED", "zeros:" or plain bytes.
bool lacks_form(std::string_view source);
// Whether store_tensor() writes a PNG there.
bool is_picture(const std::filesystem::path& path);

// invalid_argument: store_tensor() would refuse the file's extension, or the tensor for it.
Status check_storable(const std::filesystem::path& path, DType dtype, const Shape& shape);

// By extension, .npy, .png, .bin or .raw (upper case too). Makes the parent folder where it is missing. The file is
// complete, and takes its name with commit() or commit_files().
Result<AtomicFile> prepare_tensor(const std::filesystem::path& path, const HostTensor& tensor);
// prepare_tensor() and its commit().
Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor);

// Converts a tensor without loss: every element keeps its value; NaN stays NaN. invalid_argument: the error names both
// types and the first element whose value the new type does not have.
Result<std::shared_ptr<HostTensor>> converted(const HostTensor& tensor, DType dtype);

// --- jobs and pipelines

// The request of a [[job]], with its tensors loaded. notes: receives notes on the inputs for the job's report; null: not
// wanted. memory: the tensors of "memory:NAME"; null: none.
Result<RunRequest> make_request(const JobConfig& job, std::vector<std::string>* notes = nullptr,
                                Memory* memory = nullptr);

// Returns the dialect by the extension of a source.
Result<Dialect> dialect_of(const std::filesystem::path& source);
// Returns the error of make_request() for a kernel's source, or ok.
Status check_source(const JobConfig& job);

// Return how the input of a kernel's binding, image or sampler is loaded, and how its expected result is.
TensorRequest request_of(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                         const Memory* memory = nullptr);
TensorRequest request_of_expected(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                                  const Memory* memory = nullptr);
// Returns dtype and shape of a result without an input. An empty shape or DType::invalid: those of `expect`.
TensorForm form_of_output(const KernelBindingConfig& binding);

// The kernel of a job, without bindings and uniforms.
Result<UserKernelSpec> kernel_of(const JobConfig& job);
// A binding without the form of its tensor.
UserKernelSpec::Binding declared(const KernelBindingConfig& binding);
bool has_values(const KernelBindingConfig& binding);  // written in the configuration
// Loads the input of a binding. REQUIRES: it has values or an input.
Result<std::shared_ptr<HostTensor>> load_binding(const JobConfig& job, const KernelBindingConfig& binding,
                                                 std::vector<std::string>* notes, const Memory* memory = nullptr);
// Declares the job's uniforms and returns their values, 8 bytes each (UserKernelSpec::Uniform); null: there are none.
Result<std::shared_ptr<HostTensor>> add_uniforms(const JobConfig& job, UserKernelSpec& spec);

// Where a layer's operand comes from or goes to: `input`, `addend`, `weights`, `bias` or `output` of the job. Empty:
// nowhere.
struct OperandSource {
  std::string key;
  std::string source;
};
// In the order of Operation::operands. REQUIRES: the job has a layer.
std::vector<OperandSource> sources_of(const JobConfig& job);

// Writes the results of a job to uncommitted files: `output` of a layer, every output and inout of a kernel.
// commit_files() commits them together.
Result<std::vector<AtomicFile>> prepare_outputs(const JobConfig& job, const RunRequest& request);
// Returns their names.
std::vector<std::filesystem::path> outputs_of(const JobConfig& job);

// check: only the forms of files are read, not their contents; the pipeline has no host tensors and no weights.
enum class Contents : unsigned char { invalid = 0, check, load };

// The request of a [[pipeline]]; its pipeline is valid. Errors name step and tensor. memory: the tensors of "memory:NAME";
// null: none. With check, a result "memory:NAME" may be missing and has the form that its step gives it.
Result<PipelineRequest> make_request(const PipelineConfig& config, Contents contents,
                                     std::vector<std::string>* notes = nullptr, Memory* memory = nullptr);

// Writes the results of a pipeline to uncommitted files.
Result<std::vector<AtomicFile>> prepare_outputs(const PipelineConfig& config, const PipelineRequest& request);

}  // namespace data
}  // namespace kiln
