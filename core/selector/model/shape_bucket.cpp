#include "selector/model/shape_bucket.hpp"

#include <kiln/operation.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::selector {
ShapeBucket bucket_of(const KernelSpec& spec) {
  ShapeBucket bucket;
  bucket.operation = operation(spec);
  bucket.family = operation_of(spec).family(spec);
  bucket.flops = flops(spec);
  bucket.bytes = bytes_moved(spec);
  bucket.shape = bucket.family;
  if (bucket.flops > 0) {
    char size[48];
    std::snprintf(size, sizeof size, " @%.1f/%.0f", std::round(2 * std::log2(bucket.flops)) / 2,
                  std::round(std::log2(std::max(bucket.bytes, 1.0))));
    bucket.shape += size;
  }
  return bucket;
}

std::string_view family_in(std::string_view shape) noexcept { return shape.substr(0, shape.rfind(" @")); }

}  // namespace kiln::selector
