#include "dynamic_shaders/families/depthwise/depthwise_text.hpp"

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise/bands_text.hpp"
#include "dynamic_shaders/families/depthwise/block_text.hpp"
#include "dynamic_shaders/families/depthwise/planes_text.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::uint32_t extent(std::int64_t value) { return static_cast<std::uint32_t>(value); }

void bind_tensors(KernelWriter& writer, const Conv2dSpec& spec, View view) {
  const bool biased = spec.bias == Bias::per_channel;
  writer.bind("x", Element::vector, Access::read, {BindingSource::tensor, 0}, view);
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  if (biased) writer.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
  writer.bind("y", Element::vector, Access::write, {BindingSource::tensor, biased ? 3u : 2u});
}

// Parts of a plane, one a lane.
std::int64_t parts_of(const Conv2dSpec& spec, const Depthwise& choice) {
  if (choice.planes != 0) return 1;
  if (choice.rows != 0) return spec.out_h() / choice.rows;
  return divide_up(spec.out_w(), choice.x) * divide_up(spec.out_h(), choice.y);
}

// The channel of a lane, and which part of its plane.
void write_channel(KernelWriter& writer, std::int64_t parts) {
  const std::string number = writer.number("parts", parts);
  writer.body().line("int channel = column / ", number, ";");
  writer.body().line("int part = column % ", number, ";");
}

}  // namespace

Result<LaneMap> depthwise_lanes(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                const Form& form) {
  const std::int64_t lanes = parts_of(spec, choice) * (choice.planes != 0 ? spec.c / choice.planes : spec.c);
  return map_lanes({extent(lanes), 1, extent(spec.n)}, device, form,
                   form.any_shape() ? usual_workgroup : workgroup_for_few(static_cast<std::uint64_t>(lanes), device));
}

Result<Pass> depthwise_planes_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                   const Form& form) {
  const auto map = depthwise_lanes(spec, choice, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/planes: whole planes a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_planes(spec, choice, writer);
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> depthwise_bands_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                  const Form& form) {
  const auto map = depthwise_lanes(spec, choice, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/bands: some rows of a plane a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_channel(writer, parts_of(spec, choice));
  write_bands(spec, choice, writer);
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> depthwise_blocked_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                    const Form& form) {
  const auto map = depthwise_lanes(spec, choice, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/blocked: a block of a plane a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_channel(writer, parts_of(spec, choice));
  write_block(spec, choice, writer);
  return writer.take(map->workgroup, map->grid);
}

}  // namespace kiln::dynamic_shaders
