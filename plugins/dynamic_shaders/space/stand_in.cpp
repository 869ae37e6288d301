#include "dynamic_shaders/space/stand_in.hpp"

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/gemm_blocked.hpp"
#include "dynamic_shaders/families/implicit.hpp"

namespace kiln::dynamic_shaders {
namespace {

View view_of(const DeviceInfo& device, Dialect dialect) {
  return dialect == Dialect::glsl && device.max_texel_bindings >= 4 ? View::texels : View::storage;
}

std::vector<std::string> of_conv(const Conv2dSpec& spec, const DeviceInfo& device, Dialect dialect) {
  std::vector<std::string> variants;
  if (spec.groups == spec.c && spec.k == spec.c) {
    variants.push_back(depthwise_variant({0, 0, 4, 2, view_of(device, dialect)}));
  } else if (device.kind == DeviceKind::software) {
    const bool flat = shape_of(spec).flat;
    variants.push_back("direct/blocked:" + to_text({Lanes::channels, 8, flat ? 8 : 4, flat ? 1 : 2, Packing::channels,
                                                    view_of(device, dialect), Rows::looped, Border::padded, 16}));
  } else {
    variants.push_back(implicit_variant({Staging::shared, 4, 4, 8, 8, 8}));
  }
  variants.emplace_back("direct/plain");
  return variants;
}

}  // namespace

std::vector<std::string> stand_in_variants(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return of_conv(*conv, device, dialect);
  if (std::holds_alternative<GemmSpec>(spec)) {
    return {gemm_variant({4, 2, 16, view_of(device, dialect)}), "gemm/plain"};
  }
  return {};
}

}  // namespace kiln::dynamic_shaders
