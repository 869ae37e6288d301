#include "dynamic_shaders/families/implicit.hpp"

#include <algorithm>
#include <limits>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/shared_tile.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
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
    return does_not_fit(text_of(e.weight_texels * 16) + " bytes, the device's buffers have at most " +
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

namespace {

class ImplicitText {
 public:
  ImplicitText(const Conv2dSpec& spec, const ImplicitTile& tile, const Form& form, Binding weights)
      : spec_(spec),
        t_(tile),
        e_(extents_of(spec, tile)),
        quads_(tile.k / 4),
        lanes_(tile.lanes_k * tile.lanes_p),
        bias_(spec.bias == Bias::per_channel),
        writer_(form, std::string(shared() ? "implicit/shared" : "implicit/registers") + ": each lane adds up " +
                          text_of(tile.k) + " channels of " + text_of(tile.pixels) + " pixels"),
        text_(writer_.body()) {
    writer_.bind("x", Element::scalar, Access::read, {BindingSource::tensor, 0});
    writer_.bind("w", Element::vector, Access::read, weights);
    if (bias_) writer_.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
    writer_.bind("y", Element::scalar, Access::write, {BindingSource::tensor, bias_ ? 3u : 2u});
    if (!shared()) return;
    writer_.share("part_x", Element::scalar, t_.depth * e_.tile_p);
    writer_.share("part_w", Element::vector, t_.depth * e_.tile_k / 4);
  }

  Pass write() {
    write_places();
    text_.open("for (int r = 0; r < ", number("taps_y", spec_.r), "; ++r)");
    text_.open("for (int s = 0; s < ", number("taps_x", spec_.s), "; ++s)");
    write_tap();
    text_.open("for (int step = 0; step < ", number("steps", e_.steps), "; ++step)");
    shared() ? write_shared_step() : write_step();
    text_.close();
    text_.close();
    text_.close();
    write_results();
    return writer_.take({static_cast<std::uint32_t>(lanes_), 1, 1}, narrow(implicit_grid(spec_, t_)));
  }

 private:
  bool shared() const { return t_.staging == Staging::shared; }
  std::int64_t plane() const { return spec_.h * spec_.w; }
  bool spare_channels() const { return writer_.any_shape() || e_.c != e_.packed_c; }
  std::string number(const char* what, std::int64_t value, std::int64_t factor = 1, std::int64_t plus = 0) {
    return writer_.number(what, value, factor, plus);
  }

  // A pixel beyond the plane is read as its last one, and never stored.
  void write_places() {
    text_.line("int lane = ", writer_.lane(0), ";");
    text_.line("int lane_p = lane % ", t_.lanes_p, ";");
    text_.line("int lane_k = lane / ", t_.lanes_p, ";");
    text_.line("int group = ", writer_.group(1), " / ", number("tiles_k", e_.tiles_k), ";");
    text_.line("int first_quad = ", writer_.group(1), " % ", number("tiles_k", e_.tiles_k), " * ", e_.tile_k / 4, ";");
    text_.line("int image = ", writer_.group(2), ";");
    text_.line("int first_x = (image * ", number("groups", spec_.groups), " + group) * ",
               number("group_inputs", e_.c * plane()), ";");
    text_.line("int first_w = group * ", number("group_weights", e_.taps * e_.packed_c * e_.quads), " + first_quad;");
    for (std::int64_t p = 0; p < t_.pixels; ++p) {
      text_.line("int pixel", p, " = ", writer_.group(0), " * ", e_.tile_p, " + ", p * t_.lanes_p, " + lane_p;");
      text_.line("int read", p, " = min(pixel", p, ", ", number("pixels", e_.pixels, 1, -1), ");");
      text_.line("int iy", p, " = read", p, " / ", number("out_width", spec_.out_w()), " * ",
                 number("stride_y", spec_.stride_y), " - ", number("pad_y", spec_.pad_y), ";");
      text_.line("int ix", p, " = read", p, " % ", number("out_width", spec_.out_w()), " * ",
                 number("stride_x", spec_.stride_x), " - ", number("pad_x", spec_.pad_x), ";");
      for (std::int64_t q = 0; q < quads_; ++q) {
        text_.line(writer_.vector_type(), " ", sum_name(p, q), " = ", writer_.splat(writer_.zero()), ";");
      }
    }
  }

  // Where each pixel's input of this tap lies in a plane, and whether there is one.
  void write_tap() {
    text_.line("int tap_w = first_w + (r * ", number("taps_x", spec_.s), " + s) * ",
               number("tap_weights", e_.packed_c * e_.quads), ";");
    for (std::int64_t p = 0; p < t_.pixels; ++p) {
      text_.line("int row", p, " = iy", p, " + r * ", number("dilation_y", spec_.dilation_y), ";");
      text_.line("int column", p, " = ix", p, " + s * ", number("dilation_x", spec_.dilation_x), ";");
      text_.line("bool in", p, " = row", p, " >= 0 && row", p, " < ", number("height", spec_.h), " && column", p,
                 " >= 0 && column", p, " < ", number("width", spec_.w), ";");
      text_.line("int at", p, " = in", p, " ? first_x + row", p, " * ", number("width", spec_.w), " + column", p,
                 " : 0;");
    }
  }

  // The input of one pixel in channel `c`, an expression; zero where there is none.
  std::string input(std::int64_t p, const std::string& c) {
    const std::string there = spare_channels() ? " && " + c + " < " + number("channels", e_.c) : std::string();
    return "in" + text_of(p) + there + " ? " +
           writer_.load("x", "at" + text_of(p) + " + " + c + " * " + number("plane", plane())) + " : " + writer_.zero();
  }

  void write_step() {
    for (std::int64_t d = 0; d < t_.depth; ++d) {
      const std::string suffix = "_" + text_of(d);
      text_.line("int c", d, " = step * ", t_.depth, " + ", d, ";");
      for (std::int64_t p = 0; p < t_.pixels; ++p) {
        text_.line("float v", p, suffix, " = ", input(p, "c" + text_of(d)), ";");
      }
      for (std::int64_t q = 0; q < quads_; ++q) {
        text_.line(writer_.vector_type(), " w", q, suffix, " = ",
                   writer_.load("w", "tap_w + c" + text_of(d) + " * " + number("quads", e_.quads) + " + lane_k * " +
                                         text_of(quads_) + " + " + text_of(q)),
                   ";");
      }
      write_terms(text_, t_.pixels, quads_, suffix);
    }
  }

  void write_shared_step() {
    const std::int64_t row = e_.tile_k / 4, texels = t_.depth * row;
    const SharedTile tile{"part_x", "part_w",   "lane_p",   "lane_k", t_.pixels,
                          quads_,   t_.lanes_p, t_.lanes_k, row,      t_.depth};
    text_.line(writer_.barrier());
    stage_floats(writer_, tile, "c", [this](std::int64_t p) { return input(p, "c"); });
    for (std::int64_t first = 0; first < texels; first += lanes_) {
      const std::string texel = "(lane + " + text_of(first) + ")";
      const std::string store = writer_.store(
          "part_w", "lane + " + text_of(first),
          writer_.load("w", "tap_w + (step * " + text_of(t_.depth) + " + " + texel + " / " + text_of(row) + ") * " +
                                number("quads", e_.quads) + " + " + texel + " % " + text_of(row)));
      text_.line(within_count(first, lanes_, texels), store);
    }
    text_.line(writer_.barrier());
    multiply_staged(writer_, tile);
  }

  void write_results() {
    text_.line("int k = first_quad * 4 + lane_k * ", t_.k, ";");
    text_.line("int first_y = (image * ", number("groups", spec_.groups), " + group) * ",
               number("group_outputs", e_.k * e_.pixels), ";");
    for (std::int64_t k = 0; k < t_.k; ++k) {
      const std::string channel = "k + " + text_of(k);
      text_.line("if (", channel, " < ", number("filters", e_.k), ") {");
      if (bias_) {
        text_.line("  float bias", k, " = ",
                   writer_.load("bias", "group * " + number("filters", e_.k) + " + " + channel), ";");
      }
      for (std::int64_t p = 0; p < t_.pixels; ++p) {
        std::string value = sum_name(p, k / 4) + "." + "xyzw"[k % 4];
        if (bias_) value += " + bias" + text_of(k);
        value = writer_.activated(value, spec_.activation);
        text_.line(
            "  if (pixel", p, " < ", number("pixels", e_.pixels), ") ",
            writer_.store("y", "first_y + (" + channel + ") * " + number("pixels", e_.pixels) + " + pixel" + text_of(p),
                          value));
      }
      text_.line("}");
    }
  }

  const Conv2dSpec& spec_;
  const ImplicitTile& t_;
  const ImplicitExtents e_;
  const std::int64_t quads_, lanes_;
  const bool bias_;
  KernelWriter writer_;
  Text& text_;
};

}  // namespace

ImplicitExtents extents_of(const Conv2dSpec& spec, const ImplicitTile& tile) noexcept {
  ImplicitExtents e;
  e.c = spec.c / spec.groups, e.k = spec.k / spec.groups;
  e.pixels = spec.out_h() * spec.out_w();
  e.taps = spec.r * spec.s;
  e.tile_k = tile.k * tile.lanes_k, e.tile_p = tile.pixels * tile.lanes_p;
  e.tiles_k = divide_up(e.k, e.tile_k), e.tiles_p = divide_up(e.pixels, e.tile_p);
  e.quads = e.tiles_k * e.tile_k / 4;
  e.steps = divide_up(e.c, tile.depth);
  e.packed_c = e.steps * tile.depth;
  e.weight_texels = spec.groups * e.taps * e.packed_c * e.quads;
  return e;
}

Pass implicit_pass(const Conv2dSpec& spec, const ImplicitTile& tile, const Form& form, Binding weights) {
  return ImplicitText(spec, tile, form, weights).write();
}

Result<Pass> pack_implicit_weights(const Conv2dSpec& spec, const ImplicitTile& tile, const DeviceInfo& device,
                                   const Form& form, Binding to) {
  const ImplicitExtents e = extents_of(spec, tile);
  const auto map = map_lanes(narrow(implicit_weight_box(spec, tile)), device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "pack weights: by tap and channel, four output channels in a texel");
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  writer.bind("packed_weights", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const std::string packed_c = writer.number("packed_c", e.packed_c), taps = writer.number("taps", e.taps);
  const std::string filters = writer.number("filters", e.k), channels = writer.number("channels", e.c);
  text.line("int tap = row / ", packed_c, ";");
  text.line("int c = row % ", packed_c, ";");
  std::string value[4];
  for (int i = 0; i < 4; ++i) {
    const std::string k = "column * 4 + " + text_of(i);
    value[i] = "v" + text_of(i);
    text.line(
        "float v", i, " = ", k, " < ", filters, " && c < ", channels, " ? ",
        writer.load("weights", "((layer * " + filters + " + " + k + ") * " + channels + " + c) * " + taps + " + tap"),
        " : ", writer.zero(), ";");
  }
  text.line(writer.store("packed_weights",
                         "(layer * " + writer.number("all_taps", e.taps * e.packed_c) + " + row) * " +
                             writer.number("quads", e.quads) + " + column",
                         writer.vector(value[0], value[1], value[2], value[3])));
  return writer.take(map->workgroup, map->grid);
}

}  // namespace kiln::dynamic_shaders
