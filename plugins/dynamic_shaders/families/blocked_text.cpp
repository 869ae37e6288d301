#include "dynamic_shaders/families/blocking.hpp"

#include <set>

#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {
namespace {

template <class... Parts>
std::string name(const char* letter, const Parts&... parts) {
  std::string whole = letter;
  bool first = true;
  const auto add = [&](std::int64_t part) {
    if (!first) whole += '_';
    first = false;
    whole += std::to_string(part);
  };
  (add(parts), ...);
  return whole;
}

class BlockedText {
 public:
  BlockedText(const ConvShape& shape, const Blocking& blocking, const Form& form, const BlockedBindings& bindings)
      : shape_(shape),
        b_(blocking),
        e_(extents_of(shape, blocking)),
        quads_(blocking.k / 4),
        wide_(e_.wide_stores),
        writer_(form, "direct/blocked: each lane adds up " + text_of(blocking.k) + " channels of " +
                          text_of(blocking.x) + " x " + text_of(blocking.y) + " outputs"),
        text_(writer_.body()) {
    writer_.bind("x", Element::vector, Access::read, bindings.activations, blocking.view);
    writer_.bind("w", Element::vector, Access::read, bindings.weights, blocking.view);
    if (shape.bias) writer_.bind("bias", Element::scalar, Access::read, bindings.bias);
    writer_.bind("y", wide_ ? Element::vector : Element::scalar, Access::write, bindings.output);
  }

  Pass write() {
    write_places();
    write_accumulators();
    if (e_.round_steps == 1) {
      text_.open("for (int step = 0; step < ", number("steps", e_.steps), "; ++step)");
      write_step();
      text_.close();
    } else {
      text_.open("for (int round = 0; round < ", number("steps", e_.steps), "; round += ", e_.round_steps, ")");
      for (std::int64_t i = 0; i < e_.round_steps; ++i) {
        text_.line("{");
        text_.line("int step = round + ", i, ";");
        write_step();
        text_.line("}");
      }
      text_.close();
    }
    write_results();
    return writer_.take({static_cast<std::uint32_t>(b_.workgroup), 1, 1}, narrow(e_.grid));
  }

 private:
  void write_step() {
    if (b_.rows == Rows::looped && shape_.r > 1) {
      text_.open("for (int r = 0; r < ", shape_.r, "; ++r)");
      write_rows(true);
      text_.close();
    } else {
      write_rows(false);
    }
  }

  bool guarded() const { return b_.border == Border::guarded; }
  bool pixels() const { return b_.packing != Packing::channels; }
  bool any() const { return writer_.any_shape(); }
  std::int64_t lanes() const { return shape_.groups * e_.k_lanes; }  // over all channels
  std::string number(const char* what, std::int64_t value, std::int64_t factor = 1, std::int64_t plus = 0) {
    return writer_.number(what, value, factor, plus);
  }
  std::int64_t row_quads() const { return shape_.s * quads_; }  // of weights a lane, of one kernel row of one channel
  // So many texels of weights for each lane.
  std::string weights(std::int64_t factor) { return number("k_lanes", e_.k_lanes, factor); }

  void write_places() {
    const std::int64_t blocks = e_.blocks_x * e_.blocks_y;
    if (b_.lanes == Lanes::channels) {
      const std::int64_t parts = e_.k_lanes / b_.workgroup;
      text_.line("int block = ", writer_.group(0), ";");
      const std::string part = number("parts", parts);
      text_.line("int group = ", writer_.group(1), " / ", part, ";");
      text_.line("int k_lane = ", writer_.group(1), " % ", part, " * ", b_.workgroup, " + ", writer_.lane(0), ";");
    } else if (b_.lanes == Lanes::groups) {
      text_.line("int block = ", writer_.group(0), ";");
      text_.line("int lane = ", writer_.group(1), " * ", b_.workgroup, " + ", writer_.lane(0), ";");
      if (any() || lanes() % b_.workgroup != 0) text_.line("if (lane >= ", number("lanes", lanes()), ") return;");
      text_.line("int group = lane / ", weights(1), ";");
      text_.line("int k_lane = lane % ", weights(1), ";");
    } else {
      text_.line("int block = ", writer_.globally(0), ";");
      if (any() || blocks % b_.workgroup != 0) text_.line("if (block >= ", number("blocks", blocks), ") return;");
      text_.line("int group = ", writer_.group(1), " / ", weights(1), ";");
      text_.line("int k_lane = ", writer_.group(1), " % ", weights(1), ";");
    }
    text_.line("int image = ", writer_.group(2), ";");
    text_.line("int x0 = block % ", number("blocks_x", e_.blocks_x), " * ", b_.x, ";");
    text_.line("int y0 = block / ", number("blocks_x", e_.blocks_x), " * ", b_.y, ";");
    text_.line("int first_x = (image * ", number("groups", shape_.groups), " + group) * ",
               number("group_texels", e_.steps * e_.packed_h * e_.packed_w), ";");
    text_.line("int first_w = group * ",
               number("group_weights", e_.steps * e_.step_c * shape_.r * row_quads() * e_.k_lanes), " + k_lane;");
    if (guarded()) {
      for (const std::int64_t column : columns()) {
        text_.line("int ix", column, " = x0 * ", shape_.stride_x, " + ", number("pad_x", shape_.pad_x, -1, column),
                   ";");
        text_.line("bool in", column, " = ix", column, " >= 0 && ix", column, " < ", number("width", shape_.w), ";");
      }
    } else if (clamped()) {
      for (const std::int64_t texel : texels()) {
        text_.line("int q", texel, " = min(x0 / 4 + ", texel, ", ", number("packed_w", e_.packed_w, 1, -1), ");");
      }
    } else {
      text_.line("first_x += y0 * ", number("packed_w", e_.packed_w, shape_.stride_y), " + x0 * ", shape_.stride_x,
                 pixels() ? " / 4;" : ";");
    }
  }

