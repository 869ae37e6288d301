#include "dynamic_shaders/families/gemm.hpp"

#include <algorithm>
#include <limits>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/shared_tile.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view family = "gemm/blocked:";
constexpr View views[] = {View::storage, View::texels, View::image};

Status does_not_fit(const std::string& what) { return unsupported("gemm/blocked: " + what); }

bool whole_columns(const GemmSpec& spec) noexcept { return spec.n % 4 == 0; }
bool whole_depth(const GemmSpec& spec) noexcept { return spec.k % 4 == 0; }
// What a pass pads: texels of the second factor.
Triple padded_box(const GemmSpec& spec) noexcept { return {quads_of(spec), spec.k, 1}; }
Triple grid_of(const GemmSpec& spec, const GemmBlocking& b) noexcept {
  return tile_grid(spec, b.rows, 4 * b.quads * b.workgroup);
}

class GemmText {
 public:
  GemmText(const GemmSpec& spec, const GemmBlocking& blocking, const Form& form, Binding factor)
      : spec_(spec),
        b_(blocking),
        quads_(quads_of(spec)),
        bias_(spec.bias == Bias::per_channel),
        writer_(form, "gemm/blocked: each lane adds up " + text_of(blocking.rows) + " rows of " +
                          text_of(4 * blocking.quads) + " columns"),
        text_(writer_.body()) {
    const bool deep = whole_depth(spec);
    writer_.bind("a", deep ? Element::vector : Element::scalar, Access::read, {BindingSource::tensor, 0},
                 deep ? blocking.view : View::storage);
    writer_.bind("b", Element::vector, Access::read, factor, blocking.view);
    const Element column = whole_columns(spec) ? Element::vector : Element::scalar;
    if (bias_) writer_.bind("bias", column, Access::read, {BindingSource::tensor, 2});
    writer_.bind("c", column, Access::write, {BindingSource::tensor, bias_ ? 3u : 2u});
  }

  Pass write() {
    write_places();
    if (whole_depth(spec_)) {
      text_.open("for (int step = 0; step < ", number("steps", spec_.k / 4), "; ++step)");
      write_depths(4);
    } else {
      text_.open("for (int step = 0; step < ", number("steps", spec_.k), "; ++step)");
      write_depths(1);
    }
    text_.close();
    for (std::int64_t row = 0; row < b_.rows; ++row) write_row(row);
    return writer_.take({static_cast<std::uint32_t>(b_.workgroup), 1, 1}, narrow(grid_of(spec_, b_)));
  }

 private:
  bool spare_columns() const { return writer_.any_shape() || quads_ % (b_.workgroup * b_.quads) != 0; }
  bool spare_rows() const { return writer_.any_shape() || spec_.m % b_.rows != 0; }
  std::string number(const char* what, std::int64_t value, std::int64_t factor = 1, std::int64_t plus = 0) {
    return writer_.number(what, value, factor, plus);
  }
  static std::string sum(std::int64_t row, std::int64_t quad) { return "s" + text_of(row) + "_" + text_of(quad); }

  // What lies beyond the product is read where its last row or quad is, and never stored.
  void write_places() {
    for (std::int64_t quad = 0; quad < b_.quads; ++quad) {
      const std::string at = writer_.group(0) + " * " + text_of(b_.workgroup * b_.quads) + " + " +
                             text_of(quad * b_.workgroup) + " + " + writer_.lane(0);
      text_.line("int quad", quad, " = ", at, ";");
      if (spare_columns())
        text_.line("int from", quad, " = min(quad", quad, ", ", number("quads", quads_, 1, -1), ");");
    }
    text_.line("int row0 = ", writer_.group(1), " * ", b_.rows, ";");
    const std::int64_t steps = whole_depth(spec_) ? spec_.k / 4 : spec_.k;
    for (std::int64_t row = 0; row < b_.rows; ++row) {
      const std::string at = "row0 + " + text_of(row);
      text_.line("int a", row, " = ",
                 spare_rows() ? "min(" + at + ", " + number("rows", spec_.m, 1, -1) + ")" : "(" + at + ")", " * ",
                 number("steps", steps), ";");
    }
    for (std::int64_t row = 0; row < b_.rows; ++row) {
      for (std::int64_t quad = 0; quad < b_.quads; ++quad) {
        text_.line(writer_.vector_type(), " ", sum(row, quad), " = ", writer_.splat(writer_.zero()), ";");
      }
    }
  }

