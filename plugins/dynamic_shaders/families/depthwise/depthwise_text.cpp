#include "dynamic_shaders/families/depthwise/depthwise_text.hpp"

#include <map>
#include <set>

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/band_loads.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::uint32_t extent(std::int64_t value) { return static_cast<std::uint32_t>(value); }

bool has_bias(const Conv2dSpec& spec) { return spec.bias == Bias::per_channel; }

void bind_tensors(KernelWriter& writer, const Conv2dSpec& spec, View view) {
  writer.bind("x", Element::vector, Access::read, {BindingSource::tensor, 0}, view);
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  if (has_bias(spec)) writer.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
  writer.bind("y", Element::vector, Access::write, {BindingSource::tensor, has_bias(spec) ? 3u : 2u});
}

std::string name_of(std::int64_t value) { return value < 0 ? "m" + text_of(-value) : text_of(value); }

std::string finished(const KernelWriter& writer, const Conv2dSpec& spec, const std::string& value) {
  return spec.activation == Activation::relu ? writer.maximum(value, writer.zero()) : value;
}

void write_weights(KernelWriter& writer, const Conv2dSpec& spec, const std::string& channel, std::int64_t plane) {
  const std::int64_t taps = spec.r * spec.s;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    writer.body().line("float w", plane, "_", tap, " = ",
                       writer.load("weights", "(" + channel + ") * " + text_of(taps) + " + " + text_of(tap)), ";");
  }
  if (has_bias(spec)) writer.body().line("float bias", plane, " = ", writer.load("bias", channel), ";");
}

// Whole planes: every index is a number.
class PlanesText {
 public:
  PlanesText(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer)
      : spec_(spec), planes_(choice.planes), writer_(writer), text_(writer.body()) {}

  void write() {
    const std::int64_t outputs = spec_.out_h() * spec_.out_w();
    text_.line("int channel = column * ", planes_, ";");
    text_.line("int first_x = (layer * ", spec_.c / planes_, " + column) * ", planes_ * spec_.h * spec_.w / 4, ";");
    text_.line("int first_y = (layer * ", spec_.c / planes_, " + column) * ", planes_ * outputs / 4, ";");
    for (std::int64_t plane = 0; plane < planes_; ++plane) {
      write_weights(writer_, spec_, "channel + " + text_of(plane), plane);
    }
    for (std::int64_t at = 0; at < planes_ * outputs; ++at) {
      write_output(at / outputs, at % outputs / spec_.out_w(), at % outputs % spec_.out_w(), at);
      if (at % 4 != 3) continue;
      const std::string value =
          writer_.vector("y" + text_of(at - 3), "y" + text_of(at - 2), "y" + text_of(at - 1), "y" + text_of(at));
      text_.line(writer_.store("y", "first_y + " + text_of(at / 4), finished(writer_, spec_, value)));
    }
  }

 private:
  void write_output(std::int64_t plane, std::int64_t oy, std::int64_t ox, std::int64_t at) {
    std::string sum;
    for (std::int64_t r = 0; r < spec_.r; ++r) {
      const std::int64_t iy = oy * spec_.stride_y + r * spec_.dilation_y - spec_.pad_y;
      for (std::int64_t s = 0; s < spec_.s; ++s) {
        const std::int64_t ix = ox * spec_.stride_x + s * spec_.dilation_x - spec_.pad_x;
        if (iy < 0 || iy >= spec_.h || ix < 0 || ix >= spec_.w) continue;
        const std::int64_t pixel = (plane * spec_.h + iy) * spec_.w + ix;
        need(pixel / 4);
        if (!sum.empty()) sum += " + ";
        sum += "x" + text_of(pixel / 4) + "." + "xyzw"[pixel % 4] + " * w" + text_of(plane) + "_" +
               text_of(r * spec_.s + s);
      }
    }
    if (has_bias(spec_)) sum += (sum.empty() ? "bias" : " + bias") + text_of(plane);
    text_.line("float y", at, " = ", sum.empty() ? writer_.zero() : sum, ";");
  }

  void need(std::int64_t texel) {
    if (!loaded_.insert(texel).second) return;
    text_.line(writer_.vector_type(), " x", texel, " = ", writer_.load("x", "first_x + " + text_of(texel)), ";");
  }

  const Conv2dSpec& spec_;
  const std::int64_t planes_;
  KernelWriter& writer_;
  Text& text_;
  std::set<std::int64_t> loaded_;
};

// Some whole rows of a plane, which may begin within a texel: a plane is whole texels, so that a texel is inside it or
// outside, and every value's place is a number counted from the band's beginning.
class BandText {
 public:
  BandText(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer)
      : spec_(spec),
        rows_(choice.rows),
        bands_(spec.out_h() / choice.rows),
        step_(choice.rows * spec.stride_y * spec.w / 4),
        plane_(spec.h * spec.w / 4),
        writer_(writer),
        text_(writer.body()),
        loads_(writer, Element::vector, bands_, step_, plane_) {}

