// ShapeBucket: specs that are expected to run alike: the same operation, the same kind of shape, about the same work
// and data.
//
// Thread-safety: values. Sizes are bucketed by half octaves of direct FLOPs and octaves of bytes; each user's kernel is
// a bucket of its own.
#pragma once

#include <kiln/kernel.hpp>

#include <string>

namespace kiln::selector {

struct ShapeBucket {
  std::string operation;
  std::string family;  // "3x3 dense direct f32": shapes whose time grows with their FLOPs alike
  std::string shape;   // family and size: "3x3 dense direct f32 @28.5/21"
  double flops = 0;    // of the spec itself; 0: unknown
  double bytes = 0;    // that must be moved at least once
};

ShapeBucket bucket_of(const KernelSpec& spec);

// The family in a bucket's shape.
std::string_view family_in(std::string_view shape) noexcept;

}  // namespace kiln::selector
