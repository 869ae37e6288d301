#include "dynamic_shaders/families/depthwise.hpp"

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise_text.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view planes_family = "depthwise/planes:planes=";
constexpr std::string_view bands_family = "depthwise/bands:rows=";
constexpr std::string_view blocked_family = "depthwise/blocked:x=";
constexpr std::int64_t most_plane_outputs = 256, most_plane_inputs = 1024;
constexpr View views[] = {View::storage, View::texels, View::image};

Status does_not_fit(const std::string& what) { return unsupported("depthwise: " + what); }

Status check_planes(const Conv2dSpec& spec, std::int64_t planes) {
  const std::int64_t inputs = planes * spec.h * spec.w, outputs = planes * spec.out_h() * spec.out_w();
  if (planes > 8 || spec.c % planes != 0) return does_not_fit("planes must divide the channels");
  if (inputs % 4 != 0 || outputs % 4 != 0) return does_not_fit("a lane's planes must be whole texels");
  if (inputs > most_plane_inputs || outputs > most_plane_outputs ||
      outputs * spec.r * spec.s > most_unrolled_terms / 2) {
    return does_not_fit("planes too large to be unrolled");
  }
  return {};
}

Status check_bands(const Conv2dSpec& spec, std::int64_t rows) {
  if (rows < 1 || spec.out_h() % rows != 0) return does_not_fit("rows must divide the result's rows");
  if (spec.h * spec.w % 4 != 0) return does_not_fit("an input plane must be whole texels");
  if (rows * spec.stride_y * spec.w % 4 != 0 || rows * spec.out_w() % 4 != 0) {
    return does_not_fit("a band must begin at a texel");
  }
  if (rows * spec.out_w() > most_plane_outputs || rows * spec.out_w() * spec.r * spec.s > most_unrolled_terms / 2) {
    return does_not_fit("a band too large to be unrolled");
  }
  return {};
}

Status check_block(const Conv2dSpec& spec, const Depthwise& choice) {
  if (choice.x < 4 || choice.x % 4 != 0 || choice.y < 1) return does_not_fit("x must be a multiple of 4");
  if (spec.w % 4 != 0 || spec.out_w() % 4 != 0) return does_not_fit("rows must be whole texels");
  if (choice.x * choice.y > 128 || choice.x * choice.y * spec.r * spec.s > most_unrolled_terms / 2) {
    return does_not_fit("a block too large to be unrolled");
  }
  return {};
}

}  // namespace

std::string depthwise_variant(const Depthwise& choice) {
  std::string id(choice.planes != 0 ? planes_family : choice.rows != 0 ? bands_family : blocked_family);
  if (choice.planes != 0 || choice.rows != 0) {
    id += std::to_string(choice.planes != 0 ? choice.planes : choice.rows);
  } else {
    id += std::to_string(choice.x);
    id += ",y=";
    id += std::to_string(choice.y);
  }
  id += ",view=";
  id += to_string(choice.view);
  return id;
}

std::optional<Depthwise> depthwise_of(std::string_view variant) {
  const std::string_view id = variant;
  Depthwise choice;
  if (take_number(variant, planes_family, choice.planes)) {
    if (choice.planes < 1) return std::nullopt;
  } else if (take_number(variant, bands_family, choice.rows)) {
    if (choice.rows < 1) return std::nullopt;
  } else if (!take_number(variant, blocked_family, choice.x) || !take_number(variant, ",y=", choice.y)) {
    return std::nullopt;
  }
  for (const View view : views) {
    if (variant == ",view=" + std::string(to_string(view))) choice.view = view;
  }
  if (choice.view == View::invalid || depthwise_variant(choice) != id) return std::nullopt;
  return choice;
}

Status check(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device) {
  if (spec.groups != spec.c || spec.k != spec.c) return does_not_fit("one output channel for each input channel");
  Status fits = choice.planes != 0 ? check_planes(spec, choice.planes)
                : choice.rows != 0 ? check_bands(spec, choice.rows)
                                   : check_block(spec, choice);
  if (!fits.ok()) return fits;
  const auto texels = static_cast<std::uint64_t>(divide_up(spec.n * spec.c * spec.h * spec.w, 4));
  if (choice.view == View::texels && (device.max_texel_bindings == 0 || texels > device.max_view_texels)) {
    return does_not_fit("the device's texel buffers do not hold the input");
  }
  if (choice.view == View::image && (device.max_image_bindings == 0 || texels > device.max_view_texels)) {
    return does_not_fit("the device's image buffers do not hold the input");
  }
  if (const auto lanes = depthwise_lanes(spec, choice, device, Form()); !lanes) return lanes.error();
  return {};
}

std::vector<Depthwise> depthwise_space(const Conv2dSpec& spec, const DeviceInfo& device) {
  std::vector<Depthwise> space;
  const auto consider = [&](Depthwise choice) {
    for (const View view : views) {
      choice.view = view;
      if (check(spec, choice, device).ok()) space.push_back(choice);
    }
  };
  if (spec.groups != spec.c || spec.k != spec.c) return space;
  for (const std::int64_t planes : {1, 2, 4}) consider({planes, 0, 0, 0, View::invalid});
  for (const std::int64_t rows : {1, 2, 4, 7, 8, 14}) consider({0, rows, 0, 0, View::invalid});
  for (const std::int64_t x : {4, 8, 12, 16, 28}) {
    if (x > round_up(spec.out_w(), 4)) continue;
    for (const std::int64_t y : {1, 2, 4, 7, 8}) {
      if (y <= spec.out_h()) consider({0, 0, x, y, View::invalid});
    }
  }
  return space;
}

Result<KernelPlan> depthwise(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                             const Form& form) {
  KernelPlan plan;
  plan.variant = depthwise_variant(choice);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  if (Status status = check(spec, choice, device); !status.ok()) return status;
  if (form.any_shape() && (choice.planes != 0 || choice.rows != 0)) {
    return does_not_fit("planes and bands are written for one shape: every index of theirs is a number");
  }
  auto pass = choice.planes != 0 ? depthwise_planes_pass(spec, choice, device, form)
              : choice.rows != 0 ? depthwise_bands_pass(spec, choice, device, form)
                                 : depthwise_blocked_pass(spec, choice, device, form);
  if (!pass) return std::move(pass).error();
  plan.passes.push_back(std::move(*pass));
  return plan;
}

}  // namespace kiln::dynamic_shaders
