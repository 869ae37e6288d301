#include "dynamic_shaders/families/shared_tile.hpp"

#include <algorithm>
#include <string>

#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {}  // namespace

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

Status check_tile(std::string_view family, const TileExtents& t, const DeviceInfo& device) {
  const auto does_not_fit = [&](const std::string& what) { return unsupported(std::string(family) + ": " + what); };
  const auto text_of = [](std::int64_t value) { return std::to_string(value); };
  if (t.rows < 4 || t.rows > 16 || t.rows % 4 != 0) {
    return does_not_fit(std::string(t.row_name) + " = " + text_of(t.rows) + ", expected 4, 8, 12 or 16");
  }
  if (t.columns < 1 || t.columns > 16 || t.depth < 1 || t.depth > 32) {
    return does_not_fit(std::string(t.column_name) + " = " + text_of(t.columns) + ", depth = " + text_of(t.depth) +
                        ", expected 1 to 16 and 1 to 32");
  }
  const std::int64_t most_lanes = std::min(device.max_workgroup_lanes, device.max_workgroup[0]);
  if (t.row_lanes < 1 || t.column_lanes < 1 || t.row_lanes > most_lanes / t.column_lanes) {
    return does_not_fit(text_of(t.row_lanes) + " x " + text_of(t.column_lanes) + " lanes, the device takes at most " +
                        text_of(most_lanes));
  }
  static_assert(16 * 16 <= most_outputs && 16 * 16 * 32 <= most_unrolled_terms,
                "the largest tile needs checks of both");
  if (t.shared_bytes > device.max_shared_bytes) {
    return does_not_fit(text_of(t.shared_bytes) + " bytes of shared memory, the device has at most " +
                        std::to_string(device.max_shared_bytes));
  }
  return {};
}

}  // namespace kiln::dynamic_shaders
