// The ways in which oneDNN can compute a gemm on row-major matrices, likely best first.
//
// Thread-safety: any thread. Ownership: the caller owns the candidates.
#pragma once

#include "onednn/layouts/candidate.hpp"

#include <vector>

namespace kiln::cpu {

// Not empty: throws dnnl::error where oneDNN has no implementation at all. REQUIRES: validate(spec).ok().
std::vector<Candidate> gemm_candidates(const GemmSpec& spec, const dnnl::engine& engine, int threads);

}  // namespace kiln::cpu
