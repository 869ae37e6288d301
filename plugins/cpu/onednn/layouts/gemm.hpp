// The ways in which oneDNN can compute a gemm on row-major matrices, likely best first.
//
// Thread-safety: any thread. Ownership: the caller owns the pipelines.
#pragma once

#include "onednn/layouts/pipeline.hpp"

#include <vector>

namespace kiln::cpu {

// Not empty: throws dnnl::error where oneDNN has no implementation at all. REQUIRES: validate(spec).ok().
std::vector<Pipeline> gemm_pipelines(const GemmSpec& spec, const dnnl::engine& engine);

}  // namespace kiln::cpu
