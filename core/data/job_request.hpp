// From a [[job]] as written to a RunRequest with its tensors in memory, and back: outputs to their files.
//
// Thread-safety: pure but for reading and writing the named files. Ownership: the request shares the tensors.
#pragma once

#include "base/os/atomic_file.hpp"
#include "data/tensor_source.hpp"

#include <kiln/config.hpp>
#include <kiln/run_request.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::data {

// Errors name the job's file, what was found and what was expected. notes: what a user should know of the inputs, for
// the job's report; null: nobody wants it. memory: what "memory:NAME" refers to; null: there are no such sources.
Result<RunRequest> make_request(const JobConfig& job, std::vector<std::string>* notes = nullptr,
                                Memory* memory = nullptr);

// By the extension of a source.
Result<Dialect> dialect_of(const std::filesystem::path& source);
// What make_request() would refuse a kernel's source for.
Status check_source(const JobConfig& job);

// How the input of a kernel's binding, image or sampler is loaded; and what its result is compared with.
TensorRequest request_of(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                         const Memory* memory = nullptr);
TensorRequest request_of_expected(const JobConfig& job, const KernelBindingConfig& binding, std::string_view role,
                                  const Memory* memory = nullptr);
// dtype and shape of a result without an input; an empty shape, or DType::invalid: as `expect`.
TensorForm form_of_output(const KernelBindingConfig& binding);

// The kernel of a job, without bindings and uniforms.
Result<UserKernelSpec> kernel_of(const JobConfig& job);
// A binding without the form of its tensor.
UserKernelSpec::Binding declared(const KernelBindingConfig& binding);
bool has_values(const KernelBindingConfig& binding);  // written in the configuration
// What a binding reads. REQUIRES: it has values or an input.
Result<std::shared_ptr<HostTensor>> load_binding(const JobConfig& job, const KernelBindingConfig& binding,
                                                 std::vector<std::string>* notes, const Memory* memory = nullptr);
// Declares the job's uniforms and returns their values, 8 bytes each (UserKernelSpec::Uniform); null: there are none.
Result<std::shared_ptr<HostTensor>> add_uniforms(const JobConfig& job, UserKernelSpec& spec);

struct OperandShapes {
  Shape input, weights, bias, output;
};
OperandShapes shapes_of(const Conv2dSpec& spec);
OperandShapes shapes_of(const GemmSpec& spec);

// What the job asked for, complete and without names yet: `output` of conv2d and gemm, every output and inout of a
// kernel. commit_files() names them together.
Result<std::vector<AtomicFile>> prepare_outputs(const JobConfig& job, const RunRequest& request);
// Their names.
std::vector<std::filesystem::path> outputs_of(const JobConfig& job);

}  // namespace kiln::data