  // Without a border in memory the last block may reach beyond the plane: what it reads there is never stored.
  bool clamped() const { return b_.packing == Packing::plane; }

  void write_accumulators() {
    const std::string nothing = writer_.splat(writer_.zero());
    for (std::int64_t y = 0; y < b_.y; ++y) {
      for (std::int64_t x = 0; x < b_.x; ++x) {
        for (std::int64_t q = 0; q < quads_; ++q) {
          text_.line(writer_.vector_type(), " ", name("a", y, x, q), " = ", nothing, ";");
        }
      }
    }
  }

  std::set<std::int64_t> columns() const {
    std::set<std::int64_t> found;
    for (std::int64_t x = 0; x < b_.x; ++x) {
      for (std::int64_t s = 0; s < shape_.s; ++s) found.insert(x * shape_.stride_x + s * shape_.dilation_x);
    }
    return found;
  }
  std::set<std::int64_t> texels() const {
    std::set<std::int64_t> found;
    for (const std::int64_t column : columns()) found.insert(pixels() ? column / 4 : column);
    return found;
  }

  // One step's terms; `looped`: of the kernel row r, else of all of them.
  void write_rows(bool looped) {
    text_.line("int at_x = first_x + step * ", number("plane_texels", e_.packed_h * e_.packed_w),
               looped && !guarded() ? " + r * " + number("packed_w", e_.packed_w, shape_.dilation_y) : std::string(),
               ";");
    text_.line("int at_w = first_w + step * ", weights(e_.step_c * shape_.r * row_quads()),
               looped ? " + r * " + weights(row_quads()) : std::string(), ";");
    const std::int64_t kernel_rows = looped ? 1 : shape_.r;
    for (std::int64_t r = 0; r < kernel_rows; ++r) write_weights(r);
    std::set<std::int64_t> rows;
    for (std::int64_t y = 0; y < b_.y; ++y) {
      for (std::int64_t r = 0; r < kernel_rows; ++r) rows.insert(y * shape_.stride_y + r * shape_.dilation_y);
    }
    for (const std::int64_t row : rows) {
      write_loads(row, looped);
      for (std::int64_t y = 0; y < b_.y; ++y) {
        for (std::int64_t r = 0; r < kernel_rows; ++r) {
          if (y * shape_.stride_y + r * shape_.dilation_y == row) write_terms(y, r, row);
        }
      }
    }
  }

  void write_weights(std::int64_t r) {
    for (std::int64_t s = 0; s < shape_.s; ++s) {
      for (std::int64_t c = 0; c < e_.step_c; ++c) {
        for (std::int64_t q = 0; q < quads_; ++q) {
          const std::int64_t offset = (c * shape_.r + r) * row_quads() + s * quads_ + q;
          text_.line(writer_.vector_type(), " ", name("w", r, s, c, q), " = ",
                     writer_.load("w", "at_w + " + weights(offset)), ";");
        }
      }
    }
  }

  void write_loads(std::int64_t row, bool looped) {
    if (guarded()) {
      text_.line("int iy", row, " = y0 * ", shape_.stride_y, " + ", number("pad_y", shape_.pad_y, -1, row),
                 looped ? " + r * " + text_of(shape_.dilation_y) : std::string(), ";");
      text_.line("bool within", row, " = iy", row, " >= 0 && iy", row, " < ", number("height", shape_.h), ";");
    }
    for (const std::int64_t texel : texels()) {
      std::string value;
      const std::string column = text_of(texel);
      if (guarded()) {
        const std::string at = "at_x + iy" + text_of(row) + " * " + number("packed_w", e_.packed_w) + " + ix" + column;
        value = "within" + text_of(row) + " && in" + column + " ? " + writer_.load("x", at) + " : " +
                writer_.splat(writer_.zero());
      } else if (clamped()) {
        value = writer_.load("x", "at_x + q" + column);
      } else {
        value = writer_.load("x", "at_x + " + number("packed_w", e_.packed_w, row, texel));
      }
      text_.line(writer_.vector_type(), " ", name("x", row, texel), " = ", value, ";");
    }
  }

