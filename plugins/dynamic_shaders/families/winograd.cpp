#include "dynamic_shaders/families/winograd.hpp"

#include <algorithm>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/tile_pixels.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
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
  std::uint64_t most = (std::uint64_t{1} << 29) - 1;
  if (viewed) most = std::min<std::uint64_t>(most, device.max_view_texels);
  if (device.max_buffer_bytes != 0) most = std::min<std::uint64_t>(most, device.max_buffer_bytes / 16);
  if (texels > most) {
    return unsupported("winograd: " + std::to_string(texels) + " texels of transformed tiles, expected at most " +
                       std::to_string(most) + " on device " + device.id);
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
    return unsupported("winograd: expected accuracy \"winograd\", a 3x3 kernel, stride 1, dilation 1 and one group");
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

namespace {

// Rows of the matrices that a tile is multiplied with from both sides, as numerators over `over`.
struct Matrix {
  std::int64_t rows, columns;
  double over;
  double value[36];
};

constexpr Matrix input_2{4, 4, 1, {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1}};
constexpr Matrix weights_2{4, 3, 2, {2, 0, 0, 1, 1, 1, 1, -1, 1, 0, 0, 2}};
constexpr Matrix output_2{2, 4, 1, {1, 1, 1, 0, 0, 1, -1, -1}};
constexpr Matrix input_4{6, 6, 1, {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                                   0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1}};
constexpr Matrix weights_4{6, 3, 24, {6, 0, 0, -4, -4, -4, -4, 4, -4, 1, 2, 4, 1, -2, 4, 0, 0, 24}};
constexpr Matrix output_4{4, 6, 1, {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1}};

std::uint32_t extent(std::int64_t value) { return static_cast<std::uint32_t>(value); }

std::string name(const char* letter, std::int64_t row, std::int64_t column) {
  std::string whole = letter;
  whole += std::to_string(row);
  whole += '_';
  whole += std::to_string(column);
  return whole;
}

// Σ matrix[row][i] * of(i), terms of nothing left out.
template <class Of>
std::string combination(const KernelWriter& writer, const Matrix& matrix, std::int64_t row, const Of& of) {
  std::string sum;
  for (std::int64_t i = 0; i < matrix.columns; ++i) {
    const double factor = matrix.value[row * matrix.columns + i] / matrix.over;
    if (factor == 0) continue;
    const double size = factor < 0 ? -factor : factor;
    if (sum.empty()) {
      if (factor < 0) sum += '-';
    } else {
      sum += factor < 0 ? " - " : " + ";
    }
    if (size != 1) sum += writer.literal(size) + " * ";
    sum += of(i);
  }
  return sum;
}

// matrix · tile · matrixᵀ, from variables `from`R_C by way of `by`R_C to `to`R_C.
void write_transform(KernelWriter& writer, const Matrix& matrix, const char* from, const char* by, const char* to) {
  Text& text = writer.body();
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      text.line(writer.vector_type(), " ", name(by, row, column), " = ",
                combination(writer, matrix, row, [&](std::int64_t i) { return name(from, i, column); }), ";");
    }
  }
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.rows; ++column) {
      text.line(writer.vector_type(), " ", name(to, row, column), " = ",
                combination(writer, matrix, column, [&](std::int64_t i) { return name(by, row, i); }), ";");
    }
  }
}

}  // namespace

Result<LaneMap> input_lanes(const Conv2dSpec& spec, const WinogradShape& shape, const DeviceInfo& device,
                            const Form& form) {
  return map_lanes({extent(shape.quads), extent(spec.c), extent(spec.n)}, device, form);
}

Result<LaneMap> weight_lanes(const WinogradShape& shape, const Blocking& blocking, const DeviceInfo& device,
                             const Form& form) {
  const std::int64_t columns = blocking.k / 4 * extents_of(shape.products, blocking).k_lanes;
  return map_lanes({extent(columns), extent(shape.products.c), 1}, device, form);
}

Result<LaneMap> output_lanes(const Conv2dSpec& spec, const WinogradShape& shape, const DeviceInfo& device,
                             const Form& form) {
  return map_lanes({extent(shape.quads), extent(spec.k), extent(spec.n)}, device, form);
}

