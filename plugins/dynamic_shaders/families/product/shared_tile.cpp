#include "dynamic_shaders/families/product/shared_tile.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

}  // namespace

std::string sum_name(std::int64_t place, std::int64_t quad) { return "s" + text_of(place) + "_" + text_of(quad); }

void write_terms(Text& text, std::int64_t wide, std::int64_t quads, const std::string& suffix) {
  for (std::int64_t p = 0; p < wide; ++p) {
    for (std::int64_t q = 0; q < quads; ++q) {
      text.line(sum_name(p, q), " += v", p, suffix, " * w", q, suffix, ";");
    }
  }
}

std::string within_count(std::int64_t first, std::int64_t lanes, std::int64_t count) {
  return first + lanes > count ? "if (lane + " + text_of(first) + " < " + text_of(count) + ") " : std::string();
}

void stage_floats(KernelWriter& writer, const SharedTile& t, std::string_view depth_name,
                  const std::function<std::string(std::int64_t)>& value) {
  Text& text = writer.body();
  for (std::int64_t d = 0; d < t.depth; d += t.vector_lanes) {
    const bool all = d + t.vector_lanes <= t.depth;
    if (all) {
      text.line("{");
    } else {
      text.line("if (", t.vector_lane, " + ", d, " < ", t.depth, ") {");
    }
    text.line("  int ", depth_name, " = step * ", t.depth, " + ", d, " + ", t.vector_lane, ";");
    for (std::int64_t p = 0; p < t.wide; ++p) {
      std::string to = "(" + text_of(d) + " + ";
      to += t.vector_lane;
      to += ") * " + text_of(t.float_row()) + " + " + text_of(p * t.float_lanes) + " + ";
      to += t.float_lane;
      text.line("  ", writer.store(t.floats, to, value(p)));
    }
    text.line("}");
  }
}

void multiply_staged(KernelWriter& writer, const SharedTile& t) {
  Text& text = writer.body();
  const std::string float_lane(t.float_lane), vector_lane(t.vector_lane);
  for (std::int64_t d = 0; d < t.depth; ++d) {
    const std::string suffix = "_" + text_of(d);
    for (std::int64_t p = 0; p < t.wide; ++p) {
      const std::string at = text_of(d * t.float_row() + p * t.float_lanes) + " + " + float_lane;
      text.line("float v", p, suffix, " = ", writer.load(t.floats, at), ";");
    }
    for (std::int64_t q = 0; q < t.quads; ++q) {
      const std::string at = text_of(d * t.vector_row + q) + " + " + vector_lane + " * " + text_of(t.quads);
      text.line(writer.vector_type(), " w", q, suffix, " = ", writer.load(t.vectors, at), ";");
    }
    write_terms(text, t.wide, t.quads, suffix);
  }
}

}  // namespace kiln::dynamic_shaders