  void write() {
    const std::int64_t outputs = rows_ * spec_.out_w();
    write_weights(writer_, spec_, "channel", 0);
    text_.line("int band = part * ", step_, ";");
    text_.line("int first_x = (layer * ", spec_.c, " + channel) * ", plane_, " + band;");
    text_.line("int first_y = ((layer * ", spec_.c, " + channel) * ", bands_, " + part) * ", outputs / 4, ";");
    for (std::int64_t at = 0; at < outputs; ++at) {
      write_output(at);
      if (at % 4 != 3) continue;
      const std::string value =
          writer_.vector("y" + text_of(at - 3), "y" + text_of(at - 2), "y" + text_of(at - 1), "y" + text_of(at));
      text_.line(writer_.store("y", "first_y + " + text_of(at / 4), finished(writer_, spec_, value)));
    }
  }

 private:
  void write_output(std::int64_t at) {
    const std::int64_t oy = at / spec_.out_w(), ox = at % spec_.out_w();
    std::string sum;
    for (std::int64_t r = 0; r < spec_.r; ++r) {
      const std::int64_t iy = oy * spec_.stride_y + r * spec_.dilation_y - spec_.pad_y;
      for (std::int64_t s = 0; s < spec_.s; ++s) {
        const std::int64_t ix = ox * spec_.stride_x + s * spec_.dilation_x - spec_.pad_x;
        if (ix < 0 || ix >= spec_.w) continue;
        const std::int64_t pixel = iy * spec_.w + ix, texel = floor_divide(pixel, 4);
        const std::string loaded = loads_.at(texel);
        if (loaded.empty()) continue;
        if (!sum.empty()) sum += " + ";
        sum += loaded + "." + "xyzw"[pixel - 4 * texel] + " * w0_" + text_of(r * spec_.s + s);
      }
    }
    if (has_bias(spec_)) sum += sum.empty() ? "bias0" : " + bias0";
    text_.line("float y", at, " = ", sum.empty() ? writer_.zero() : sum, ";");
  }

  const Conv2dSpec& spec_;
  const std::int64_t rows_, bands_;
  const std::int64_t step_, plane_;  // texels from band to band, of a plane
  KernelWriter& writer_;
  Text& text_;
  BandLoads loads_;
};

// A block of a plane, whose rows are whole texels: a texel is inside the input or outside it, never both.
class BlockText {
 public:
  BlockText(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer)
      : spec_(spec), choice_(choice), writer_(writer), text_(writer.body()) {}

  void write() {
    const std::int64_t blocks_x = divide_up(spec_.out_w(), choice_.x);
    text_.line("int x0 = part % ", writer_.number("blocks_x", blocks_x), " * ", choice_.x, ";");
    text_.line("int y0 = part / ", writer_.number("blocks_x", blocks_x), " * ", choice_.y, ";");
    write_weights(writer_, spec_, "channel", 0);
    const std::string channels = writer_.number("channels", spec_.c);
    text_.line("int plane_x = (layer * ", channels, " + channel) * ", writer_.number("plane", spec_.h * spec_.w / 4),
               ";");
    text_.line("int plane_y = (layer * ", channels, " + channel) * ",
               writer_.number("out_plane", spec_.out_h() * spec_.out_w() / 4), ";");
    for (const std::int64_t texel : texels()) {
      text_.line("int t", name_of(texel), " = x0 * ", spec_.stride_x, " / 4 + ", texel, ";");
      const std::string t = "t" + name_of(texel);
      in_[texel] =
          within(t, texel, (blocks_x - 1) * choice_.x * spec_.stride_x / 4 + texel, "width_quads", spec_.w / 4);
      if (!in_[texel].empty()) text_.line("bool in", name_of(texel), " = ", in_[texel], ";");
    }
    for (std::int64_t y = 0; y < choice_.y; ++y) write_row(y);
  }

 private:
  std::int64_t column_of(std::int64_t x, std::int64_t s) const {
    return x * spec_.stride_x + s * spec_.dilation_x - spec_.pad_x;
  }
  std::set<std::int64_t> texels() const {
    std::set<std::int64_t> found;
    for (std::int64_t x = 0; x < choice_.x; ++x) {
      for (std::int64_t s = 0; s < spec_.s; ++s) found.insert(floor_divide(column_of(x, s), 4));
    }
    return found;
  }

  // The condition of a place that is `first` in the first block and `last` in the last to lie below `end`, and not
  // below zero; empty: it always does.
  std::string within(const std::string& place, std::int64_t first, std::int64_t last, const char* name_of_end,
                     std::int64_t end) {
    std::string condition;
    if (first < 0) condition = place + " >= 0";
    if (writer_.any_shape() || last >= end) {
      condition += (condition.empty() ? "" : " && ") + place + " < " + writer_.number(name_of_end, end);
    }
    return condition;
  }

