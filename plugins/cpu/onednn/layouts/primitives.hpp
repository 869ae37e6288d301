// Pipelines of single oneDNN primitives for a Part, with the reorders that their layouts need.
//
// Thread-safety: any thread that is set to work alone (omp_alone.hpp), as whoever runs them later must be. Ownership:
// the caller owns the pipelines.
#pragma once

#include "onednn/layouts/part.hpp"
#include "onednn/layouts/pipeline.hpp"

#include <optional>
#include <string>

namespace kiln::cpu {

// The layouts between which a convolution itself runs, and which of the implementations that oneDNN offers there, from
// 0.
struct Way {
  std::string_view layout;
  dnnl::memory::format_tag input, output;
  int implementation = 0;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

struct Made {
  std::string implementation;  // oneDNN's name for its code: "jit:avx512_core"
  Pipeline pipeline;
};

// Whether oneDNN names its plain loops, which can be a hundred times slower than anything else.
bool is_reference(const Made& made) noexcept;

// Absent where oneDNN has no such implementation. Throws dnnl::error for what is not the shape's doing.
std::optional<Made> convolution(const Part& part, const Way& way, const dnnl::engine& engine);

// A pointwise convolution without strides as a product of matrices, which lie in NCHW as they are needed. Absent also
// for a part of the columns of several rows, whose pixels do not follow one another. REQUIRES: part.spec is one and has
// no groups.
std::optional<Made> product(const Part& part, const dnnl::engine& engine);

}  // namespace kiln::cpu
