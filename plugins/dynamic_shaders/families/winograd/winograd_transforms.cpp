#include "dynamic_shaders/families/winograd/winograd_transforms.hpp"

#include <algorithm>

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"

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

std::string text_of(std::int64_t value) { return std::to_string(value); }
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

// One number of each of four tiles, where it lies inside the plane.
void write_places(KernelWriter& writer, const WinogradShape& shape) {
  Text& text = writer.body();
  const std::string tiles_x = writer.number("tiles_across", shape.tiles_x);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    text.line("int tile", at, " = column * 4 + ", i, ";");
    text.line("int ty", at, " = tile", at, " / ", tiles_x, " * ", shape.m, ";");
    text.line("int tx", at, " = tile", at, " % ", tiles_x, " * ", shape.m, ";");
  }
}

}  // namespace

Result<Pass> transform_input(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                             const Form& form, Binding to) {
  const auto map = map_lanes({extent(shape.quads), extent(spec.c), extent(spec.n)}, device, form);
  if (!map) return map.error();
  // Tiles of four outputs under a border of one begin one pixel before a texel: three texels a row hold their six.
  const bool by_texels =
      view != View::storage && form.dialect == Dialect::glsl && shape.m == 4 && spec.pad_x == 1 && spec.w % 4 == 0;
  KernelWriter writer(form, "winograd: input tiles, four a lane");
  writer.bind("x", by_texels ? Element::vector : Element::scalar, Access::read, {BindingSource::tensor, 0},
              by_texels ? view : View::storage);
  writer.bind("transformed", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  write_places(writer, shape);
  const std::string inputs = writer.number("channels", spec.c), quads = writer.number("quads", shape.quads);
  const std::string all_tiles = writer.number("all_tiles", shape.tiles_x * shape.tiles_y);
  const std::string width = writer.number("width", spec.w);
  text.line("int plane = (layer * ", inputs, " + row) * ",
            writer.number("plane", by_texels ? spec.h * spec.w / 4 : spec.h * spec.w), ";");
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    for (std::int64_t row = 0; row < shape.t; ++row) {
      const std::string r = text_of(row);
      text.line("int iy", at, "_", r, " = ty", at, " + ", writer.number("pad_y", spec.pad_y, -1, row), ";");
      text.line("bool in", at, "_", r, " = iy", at, "_", r, " >= 0 && iy", at, "_", r, " < ",
                writer.number("height", spec.h), " && tile", at, " < ", all_tiles, ";");
      if (by_texels) {
        const std::string first =
            "plane + iy" + at + "_" + r + " * " + writer.number("width_quads", spec.w / 4) + " + tx" + at + " / 4";
        const std::string zero = writer.splat(writer.zero());
        text.line(writer.vector_type(), " b", at, "_", r, " = in", at, "_", r, " && tx", at, " > 0 ? ",
                  writer.load("x", first + " - 1"), " : ", zero, ";");
        text.line(writer.vector_type(), " c", at, "_", r, " = in", at, "_", r, " ? ", writer.load("x", first), " : ",
                  zero, ";");
        text.line(writer.vector_type(), " e", at, "_", r, " = in", at, "_", r, " && tx", at, " < ",
                  writer.number("width", spec.w, 1, -4), " ? ", writer.load("x", first + " + 1"), " : ", zero, ";");
        continue;
      }
      for (std::int64_t column = 0; column < shape.t; ++column) {
        const std::string ix = "tx" + at + " + " + writer.number("pad_x", spec.pad_x, -1, column);
        const std::string inside = "in" + at + "_" + r + " && " + ix + " >= 0 && " + ix + " < " + width;
        text.line("float x", at, "_", r, "_", column, " = ", inside, " ? ",
                  writer.load("x", "plane + iy" + at + "_" + r + " * " + width + " + " + ix), " : ", writer.zero(),
                  ";");
      }
    }
  }
  const auto pixel = [&](std::int64_t tile, std::int64_t row, std::int64_t column) {
    const std::string tail = text_of(tile) + "_" + text_of(row);
    if (!by_texels) return "x" + tail + "_" + text_of(column);
    if (column == 0) return "b" + tail + ".w";
    if (column == 5) return "e" + tail + ".x";
    return "c" + tail + "." + "xyzw"[column - 1];
  };
  for (std::int64_t row = 0; row < shape.t; ++row) {
    for (std::int64_t column = 0; column < shape.t; ++column) {
      text.line(
          writer.vector_type(), " ", name("d", row, column), " = ",
          writer.vector(pixel(0, row, column), pixel(1, row, column), pixel(2, row, column), pixel(3, row, column)),
          ";");
    }
  }
  write_transform(writer, shape.m == 2 ? input_2 : input_4, "d", "h", "v");
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
  const std::int64_t columns = blocking.k / 4 * extents.k_lanes;
  const auto map = map_lanes({extent(columns), extent(products.c), 1}, device, form);
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
  const auto map = map_lanes({extent(shape.quads), extent(spec.k), extent(spec.n)}, device, form);
  if (!map) return map.error();
  const std::int64_t out_h = spec.out_h(), out_w = spec.out_w();
  const bool wide = shape.m == 4 && out_w % 4 == 0;
  const bool bias = spec.bias == Bias::per_channel;
  KernelWriter writer(form, "winograd: output tiles, four a lane");
  writer.bind("products", Element::vector, Access::read, from, view);
  if (bias) writer.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
  writer.bind("y", wide ? Element::vector : Element::scalar, Access::write, {BindingSource::tensor, bias ? 3u : 2u});
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  const std::string filters = writer.number("filters", spec.k), quads = writer.number("quads", shape.quads);
  const std::string all_tiles = writer.number("all_tiles", shape.tiles_x * shape.tiles_y);
  write_places(writer, shape);
  for (std::int64_t point = 0; point < shape.t * shape.t; ++point) {
    const std::string at = "((layer * " + text_of(shape.t * shape.t) + " + " + text_of(point) + ") * " + filters +
                           " + row) * " + quads + " + column";
    text.line(writer.vector_type(), " ", name("p", point / shape.t, point % shape.t), " = ",
              writer.load("products", at), ";");
  }
  write_transform(writer, shape.m == 2 ? output_2 : output_4, "p", "h", "o");
  if (bias) text.line("float bias_k = ", writer.load("bias", "row"), ";");
  const auto finished = [&](std::string value) {
    if (bias) value += " + bias_k";
    return spec.activation == Activation::relu ? writer.maximum(value, writer.zero()) : value;
  };
  text.line("int plane = (layer * ", filters, " + row) * ",
            writer.number("out_plane", wide ? out_h * out_w / 4 : out_h * out_w), ";");
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    const std::string part = std::string(".") + "xyzw"[i];
    text.open("if (tile", at, " < ", all_tiles, ")");
    for (std::int64_t row = 0; row < shape.m; ++row) {
      const bool rows_fit = !form.any_shape() && out_h % shape.m == 0;
      const std::string row_guard = rows_fit || row == 0
                                        ? std::string()
                                        : "ty" + at + " + " + text_of(row) + " < " + writer.number("out_height", out_h);
      if (wide) {
        const std::string values = writer.vector(name("o", row, 0) + part, name("o", row, 1) + part,
                                                 name("o", row, 2) + part, name("o", row, 3) + part);
        const std::string index = "plane + (ty" + at + " + " + text_of(row) + ") * " +
                                  writer.number("out_quads", out_w / 4) + " + tx" + at + " / 4";
        text.line(row_guard.empty() ? std::string() : "if (" + row_guard + ") ",
                  writer.store("y", index, finished(values)));
        continue;
      }
      for (std::int64_t column = 0; column < shape.m; ++column) {
        std::string guard = row_guard;
        if ((form.any_shape() || out_w % shape.m != 0) && column != 0) {
          guard += guard.empty() ? "" : " && ";
          guard += "tx" + at + " + " + text_of(column) + " < " + writer.number("out_width", out_w);
        }
        const std::string index = "plane + (ty" + at + " + " + text_of(row) + ") * " +
                                  writer.number("out_width", out_w) + " + tx" + at + " + " + text_of(column);
        text.line(guard.empty() ? std::string() : "if (" + guard + ") ",
                  writer.store("y", index, finished(name("o", row, column) + part)));
      }
    }
    text.close();
  }
  return writer.take(map->workgroup, map->grid);
}

}  // namespace kiln::dynamic_shaders
