#include "dynamic_shaders/families/depthwise/planes_text.hpp"

#include <set>

#include "dynamic_shaders/families/depthwise/plane_outputs.hpp"

namespace kiln::dynamic_shaders {

// Whole planes: every index is a number.
void write_planes(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer) {
  const std::int64_t planes = choice.planes;
  Text& text = writer.body();
  text.line("int channel = column * ", planes, ";");
  text.line("int first_x = (layer * ", spec.c / planes, " + column) * ", planes * spec.h * spec.w / 4, ";");
  text.line("int first_y = (layer * ", spec.c / planes, " + column) * ", planes * spec.out_h() * spec.out_w() / 4, ";");
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    write_weights(writer, spec, "channel + " + std::to_string(plane), plane);
  }
  std::set<std::int64_t> loaded;
  write_outputs(writer, spec, planes, spec.out_h(), [&](std::int64_t plane, std::int64_t row, std::int64_t column) {
    if (row < 0 || row >= spec.h) return std::string();
    const std::int64_t pixel = (plane * spec.h + row) * spec.w + column;
    const std::string texel = std::to_string(pixel / 4);
    if (loaded.insert(pixel / 4).second) {
      text.line(writer.vector_type(), " x", texel, " = ", writer.load("x", "first_x + " + texel), ";");
    }
    return "x" + texel + "." + "xyzw"[pixel % 4];
  });
}

}  // namespace kiln::dynamic_shaders
