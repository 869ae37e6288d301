#include "dynamic_shaders/families/depthwise/bands_text.hpp"

#include "dynamic_shaders/families/band_loads.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise/plane_outputs.hpp"

namespace kiln::dynamic_shaders {

// Some whole rows of a plane, which may begin within a texel: a plane is whole texels, so that a texel is inside it or
// outside, and every value's place is a number counted from the band's beginning.
void write_bands(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer) {
  const std::int64_t bands = spec.out_h() / choice.rows;
  const std::int64_t step = choice.rows * spec.stride_y * spec.w / 4, plane = spec.h * spec.w / 4;  // in texels
  Text& text = writer.body();
  write_weights(writer, spec, "channel", 0);
  text.line("int band = part * ", step, ";");
  text.line("int first_x = (layer * ", spec.c, " + channel) * ", plane, " + band;");
  text.line("int first_y = ((layer * ", spec.c, " + channel) * ", bands, " + part) * ", choice.rows * spec.out_w() / 4,
            ";");
  BandLoads loads(writer, Element::vector, bands, step, plane);
  write_outputs(writer, spec, 1, choice.rows, [&](std::int64_t, std::int64_t row, std::int64_t column) {
    const std::int64_t pixel = row * spec.w + column, texel = floor_divide(pixel, 4);
    const std::string loaded = loads.at(texel);
    return loaded.empty() ? loaded : loaded + "." + "xyzw"[pixel - 4 * texel];
  });
}

}  // namespace kiln::dynamic_shaders
