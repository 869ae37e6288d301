#include "dynamic_shaders/families/winograd_transforms.hpp"

#include <algorithm>

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/tile_pixels.hpp"

namespace kiln::dynamic_shaders {
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