  void need_row(std::int64_t row) {
    if (!loaded_.insert(row).second) return;
    text_.line("int iy", row, " = y0 * ", spec_.stride_y, " + ", row - spec_.pad_y, ";");
    const std::int64_t first = row - spec_.pad_y;
    const std::int64_t last = (divide_up(spec_.out_h(), choice_.y) - 1) * choice_.y * spec_.stride_y + first;
    const std::string inside = within("iy" + text_of(row), first, last, "height", spec_.h);
    if (!inside.empty()) text_.line("bool within", row, " = ", inside, ";");
    for (const std::int64_t texel : texels()) {
      const std::string at =
          "plane_x + iy" + text_of(row) + " * " + writer_.number("width_quads", spec_.w / 4) + " + t" + name_of(texel);
      std::string guard = inside.empty() ? std::string() : "within" + text_of(row);
      if (!in_[texel].empty()) guard += (guard.empty() ? "in" : " && in") + name_of(texel);
      const std::string value = writer_.load("x", at);
      text_.line(writer_.vector_type(), " x", row, "_", name_of(texel), " = ",
                 guard.empty() ? value : guard + " ? " + value + " : " + writer_.splat(writer_.zero()), ";");
    }
  }

  void write_row(std::int64_t y) {
    for (std::int64_t r = 0; r < spec_.r; ++r) need_row(y * spec_.stride_y + r * spec_.dilation_y);
    for (std::int64_t x = 0; x < choice_.x; ++x) {
      std::string sum;
      for (std::int64_t r = 0; r < spec_.r; ++r) {
        for (std::int64_t s = 0; s < spec_.s; ++s) {
          const std::int64_t column = column_of(x, s), texel = floor_divide(column, 4);
          if (!sum.empty()) sum += " + ";
          sum += "x" + text_of(y * spec_.stride_y + r * spec_.dilation_y) + "_" + name_of(texel) + "." +
                 "xyzw"[column - 4 * texel] + " * w0_" + text_of(r * spec_.s + s);
        }
      }
      if (has_bias(spec_)) sum += " + bias0";
      text_.line("float y", y, "_", x, " = ", sum, ";");
      if (x % 4 == 3) write_store(y, x - 3);
    }
  }

  void write_store(std::int64_t y, std::int64_t x) {
    std::string guard;
    const bool any = writer_.any_shape();
    if (y > 0 && (any || spec_.out_h() % choice_.y != 0)) {
      guard = "y0 + " + text_of(y) + " < " + writer_.number("out_height", spec_.out_h());
    }
    if (x > 0 && (any || spec_.out_w() % choice_.x != 0)) {
      if (!guard.empty()) guard += " && ";
      guard += "x0 + " + text_of(x) + " < " + writer_.number("out_width", spec_.out_w());
    }
    std::string value[4];
    for (std::int64_t i = 0; i < 4; ++i) value[i] = "y" + text_of(y) + "_" + text_of(x + i);
    const std::string at = "plane_y + (y0 + " + text_of(y) + ") * " + writer_.number("out_quads", spec_.out_w() / 4) +
                           " + x0 / 4 + " + text_of(x / 4);
    text_.line(
        guard.empty() ? std::string() : "if (" + guard + ") ",
        writer_.store("y", at, finished(writer_, spec_, writer_.vector(value[0], value[1], value[2], value[3]))));
  }

  const Conv2dSpec& spec_;
  const Depthwise& choice_;
  KernelWriter& writer_;
  Text& text_;
  std::map<std::int64_t, std::string> in_;  // the guard of each texel of a row
  std::set<std::int64_t> loaded_;
};

// Lanes over the parts of all planes, the parts of one side by side.
Result<LaneMap> lanes_over(std::int64_t parts, std::int64_t planes, std::int64_t images, const DeviceInfo& device,
                           const Form& form) {
  const std::int64_t lanes = parts * planes;
  return map_lanes({extent(lanes), 1, extent(images)}, device, form,
                   form.any_shape() ? usual_workgroup : workgroup_for_few(static_cast<std::uint64_t>(lanes), device));
}

// The channel of a lane, and which part of its plane.
void write_channel(KernelWriter& writer, std::int64_t parts) {
  const std::string number = writer.number("parts", parts);
  writer.body().line("int channel = column / ", number, ";");
  writer.body().line("int part = column % ", number, ";");
}

}  // namespace

Result<Pass> depthwise_planes_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                   const Form& form) {
  const auto map = lanes_over(1, spec.c / choice.planes, spec.n, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/planes: whole planes a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  PlanesText(spec, choice, writer).write();
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> depthwise_bands_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                  const Form& form) {
  const std::int64_t bands = spec.out_h() / choice.rows;
  const auto map = lanes_over(bands, spec.c, spec.n, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/bands: some rows of a plane a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_channel(writer, bands);
  BandText(spec, choice, writer).write();
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> depthwise_blocked_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                    const Form& form) {
  const std::int64_t blocks = divide_up(spec.out_w(), choice.x) * divide_up(spec.out_h(), choice.y);
  const auto map = lanes_over(blocks, spec.c, spec.n, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/blocked: a block of a plane a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_channel(writer, blocks);
  BlockText(spec, choice, writer).write();
  return writer.take(map->workgroup, map->grid);
}

}  // namespace kiln::dynamic_shaders
