#include "dynamic_shaders/families/tile_pixels.hpp"

#include <algorithm>
#include <memory>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {
namespace {

bool whole_rows(const WinogradShape& shape, const Form& form) { return !form.any_shape() && 4 % shape.tiles_x == 0; }
std::int64_t output_rows(const WinogradShape& shape) { return 4 / shape.tiles_x * shape.m; }  // of four tiles

// Whether planes of rows of `width` and what four tiles take of them are whole fours.
bool by_fours(const WinogradShape& shape, std::int64_t height, std::int64_t width) {
  return height * width % 4 == 0 && output_rows(shape) * width % 4 == 0;
}

TilePixels load_rows(const Conv2dSpec& spec, const WinogradShape& shape, bool fours, KernelWriter& writer) {
  const std::int64_t unit = fours ? 4 : 1;
  const std::int64_t step = output_rows(shape) * spec.w / unit, plane = spec.h * spec.w / unit;
  writer.body().line("int band = column * ", step, ";");
  writer.body().line("int first_x = (layer * ", spec.c, " + row) * ", plane, " + band;");
  const auto loads =
      std::make_shared<BandLoads>(writer, fours ? Element::vector : Element::scalar, shape.quads, step, plane);
  return [=, &spec, &shape, &writer](std::int64_t tile, std::int64_t row, std::int64_t column) {
    const std::int64_t y = tile / shape.tiles_x * shape.m + row - spec.pad_y;
    const std::int64_t x = tile % shape.tiles_x * shape.m + column - spec.pad_x;
    if (x < 0 || x >= spec.w) return writer.zero();
    const std::int64_t pixel = y * spec.w + x, place = floor_divide(pixel, unit);
    const std::string loaded = loads->at(place);
    if (loaded.empty()) return writer.zero();
    return fours ? loaded + "." + "xyzw"[pixel - 4 * place] : loaded;
  };
}

// Where each of the four tiles begins in the output.
void write_places(const WinogradShape& shape, KernelWriter& writer) {
  Text& text = writer.body();
  const std::string tiles_x = writer.number("tiles_across", shape.tiles_x);
  for (std::int64_t i = 0; i < 4; ++i) {
    text.line("int tile", i, " = column * 4 + ", i, ";");
    text.line("int ty", i, " = tile", i, " / ", tiles_x, " * ", shape.m, ";");
    text.line("int tx", i, " = tile", i, " % ", tiles_x, " * ", shape.m, ";");
  }
}

std::string all_tiles(const WinogradShape& shape, KernelWriter& writer) {
  return writer.number("all_tiles", shape.tiles_x * shape.tiles_y);
}

// Tiles of four outputs under a border of one begin one pixel before a four: three fours a row hold their six.
void load_fours_of_row(const Conv2dSpec& spec, const std::string& tile, const std::string& row, KernelWriter& writer) {
  const std::string first =
      "plane + iy" + tile + "_" + row + " * " + writer.number("width_quads", spec.w / 4) + " + tx" + tile + " / 4";
  const auto load = [&](const char* name, const std::string& inside, const std::string& place) {
    writer.body().line(writer.vector_type(), " ", name, tile, "_", row, " = in", tile, "_", row, inside, " ? ",
                       writer.load("x", place), " : ", writer.splat(writer.zero()), ";");
  };
  load("b", " && tx" + tile + " > 0", first + " - 1");
  load("c", "", first);
  load("e", " && tx" + tile + " < " + writer.number("width", spec.w, 1, -4), first + " + 1");
}

TilePixels load_each(const Conv2dSpec& spec, const WinogradShape& shape, bool fours, KernelWriter& writer) {
  write_places(shape, writer);
  Text& text = writer.body();
  const std::string width = writer.number("width", spec.w);
  text.line("int plane = (layer * ", writer.number("channels", spec.c), " + row) * ",
            writer.number("plane", spec.h * spec.w / (fours ? 4 : 1)), ";");
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    for (std::int64_t row = 0; row < shape.t; ++row) {
      const std::string r = text_of(row);
      text.line("int iy", at, "_", r, " = ty", at, " + ", writer.number("pad_y", spec.pad_y, -1, row), ";");
      text.line("bool in", at, "_", r, " = iy", at, "_", r, " >= 0 && iy", at, "_", r, " < ",
                writer.number("height", spec.h), " && tile", at, " < ", all_tiles(shape, writer), ";");
      if (fours) {
        load_fours_of_row(spec, at, r, writer);
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
  return [fours](std::int64_t tile, std::int64_t row, std::int64_t column) {
    const std::string tail = text_of(tile) + "_" + text_of(row);
    if (!fours) return "x" + tail + "_" + text_of(column);
    if (column == 0) return "b" + tail + ".w";
    if (column == 5) return "e" + tail + ".x";
    return "c" + tail + "." + "xyzw"[column - 1];
  };
}

void store_rows(const Conv2dSpec& spec, const WinogradShape& shape, bool fours, KernelWriter& writer,
                const TilePixels& pixels) {
  const std::int64_t unit = fours ? 4 : 1, width = spec.out_w();
  const std::int64_t step = output_rows(shape) * width / unit, plane = spec.out_h() * width / unit;
  writer.body().line("int band_y = column * ", step, ";");
  writer.body().line("int first_y = (layer * ", spec.k, " + row) * ", plane, " + band_y;");
  const auto pixel = [&](std::int64_t at) {
    const std::int64_t y = at / width, x = at % width;
    return pixels(y / shape.m * shape.tiles_x + x / shape.m, y % shape.m, x % shape.m);
  };
  for (std::int64_t place = 0; place < std::min(step, plane); ++place) {
    const std::int64_t at = place * unit;
    const std::string value = fours ? writer.vector(pixel(at), pixel(at + 1), pixel(at + 2), pixel(at + 3)) : pixel(at);
    const bool inside = (shape.quads - 1) * step + place < plane;  // in the last band too
    writer.body().line(inside ? std::string() : "if (band_y < " + text_of(plane - place) + ") ",
                       writer.store("y", "first_y + " + text_of(place), value));
  }
}

void store_each(const Conv2dSpec& spec, const WinogradShape& shape, bool fours, KernelWriter& writer,
                const TilePixels& pixels) {
  write_places(shape, writer);
  Text& text = writer.body();
  const std::int64_t out_h = spec.out_h(), out_w = spec.out_w();
  text.line("int plane = (layer * ", writer.number("filters", spec.k), " + row) * ",
            writer.number("out_plane", out_h * out_w / (fours ? 4 : 1)), ";");
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string at = text_of(i);
    text.open("if (tile", at, " < ", all_tiles(shape, writer), ")");
    for (std::int64_t row = 0; row < shape.m; ++row) {
      const bool rows_fit = !writer.any_shape() && out_h % shape.m == 0;
      const std::string row_guard = rows_fit || row == 0
                                        ? std::string()
                                        : "ty" + at + " + " + text_of(row) + " < " + writer.number("out_height", out_h);
      if (fours) {
        const std::string value =
            writer.vector(pixels(i, row, 0), pixels(i, row, 1), pixels(i, row, 2), pixels(i, row, 3));
        const std::string index = "plane + (ty" + at + " + " + text_of(row) + ") * " +
                                  writer.number("out_quads", out_w / 4) + " + tx" + at + " / 4";
        text.line(row_guard.empty() ? std::string() : "if (" + row_guard + ") ", writer.store("y", index, value));
        continue;
      }
      for (std::int64_t column = 0; column < shape.m; ++column) {
        std::string guard = row_guard;
        if ((writer.any_shape() || out_w % shape.m != 0) && column != 0) {
          guard += guard.empty() ? "" : " && ";
          guard += "tx" + at + " + " + text_of(column) + " < " + writer.number("out_width", out_w);
        }
        const std::string index = "plane + (ty" + at + " + " + text_of(row) + ") * " +
                                  writer.number("out_width", out_w) + " + tx" + at + " + " + text_of(column);
        text.line(guard.empty() ? std::string() : "if (" + guard + ") ",
                  writer.store("y", index, pixels(i, row, column)));
      }
    }
    text.close();
  }
}

}  // namespace

TileAccess input_access(const Conv2dSpec& spec, const WinogradShape& shape, View view, const Form& form) {
  const bool fetched = view != View::storage && form.dialect == Dialect::glsl;
  TileAccess access;
  access.rows = whole_rows(shape, form);
  if (access.rows) {
    access.fours = fetched && by_fours(shape, spec.h, spec.w);
    const std::int64_t pixels = std::min(output_rows(shape) + 2, spec.h) * spec.w;
    access.moves = access.fours ? divide_up(pixels, 4) : pixels;
  } else {
    access.fours = fetched && shape.m == 4 && spec.pad_x == 1 && spec.w % 4 == 0;
    access.moves = 4 * shape.t * (access.fours ? 3 : shape.t);
  }
  return access;
}

TileAccess output_access(const Conv2dSpec& spec, const WinogradShape& shape, const Form& form) {
  TileAccess access;
  access.rows = whole_rows(shape, form);
  access.fours = access.rows ? by_fours(shape, spec.out_h(), spec.out_w()) : shape.m == 4 && spec.out_w() % 4 == 0;
  const std::int64_t pixels = access.rows ? output_rows(shape) * spec.out_w() : 4 * shape.m * shape.m;
  access.moves = access.fours ? divide_up(pixels, 4) : pixels;
  return access;
}

TilePixels load_tiles(const Conv2dSpec& spec, const WinogradShape& shape, TileAccess access, KernelWriter& writer) {
  return (access.rows ? load_rows : load_each)(spec, shape, access.fours, writer);
}

void store_tiles(const Conv2dSpec& spec, const WinogradShape& shape, TileAccess access, KernelWriter& writer,
                 const TilePixels& pixels) {
  (access.rows ? store_rows : store_each)(spec, shape, access.fours, writer, pixels);
}

}  // namespace kiln::dynamic_shaders
