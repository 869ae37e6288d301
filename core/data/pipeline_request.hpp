// From a [[pipeline]] as written to a PipelineRequest, and back: results to their files.
//
// Thread-safety: pure but for reading and writing the named files. Ownership: the request shares the tensors.
#pragma once

#include "base/os/atomic_file.hpp"
#include "data/tensor_source.hpp"

#include <kiln/config.hpp>
#include <kiln/pipeline.hpp>

#include <string>
#include <vector>

namespace kiln::data {

// check: only the forms of files are read, not their contents; the pipeline has no host tensors and no weights.
enum class Contents : unsigned char { invalid = 0, check, load };

// Errors name the pipeline's step and tensor, what was found and what was expected. The pipeline is valid. memory: what
// "memory:NAME" refers to; null: there are no such sources. check: a result "memory:NAME" may be missing there, and has
// the form that its step gives it.
Result<PipelineRequest> make_request(const PipelineConfig& config, Contents contents,
                                     std::vector<std::string>* notes = nullptr, Memory* memory = nullptr);

// The results, complete and without names yet.
Result<std::vector<AtomicFile>> prepare_outputs(const PipelineConfig& config, const PipelineRequest& request);

}  // namespace kiln::data
