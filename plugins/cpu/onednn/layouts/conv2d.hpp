// The ways in which oneDNN can compute a conv2d from NCHW to NCHW, cut into tiles for the threads, likely best first.
//
// Thread-safety: any thread that is set to work alone (omp_alone.hpp). Ownership: the caller owns the candidates.
#pragma once

#include "onednn/layouts/candidate.hpp"

#include <string_view>
#include <vector>

namespace kiln::cpu {

// Not empty: throws dnnl::error where oneDNN has no implementation at all. Winograd's are among them only where the
// spec's accuracy allows it. layout: "auto" for all; another name restricts them to that layout where it exists for the
// spec. REQUIRES: validate(spec).ok(); threads is positive.
std::vector<Candidate> conv2d_candidates(const Conv2dSpec& spec, const dnnl::engine& engine, int threads,
                                         std::string_view layout);

}  // namespace kiln::cpu
