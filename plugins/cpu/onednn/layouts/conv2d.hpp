// The ways in which oneDNN can compute a conv2d from NCHW to NCHW, likely best first.
//
// Thread-safety: any thread. Ownership: the caller owns the pipelines.
#pragma once

#include "onednn/layouts/pipeline.hpp"

#include <string_view>
#include <vector>

namespace kiln::cpu {

// Not empty: throws dnnl::error where oneDNN has no implementation at all. Winograd's are among them only where the
// spec's accuracy allows it. REQUIRES: validate(spec).ok(). Threads: as OpenMP is set on the calling thread.
// layout: "auto" for all; another name restricts them to that layout where there is one in it.
std::vector<Pipeline> conv2d_pipelines(const Conv2dSpec& spec, const dnnl::engine& engine, std::string_view layout);

}  // namespace kiln::cpu
