// The ways in which oneDNN can compute a gemm on row-major matrices, in blocks of rows and columns of C, likely best
// first.
//
// Thread-safety: any thread that is set to work alone (omp_alone.hpp). Ownership: the caller owns the candidates.
#pragma once

#include "onednn/layouts/candidate.hpp"

#include <vector>

namespace kiln::cpu {

// Not empty: throws dnnl::error where oneDNN has no implementation at all. REQUIRES: validate(spec).ok(); threads is
// positive.
std::vector<Candidate> gemm_candidates(const GemmSpec& spec, const dnnl::engine& engine, int threads);

}  // namespace kiln::cpu