  // One step of the loop, of so many depths.
  void write_depths(std::int64_t depths) {
    const bool vectors = depths == 4;
    for (std::int64_t row = 0; row < b_.rows; ++row) {
      text_.line(vectors ? writer_.vector_type() : "float", " v", row, " = ",
                 writer_.load("a", "a" + text_of(row) + " + step"), ";");
    }
    text_.line("int b_row = step * ", number("quads", quads_, depths), ";");
    for (std::int64_t depth = 0; depth < depths; ++depth) {
      for (std::int64_t quad = 0; quad < b_.quads; ++quad) {
        const std::string name = "w" + text_of(depth) + "_" + text_of(quad);
        const std::string at = (spare_columns() ? "from" : "quad") + text_of(quad);
        text_.line(writer_.vector_type(), " ", name, " = ",
                   writer_.load("b", "b_row + " + number("quads", quads_, depth) + " + " + at), ";");
        for (std::int64_t row = 0; row < b_.rows; ++row) {
          const std::string value = "v" + text_of(row) + (vectors ? std::string(".") + "xyzw"[depth] : std::string());
          text_.line(sum(row, quad), " += ", value, " * ", name, ";");
        }
      }
    }
  }

  void write_row(std::int64_t row) {
    if (spare_rows() && row > 0) {
      text_.line("if (row0 + ", row, " < ", number("rows", spec_.m), ") {");
    } else {
      text_.line("{");
    }
    for (std::int64_t quad = 0; quad < b_.quads; ++quad) {
      if (spare_columns()) {
        text_.line("  if (quad", quad, " < ", number("quads", quads_), ") {");
      } else {
        text_.line("  {");
      }
      whole_columns(spec_) ? write_quad(row, quad) : write_columns(row, quad);
      text_.line("  }");
    }
    text_.line("}");
  }

  void write_quad(std::int64_t row, std::int64_t quad) {
    const std::string at = "quad" + text_of(quad);
    if (bias_) text_.line("    ", sum(row, quad), " += ", writer_.load("bias", at), ";");
    std::string value = sum(row, quad);
    value = writer_.activated(value, spec_.activation);
    text_.line("    ",
               writer_.store("c", "(row0 + " + text_of(row) + ") * " + number("quads", quads_) + " + " + at, value));
  }

  void write_columns(std::int64_t row, std::int64_t quad) {
    for (int i = 0; i < 4; ++i) {
      const std::string column = "quad" + text_of(quad) + " * 4 + " + text_of(i);
      std::string value = sum(row, quad) + "." + "xyzw"[i];
      if (bias_) value += " + " + writer_.load("bias", column);
      value = writer_.activated(value, spec_.activation);
      const std::string columns = number("columns", spec_.n);
      text_.line("    if (", column, " < ", columns, ") ",
                 writer_.store("c", "(row0 + " + text_of(row) + ") * " + columns + " + " + column, value));
    }
  }

  const GemmSpec& spec_;
  const GemmBlocking& b_;
  const std::int64_t quads_;
  const bool bias_;
  KernelWriter writer_;
  Text& text_;
};

