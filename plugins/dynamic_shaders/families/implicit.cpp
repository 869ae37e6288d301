#include "dynamic_shaders/families/implicit.hpp"

#include <algorithm>
#include <limits>

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/implicit_text.hpp"
#include "dynamic_shaders/families/shared_tile.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view registers_family = "implicit/registers:", shared_family = "implicit/shared:";

Status does_not_fit(const std::string& what) { return unsupported("implicit: " + what); }

}  // namespace

std::string implicit_variant(const ImplicitTile& tile) {
  std::string id(tile.staging == Staging::shared ? shared_family : registers_family);
  id += "k=" + text_of(tile.k) + ",pixels=" + text_of(tile.pixels) + ",lanes_k=" + text_of(tile.lanes_k) +
        ",lanes_p=" + text_of(tile.lanes_p) + ",depth=" + text_of(tile.depth);
  return id;
}

std::optional<ImplicitTile> implicit_of(std::string_view variant) {
  const std::string_view id = variant;
  ImplicitTile tile;
  if (variant.starts_with(shared_family)) {
    tile.staging = Staging::shared;
    variant.remove_prefix(shared_family.size());
  } else if (variant.starts_with(registers_family)) {
    tile.staging = Staging::registers;
    variant.remove_prefix(registers_family.size());
  } else {
    return std::nullopt;
  }
  const bool whole = take_number(variant, "k=", tile.k) && take_number(variant, ",pixels=", tile.pixels) &&
                     take_number(variant, ",lanes_k=", tile.lanes_k) &&
                     take_number(variant, ",lanes_p=", tile.lanes_p) && take_number(variant, ",depth=", tile.depth) &&
                     variant.empty();
  if (!whole || implicit_variant(tile) != id) return std::nullopt;
  return tile;
}

std::int64_t shared_bytes(const ImplicitTile& tile) noexcept {
  if (tile.staging != Staging::shared) return 0;
  return tile.depth * (tile.pixels * tile.lanes_p + tile.k * tile.lanes_k) * 4;
}

Triple implicit_grid(const Conv2dSpec& spec, const ImplicitTile& tile) noexcept {
  const ImplicitExtents e = extents_of(spec, tile);
  return {e.tiles_p, spec.groups * e.tiles_k, spec.n};
}

Triple implicit_weight_box(const Conv2dSpec& spec, const ImplicitTile& tile) noexcept {
  const ImplicitExtents e = extents_of(spec, tile);
  return {e.quads, e.taps * e.packed_c, spec.groups};
}

Status check(const Conv2dSpec& spec, const ImplicitTile& tile, const DeviceInfo& device) {
  if (tile.staging == Staging::invalid) return does_not_fit("a parameter is missing");
  const TileExtents extents{"k",          "pixels",     tile.k,     tile.pixels,
                            tile.lanes_k, tile.lanes_p, tile.depth, shared_bytes(tile)};
  if (Status status = check_tile("implicit", extents, device); !status.ok()) return status;
  const ImplicitExtents e = extents_of(spec, tile);
  // llvmpipe counts the rounds of all loops of a lane together.
  const std::int64_t rounds = spec.r + e.taps + e.taps * e.steps;
  if (rounds > most_iterations) {
    return does_not_fit(text_of(rounds) + " rounds of its loops, at most " + text_of(most_iterations));
  }
  constexpr std::int64_t most_texels = std::numeric_limits<std::int32_t>::max() / 4;
  if (e.weight_texels > most_texels) {
    return does_not_fit(text_of(e.weight_texels) + " texels, an index reaches " + text_of(most_texels));
  }
  if (device.max_buffer_bytes != 0 && static_cast<std::uint64_t>(e.weight_texels) * 16 > device.max_buffer_bytes) {
    return does_not_fit(text_of(e.weight_texels * 16) + " bytes, the device's buffers take " +
                        std::to_string(device.max_buffer_bytes));
  }
  if (Status status = check_grid(implicit_grid(spec, tile), device); !status.ok()) return does_not_fit(status.message);
  if (const auto lanes = map_lanes(narrow(implicit_weight_box(spec, tile)), device); !lanes) return lanes.error();
  return {};
}

std::vector<ImplicitTile> implicit_space(const Conv2dSpec& spec, const DeviceInfo& device) {
  struct Lanes {
    std::int64_t k, p;
  };
  const std::int64_t channels = spec.k / spec.groups, pixels = spec.out_h() * spec.out_w();
  std::vector<ImplicitTile> space;
  for (const Lanes& lanes : {Lanes{1, 16}, Lanes{1, 64}, Lanes{4, 16}, Lanes{8, 8}, Lanes{8, 16}, Lanes{16, 16}}) {
    for (const std::int64_t k : {4, 8}) {
      if (lanes.k > 1 && lanes.k * k >= 2 * channels) continue;
      for (const std::int64_t wide : {1, 2, 4, 8}) {
        if (wide > 1 && lanes.p * wide >= 2 * pixels) continue;
        for (const std::int64_t depth : {4, 8, 16}) {
          if (depth > 4 && depth >= 2 * spec.c / spec.groups) continue;
          for (const Staging staging : {Staging::registers, Staging::shared}) {
            if (staging == Staging::shared ? lanes.k == 1 : depth > 4) continue;  // shares nothing; gains nothing
            const ImplicitTile tile{staging, k, wide, lanes.k, lanes.p, depth};
            if (check(spec, tile, device).ok()) space.push_back(tile);
          }
        }
      }
    }
  }
  return space;
}

Result<KernelPlan> implicit_product(const Conv2dSpec& spec, const ImplicitTile& tile, const DeviceInfo& device,
                                    const Form& form) {
  KernelPlan plan;
  plan.variant = implicit_variant(tile);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  if (Status status = check(spec, tile, device); !status.ok()) return status;
  const ImplicitExtents e = extents_of(spec, tile);
  const Binding weights{BindingSource::prepared, 0};
  std::string layout = "implicit";
  for (const std::int64_t value : {spec.groups, e.k, e.c, e.taps, e.packed_c, e.quads}) layout += "/" + text_of(value);
  plan.prepared.push_back({1, std::move(layout), static_cast<std::uint64_t>(e.weight_texels) * 16});
  auto prepare = pack_implicit_weights(spec, tile, device, form, weights);
  if (!prepare) return std::move(prepare).error();
  plan.prepare.push_back(std::move(*prepare));
  plan.passes.push_back(implicit_pass(spec, tile, form, weights));
  return plan;
}

}  // namespace kiln::dynamic_shaders