  void write_terms(std::int64_t y, std::int64_t r, std::int64_t row) {
    for (std::int64_t x = 0; x < b_.x; ++x) {
      for (std::int64_t s = 0; s < shape_.s; ++s) {
        const std::int64_t column = x * shape_.stride_x + s * shape_.dilation_x;
        for (std::int64_t c = 0; c < e_.step_c; ++c) {
          const std::string value =
              name("x", row, pixels() ? column / 4 : column) + "." + "xyzw"[pixels() ? column % 4 : c];
          for (std::int64_t q = 0; q < quads_; ++q) {
            text_.line(name("a", y, x, q), " += ", value, " * ", name("w", r, s, c, q), ";");
          }
        }
      }
    }
  }

  std::string finished(std::string value, std::int64_t k) {
    if (shape_.bias) value = value + " + " + name("bias", k);
    return writer_.activated(value, shape_.activation);
  }
  std::string accumulated(std::int64_t y, std::int64_t x, std::int64_t k) const {
    return name("a", y, x, k / 4) + "." + "xyzw"[k % 4];
  }

  void write_results() {
    const bool every_lane = !any() && shape_.k == e_.k_lanes * b_.k;
    const std::int64_t plane = shape_.out_h * shape_.out_w;
    text_.line("int k = k_lane * ", b_.k, ";");
    text_.line("int plane = ((image * ", number("groups", shape_.groups), " + group) * ", number("filters", shape_.k),
               " + k) * ", number("out_plane", wide_ ? plane / 4 : plane), ";");
    for (std::int64_t k = 0; k < b_.k; ++k) {
      if (every_lane) {
        text_.line("{");
      } else {
        text_.line("if (k + ", k, " < ", number("filters", shape_.k), ") {");
      }
      if (shape_.bias) {
        text_.line("  float ", name("bias", k), " = ",
                   writer_.load("bias", "group * " + number("filters", shape_.k) + " + k + " + text_of(k)), ";");
      }
      wide_ ? write_wide(k, plane) : write_narrow(k, plane);
      text_.line("}");
    }
  }

  void write_narrow(std::int64_t k, std::int64_t plane) {
    for (std::int64_t y = 0; y < b_.y; ++y) {
      for (std::int64_t x = 0; x < b_.x; ++x) {
        const std::string at = "plane + " + number("out_plane", plane, k) + " + (y0 + " + text_of(y) + ") * " +
                               number("out_width", shape_.out_w) + " + x0 + " + text_of(x);
        text_.line("  ", within(y, x), writer_.store("y", at, finished(accumulated(y, x, k), k)));
      }
    }
  }

  void write_wide(std::int64_t k, std::int64_t plane) {
    const bool run = !(shape_.out_w % 4 == 0 && b_.x % 4 == 0);
    for (std::int64_t first = 0; first < b_.x * b_.y; first += 4) {
      std::string value[4];
      for (std::int64_t i = 0; i < 4; ++i) value[i] = accumulated((first + i) / b_.x, (first + i) % b_.x, k);
      const std::string values = finished(writer_.vector(value[0], value[1], value[2], value[3]), k);
      const std::int64_t y = first / b_.x, x = first % b_.x;
      std::string at = "plane + " + number("out_plane", plane / 4, k);
      if (run) {
        at += " + y0 * " + number("out_width", shape_.out_w) + " / 4 + " + text_of(first / 4);
      } else {
        at +=
            " + (y0 + " + text_of(y) + ") * " + number("out_quads", shape_.out_w / 4) + " + x0 / 4 + " + text_of(x / 4);
      }
      text_.line("  ", run ? std::string() : within(y, x), writer_.store("y", at, values));
    }
  }

  // The condition of a store in a block that may reach beyond the result.
  std::string within(std::int64_t y, std::int64_t x) {
    std::string condition;
    if ((any() || shape_.out_h % b_.y != 0) && y > 0) {
      condition = "y0 + " + text_of(y) + " < " + number("out_height", shape_.out_h);
    }
    if ((any() || shape_.out_w % b_.x != 0) && x > 0) {
      if (!condition.empty()) condition += " && ";
      condition += "x0 + " + text_of(x) + " < " + number("out_width", shape_.out_w);
    }
    return condition.empty() ? condition : "if (" + condition + ") ";
  }

  const ConvShape& shape_;
  const Blocking& b_;
  const BlockedExtents e_;
  const std::int64_t quads_;
  const bool wide_;
  KernelWriter writer_;
  Text& text_;
};

}  // namespace

Pass blocked_pass(const ConvShape& shape, const Blocking& blocking, const Form& form, const BlockedBindings& bindings) {
  return BlockedText(shape, blocking, form, bindings).write();
}

}  // namespace kiln::dynamic_shaders