// Rows of whole texels, with zeros behind their last columns.
Result<Pass> pad_columns(const GemmSpec& spec, const DeviceInfo& device, const Form& form, Binding to) {
  const auto map = map_lanes(narrow(padded_box(spec)), device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "pad columns: four of a row in a texel");
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  writer.bind("packed_weights", Element::vector, Access::write, to);
  Text& text = writer.body();
  text.lines(map->decoding(writer));
  std::string value[4];
  for (int i = 0; i < 4; ++i) {
    const std::string at = "column * 4 + " + text_of(i);
    value[i] = "v" + text_of(i);
    const std::string width = writer.number("width", spec.n);
    text.line("float v", i, " = ", at, " < ", width, " ? ", writer.load("weights", "row * " + width + " + " + at),
              " : ", writer.zero(), ";");
  }
  text.line(writer.store("packed_weights", "row * " + writer.number("quads", quads_of(spec)) + " + column",
                         writer.vector(value[0], value[1], value[2], value[3])));
  return writer.take(map->workgroup, map->grid);
}

}  // namespace

std::string gemm_variant(const GemmBlocking& blocking) {
  std::string id(family);
  id += "rows=" + text_of(blocking.rows) + ",quads=" + text_of(blocking.quads) + ",view=";
  id += to_string(blocking.view);
  id += ",workgroup=" + text_of(blocking.workgroup);
  return id;
}

std::optional<GemmBlocking> gemm_blocking_of(std::string_view variant) {
  const std::string_view id = variant;
  if (!variant.starts_with(family)) return std::nullopt;
  variant.remove_prefix(family.size());
  GemmBlocking blocking;
  if (!take_number(variant, "rows=", blocking.rows) || !take_number(variant, ",quads=", blocking.quads)) return {};
  for (const View view : views) {
    const std::string word = ",view=" + std::string(to_string(view)) + ",";
    if (!variant.starts_with(word)) continue;
    blocking.view = view;
    variant.remove_prefix(word.size() - 1);
  }
  if (!take_number(variant, ",workgroup=", blocking.workgroup) || !variant.empty()) return std::nullopt;
  if (blocking.view == View::invalid || gemm_variant(blocking) != id) return std::nullopt;
  return blocking;
}

std::int64_t quads_of(const GemmSpec& spec) noexcept { return divide_up(spec.n, 4); }

Status check_view(const GemmSpec& spec, View view, const DeviceInfo& device) {
  if (view == View::storage) return {};
  const std::uint32_t bindings = view == View::texels ? device.max_texel_bindings : device.max_image_bindings;
  if (bindings < 4) return does_not_fit("the device has no " + std::string(to_string(view)));
  for (const std::int64_t texels : {divide_up(spec.m * spec.k, 4), spec.k * quads_of(spec)}) {
    if (static_cast<std::uint64_t>(texels) > device.max_view_texels) {
      return does_not_fit(std::to_string(texels) + " texels in a view, the device takes at most " +
                          std::to_string(device.max_view_texels));
    }
  }
  return {};
}

Status check(const GemmSpec& spec, const GemmBlocking& b, const DeviceInfo& device) {
  if (b.rows < 1 || b.rows > 64 || b.quads < 1 || b.quads > 16) return does_not_fit("rows 1 to 64, quads 1 to 16");
  if (b.rows * b.quads * 4 > most_outputs) {
    return does_not_fit(text_of(b.rows * b.quads * 4) + " outputs a lane, at most " + text_of(most_outputs));
  }
  const std::int64_t most_lanes = std::min(device.max_workgroup_lanes, device.max_workgroup[0]);
  if (b.workgroup < 1 || b.workgroup > most_lanes) {
    return does_not_fit("a workgroup of " + text_of(b.workgroup) + " lanes, the device takes at most " +
                        text_of(most_lanes));
  }
  if ((whole_depth(spec) ? spec.k / 4 : spec.k) > most_iterations) {
    return does_not_fit("more rounds of a loop than " + text_of(most_iterations));
  }
  constexpr std::int64_t most_index = std::numeric_limits<std::int32_t>::max();
  if (spec.m + b.rows > most_index / spec.k || quads_of(spec) + b.workgroup * b.quads > most_index / 4 / spec.k ||
      spec.m + b.rows > most_index / spec.n) {
    return does_not_fit("an index beyond 32 bits");
  }
  if (!whole_columns(spec) && device.max_buffer_bytes != 0 &&
      static_cast<std::uint64_t>(spec.k * quads_of(spec)) * 16 > device.max_buffer_bytes) {
    return does_not_fit("the padded factor is larger than the device's buffers");
  }
  if (Status status = check_grid(grid_of(spec, b), device); !status.ok()) return does_not_fit(status.message);
  if (!whole_columns(spec)) {
    if (const auto lanes = map_lanes(narrow(padded_box(spec)), device); !lanes) return lanes.error();
  }
  return check_view(spec, b.view, device);
}

