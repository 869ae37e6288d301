#include "dynamic_shaders/families/winograd.hpp"

#include <algorithm>

#include "dynamic_shaders/families/blocked_text.hpp"
#include "dynamic_shaders/families/winograd_transforms.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::uint64_t bytes_of(std::int64_t texels) { return static_cast<std::uint64_t>(texels) * 16; }

}  // namespace

std::optional<WinogradShape> winograd_shape(const Conv2dSpec& spec, std::int64_t m) {
  const bool exists = spec.r == 3 && spec.s == 3 && spec.stride_y == 1 && spec.stride_x == 1 && spec.dilation_y == 1 &&
                      spec.dilation_x == 1 && spec.groups == 1;
  if (!exists || spec.accuracy != Accuracy::winograd) return std::nullopt;
  WinogradShape shape;
  shape.m = m;
  shape.t = m + 2;
  shape.tiles_x = divide_up(spec.out_w(), m);
  shape.tiles_y = divide_up(spec.out_h(), m);
  shape.quads = divide_up(shape.tiles_x * shape.tiles_y, 4);
  ConvShape& products = shape.products;
  products.n = spec.n;
  products.groups = shape.t * shape.t;
  products.c = spec.c, products.k = spec.k;
  products.h = products.out_h = products.source_h = 1;
  products.w = products.out_w = products.source_w = products.source_out_w = shape.quads * 4;
  products.flat = true;
  return shape;
}

Status check_winograd(const Conv2dSpec& spec, const WinogradShape& shape, const Blocking& blocking,
                      const DeviceInfo& device) {
  if (blocking.packing != Packing::plane) return unsupported("winograd: packing must be plane");
  if (Status status = check(shape.products, blocking, device); !status.ok()) return status;
  const std::int64_t points = shape.t * shape.t;
  const auto texels = static_cast<std::uint64_t>(spec.n * points * std::max(spec.c, spec.k) * shape.quads);
  const bool viewed = blocking.view != View::storage;
  if (texels >= (std::uint64_t{1} << 29) || (viewed && texels > device.max_view_texels) ||
      (device.max_buffer_bytes != 0 && texels * 16 > device.max_buffer_bytes)) {
    return unsupported("winograd: " + std::to_string(texels) + " texels of transformed tiles are too many for device " +
                       device.id);
  }
  const Form form;
  if (const auto lanes = input_lanes(spec, shape, device, form); !lanes) return lanes.error();
  if (const auto lanes = weight_lanes(shape, blocking, device, form); !lanes) return lanes.error();
  if (const auto lanes = output_lanes(spec, shape, device, form); !lanes) return lanes.error();
  return {};
}

Result<KernelPlan> winograd(const Conv2dSpec& spec, std::int64_t m, const Blocking& blocking, const DeviceInfo& device,
                            const Form& form) {
  const auto shape = winograd_shape(spec, m);
  if (!shape) {
    return unsupported("winograd: needs accuracy \"winograd\", a 3x3 kernel, stride 1, dilation 1 and one group");
  }
  KernelPlan plan;
  plan.variant = "winograd/f" + std::to_string(m) + ":" + to_text(blocking);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  if (Status status = check_winograd(spec, *shape, blocking, device); !status.ok()) return status;

  const std::int64_t points = shape->t * shape->t;
  const BlockedExtents extents = extents_of(shape->products, blocking);
  plan.scratch = {{"transformed input", bytes_of(spec.n * points * spec.c * shape->quads)},
                  {"products", bytes_of(spec.n * points * spec.k * shape->quads)}};
  std::string layout = "winograd";
  for (const std::int64_t value : {m, spec.k, spec.c, blocking.k, extents.k_lanes})
    layout += "/" + std::to_string(value);
  plan.prepared.push_back({1, layout, bytes_of(extents.weight_texels)});

  const Binding transformed{BindingSource::scratch, 0}, products{BindingSource::scratch, 1};
  const Binding weights{BindingSource::prepared, 0};
  auto prepare = transform_weights(*shape, blocking, device, form, weights);
  if (!prepare) return std::move(prepare).error();
  auto before = transform_input(spec, *shape, blocking.view, device, form, transformed);
  if (!before) return std::move(before).error();
  auto after = transform_output(spec, *shape, blocking.view, device, form, products);
  if (!after) return std::move(after).error();
  plan.prepare.push_back(std::move(*prepare));
  plan.passes.push_back(std::move(*before));
  plan.passes.push_back(blocked_pass(shape->products, blocking, form, {transformed, weights, {}, products}));
  plan.passes.push_back(std::move(*after));
  return plan;
}

}  // namespace kiln::dynamic_shaders
