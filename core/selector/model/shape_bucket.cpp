#include "selector/model/shape_bucket.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::selector {
namespace {

std::string family_of(const Conv2dSpec& spec) {
  std::string family = std::to_string(spec.r) + "x" + std::to_string(spec.s);
  family += spec.groups == 1 ? " dense" : spec.groups == spec.c ? " depthwise" : " grouped";
  return family + " " + std::string(to_string(spec.accuracy)) + " " + std::string(to_string(spec.dtype));
}

std::string family_of(const GemmSpec& spec) {
  constexpr std::int64_t thin = 8;  // so few rows or columns that it is bound by reading the matrix once
  return std::string(spec.m <= thin || spec.n <= thin ? "thin " : "full ") + std::string(to_string(spec.dtype));
}

std::string family_of(const UserKernelSpec& spec) { return sha256(canonical_text(spec)).hex().substr(0, 32); }

}  // namespace

ShapeBucket bucket_of(const KernelSpec& spec) {
  ShapeBucket bucket;
  bucket.operation = operation(spec);
  bucket.family = std::visit([](const auto& held) { return family_of(held); }, spec);
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