Result<KernelPlan> gemm_blocked(const GemmSpec& spec, const GemmBlocking& blocking, const DeviceInfo& device,
                                const Form& form) {
  KernelPlan plan;
  plan.variant = gemm_variant(blocking);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  if (Status status = check(spec, blocking, device); !status.ok()) return status;
  Binding factor{BindingSource::tensor, 1};
  if (!whole_columns(spec)) {
    factor = {BindingSource::prepared, 0};
    plan.prepared.push_back({1, "gemm/" + text_of(spec.k) + "/" + text_of(spec.n),
                             static_cast<std::uint64_t>(spec.k * quads_of(spec)) * 16});
    auto pad = pad_columns(spec, device, form, factor);
    if (!pad) return std::move(pad).error();
    plan.prepare.push_back(std::move(*pad));
  }
  plan.passes.push_back(GemmText(spec, blocking, form, factor).write());
  return plan;
}

namespace {

bool has_bias(const GemmSpec& spec) { return spec.bias == Bias::per_channel; }

Pass make_pass(const GemmSpec& spec, const LaneMap& map, const SumPart& part, const Form& form) {
  KernelWriter kernel(form, "gemm/plain: column and row are those of the product.");
  const auto bind = [&kernel](std::string_view name, Access access, std::uint32_t tensor) {
    kernel.bind(name, Element::scalar, access, {BindingSource::tensor, tensor});
  };
  bind("a", Access::read, 0);
  bind("b", Access::read, 1);
  if (has_bias(spec) && part.ends) bind("bias", Access::read, 2);
  bind("c", part.begins ? Access::write : Access::read_write, has_bias(spec) ? 3 : 2);
  Text& text = kernel.body();
  text.lines(map.decoding(kernel));
  text.line("int at = row * ", kernel.number("width", spec.n), " + column;");
  text.line("float sum = ", part.begins ? kernel.zero() : kernel.load("c", "at"), ";");
  text.open("for (int k = ", kernel.number("first_depth", part.first), "; k < ", kernel.number("end_depth", part.last),
            "; ++k)");
  text.line("sum += a[row * ", kernel.number("depth", spec.k), " + k] * b[k * ", kernel.number("width", spec.n),
            " + column];");
  text.close();
  if (part.ends && has_bias(spec)) text.line("sum += bias[column];");
  if (part.ends && spec.activation != Activation::none) {
    text.line("sum = ", kernel.activated("sum", spec.activation), ";");
  }
  text.line(kernel.store("c", "at", "sum"));
  return kernel.take(map.workgroup, map.grid);
}

}  // namespace

Result<KernelPlan> gemm_plain(const GemmSpec& spec, const DeviceInfo& device, const Form& form) {
  KernelPlan plan;
  plan.variant = "gemm/plain";
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  const auto map = map_lanes({static_cast<std::uint32_t>(spec.n), static_cast<std::uint32_t>(spec.m), 1}, device, form);
  if (!map) return map.error();

  for (const SumPart& part : parts_of(spec.k)) plan.passes.push_back(make_pass(spec, *map, part, form));
  return plan;
}

}  // namespace kiln::dynamic_shaders