Result<Pass> transform_input(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                             const Form& form, Binding to) {
  const auto map = input_lanes(spec, shape, device, form);
  if (!map) return map.error();
  const TileAccess access = input_access(spec, shape, view, form);
  KernelWriter writer(form, "winograd: input tiles, four a lane");
  writer.bind("x", access.fours ? Element::vector : Element::scalar, Access::read, {BindingSource::tensor, 0},
              access.fours ? view : View::storage);
  writer.bind("transformed", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const TilePixels pixel = load_tiles(spec, shape, access, writer);
  for (std::int64_t row = 0; row < shape.t; ++row) {
    for (std::int64_t column = 0; column < shape.t; ++column) {
      std::string value[4];  // asked for in turn: a pixel that is new is loaded first
      for (std::int64_t tile = 0; tile < 4; ++tile) value[tile] = pixel(tile, row, column);
      text.line(writer.vector_type(), " ", name("d", row, column), " = ",
                writer.vector(value[0], value[1], value[2], value[3]), ";");
    }
  }
  write_transform(writer, shape.m == 2 ? input_2 : input_4, "d", "h", "v");
  const std::string inputs = writer.number("channels", spec.c), quads = writer.number("quads", shape.quads);
  for (std::int64_t point = 0; point < shape.t * shape.t; ++point) {
    const std::string at = "((layer * " + text_of(shape.t * shape.t) + " + " + text_of(point) + ") * " + inputs +
                           " + row) * " + quads + " + column";
    text.line(writer.store("transformed", at, name("v", point / shape.t, point % shape.t)));
  }
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> transform_weights(const WinogradShape& shape, const Blocking& blocking, const DeviceInfo& device,
                               const Form& form, Binding to) {
  const ConvShape& products = shape.products;
  const BlockedExtents extents = extents_of(products, blocking);
  const auto map = weight_lanes(shape, blocking, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "winograd: weights, four output channels a lane");
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  writer.bind("transformed", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const std::string k_lanes = writer.number("k_lanes", extents.k_lanes);
  text.line("int k = column % ", k_lanes, " * ", blocking.k, " + column / ", k_lanes, " * 4;");
  for (std::int64_t tap = 0; tap < 9; ++tap) {
    std::string value[4];
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::string offset = text_of(i);
      value[i] = "w" + text_of(tap) + "_" + offset;
      text.line("float ", value[i], " = k + ", offset, " < ", writer.number("filters", products.k), " ? ",
                writer.load("weights", "((k + " + offset + ") * " + writer.number("channels", products.c) +
                                           " + row) * 9 + " + text_of(tap)),
                " : ", writer.zero(), ";");
    }
    text.line(writer.vector_type(), " ", name("g", tap / 3, tap % 3), " = ",
              writer.vector(value[0], value[1], value[2], value[3]), ";");
  }
  write_transform(writer, shape.m == 2 ? weights_2 : weights_4, "g", "h", "u");
  for (std::int64_t point = 0; point < shape.t * shape.t; ++point) {
    const std::string at = "(" + writer.number("channels", products.c, point) + " + row) * " +
                           writer.number("k_lanes", extents.k_lanes, blocking.k / 4) + " + column";
    text.line(writer.store("transformed", at, name("u", point / shape.t, point % shape.t)));
  }
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> transform_output(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                              const Form& form, Binding from) {
  const auto map = output_lanes(spec, shape, device, form);
  if (!map) return map.error();
  const TileAccess access = output_access(spec, shape, form);
  const bool bias = spec.bias == Bias::per_channel;
  KernelWriter writer(form, "winograd: output tiles, four a lane");
  writer.bind("products", Element::vector, Access::read, from, view);
  if (bias) writer.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
  writer.bind("y", access.fours ? Element::vector : Element::scalar, Access::write,
              {BindingSource::tensor, bias ? 3u : 2u});
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const std::string filters = writer.number("filters", spec.k), quads = writer.number("quads", shape.quads);
  for (std::int64_t point = 0; point < shape.t * shape.t; ++point) {
    const std::string at = "((layer * " + text_of(shape.t * shape.t) + " + " + text_of(point) + ") * " + filters +
                           " + row) * " + quads + " + column";
    text.line(writer.vector_type(), " ", name("p", point / shape.t, point % shape.t), " = ",
              writer.load("products", at), ";");
  }
  write_transform(writer, shape.m == 2 ? output_2 : output_4, "p", "h", "o");
  if (bias) text.line("float bias_k = ", writer.load("bias", "row"), ";");
  store_tiles(spec, shape, access, writer, [&](std::int64_t tile, std::int64_t row, std::int64_t column) {
    std::string value = name("o", row, column) + "." + "xyzw"[tile];
    if (bias) value += " + bias_k";
    return writer.activated(value, spec.activation);
  });
  return writer.take(map->workgroup, map->grid);
}

}  // namespace kiln::dynamic_shaders
