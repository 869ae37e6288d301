#include "dynamic_shaders/families/depthwise/block_text.hpp"

#include <map>
#include <set>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise/plane_outputs.hpp"

namespace kiln::dynamic_shaders {
namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

std::string name_of(std::int64_t value) { return value < 0 ? "m" + text_of(-value) : text_of(value); }

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
      if (spec_.bias == Bias::per_channel) sum += " + bias0";
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

}  // namespace

void write_block(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer) {
  BlockText(spec, choice, writer).write();
}

}  // namespace kiln::dynamic_shaders
