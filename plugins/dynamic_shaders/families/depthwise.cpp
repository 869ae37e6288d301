#include "dynamic_shaders/families/depthwise.hpp"

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/limits.hpp"

#include <map>
#include <set>

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view planes_family = "depthwise/planes:planes=";
constexpr std::string_view bands_family = "depthwise/bands:rows=";
constexpr std::string_view blocked_family = "depthwise/blocked:x=";
constexpr std::int64_t most_plane_outputs = 256, most_plane_inputs = 1024;
constexpr View views[] = {View::storage, View::texels, View::image};

Status does_not_fit(const std::string& what) { return unsupported("depthwise: " + what); }

Status check_planes(const Conv2dSpec& spec, std::int64_t planes) {
  const std::int64_t inputs = planes * spec.h * spec.w, outputs = planes * spec.out_h() * spec.out_w();
  if (planes > 8 || spec.c % planes != 0) return does_not_fit("planes must divide the channels");
  if (inputs % 4 != 0 || outputs % 4 != 0) return does_not_fit("a lane's planes must be whole texels");
  if (inputs > most_plane_inputs || outputs > most_plane_outputs ||
      outputs * spec.r * spec.s > most_unrolled_terms / 2) {
    return does_not_fit("planes too large to be unrolled");
  }
  return {};
}

Status check_bands(const Conv2dSpec& spec, std::int64_t rows) {
  if (rows < 1 || spec.out_h() % rows != 0) return does_not_fit("rows must divide the result's rows");
  if (spec.h * spec.w % 4 != 0) return does_not_fit("an input plane must be whole texels");
  if (rows * spec.stride_y * spec.w % 4 != 0 || rows * spec.out_w() % 4 != 0) {
    return does_not_fit("a band must begin at a texel");
  }
  if (rows * spec.out_w() > most_plane_outputs || rows * spec.out_w() * spec.r * spec.s > most_unrolled_terms / 2) {
    return does_not_fit("a band too large to be unrolled");
  }
  return {};
}

Status check_block(const Conv2dSpec& spec, const Depthwise& choice) {
  if (choice.x < 4 || choice.x % 4 != 0 || choice.y < 1) return does_not_fit("x must be a multiple of 4");
  if (spec.w % 4 != 0 || spec.out_w() % 4 != 0) return does_not_fit("rows must be whole texels");
  if (choice.x * choice.y > 128 || choice.x * choice.y * spec.r * spec.s > most_unrolled_terms / 2) {
    return does_not_fit("a block too large to be unrolled");
  }
  return {};
}

}  // namespace

std::string depthwise_variant(const Depthwise& choice) {
  std::string id(choice.planes != 0 ? planes_family : choice.rows != 0 ? bands_family : blocked_family);
  if (choice.planes != 0 || choice.rows != 0) {
    id += std::to_string(choice.planes != 0 ? choice.planes : choice.rows);
  } else {
    id += std::to_string(choice.x);
    id += ",y=";
    id += std::to_string(choice.y);
  }
  id += ",view=";
  id += to_string(choice.view);
  return id;
}

std::optional<Depthwise> depthwise_of(std::string_view variant) {
  const std::string_view id = variant;
  Depthwise choice;
  if (take_number(variant, planes_family, choice.planes)) {
    if (choice.planes < 1) return std::nullopt;
  } else if (take_number(variant, bands_family, choice.rows)) {
    if (choice.rows < 1) return std::nullopt;
  } else if (!take_number(variant, blocked_family, choice.x) || !take_number(variant, ",y=", choice.y)) {
    return std::nullopt;
  }
  for (const View view : views) {
    if (variant == ",view=" + std::string(to_string(view))) choice.view = view;
  }
  if (choice.view == View::invalid || depthwise_variant(choice) != id) return std::nullopt;
  return choice;
}

Status check(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device) {
  if (spec.groups != spec.c || spec.k != spec.c) return does_not_fit("one output channel for each input channel");
  Status fits = choice.planes != 0 ? check_planes(spec, choice.planes)
                : choice.rows != 0 ? check_bands(spec, choice.rows)
                                   : check_block(spec, choice);
  if (!fits.ok()) return fits;
  const auto texels = static_cast<std::uint64_t>(divide_up(spec.n * spec.c * spec.h * spec.w, 4));
  if (choice.view == View::texels && (device.max_texel_bindings == 0 || texels > device.max_view_texels)) {
    return does_not_fit("the device's texel buffers do not hold the input");
  }
  if (choice.view == View::image && (device.max_image_bindings == 0 || texels > device.max_view_texels)) {
    return does_not_fit("the device's image buffers do not hold the input");
  }
  if (const auto lanes = depthwise_lanes(spec, choice, device, Form()); !lanes) return lanes.error();
  return {};
}

std::vector<Depthwise> depthwise_space(const Conv2dSpec& spec, const DeviceInfo& device) {
  std::vector<Depthwise> space;
  const auto consider = [&](Depthwise choice) {
    for (const View view : views) {
      choice.view = view;
      if (check(spec, choice, device).ok()) space.push_back(choice);
    }
  };
  if (spec.groups != spec.c || spec.k != spec.c) return space;
  for (const std::int64_t planes : {1, 2, 4}) consider({planes, 0, 0, 0, View::invalid});
  for (const std::int64_t rows : {1, 2, 4, 7, 8, 14}) consider({0, rows, 0, 0, View::invalid});
  for (const std::int64_t x : {4, 8, 12, 16, 28}) {
    if (x > round_up(spec.out_w(), 4)) continue;
    for (const std::int64_t y : {1, 2, 4, 7, 8}) {
      if (y <= spec.out_h()) consider({0, 0, x, y, View::invalid});
    }
  }
  return space;
}

Result<KernelPlan> depthwise(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                             const Form& form) {
  KernelPlan plan;
  plan.variant = depthwise_variant(choice);
  plan.tensors = tensors_of(spec);
  if (Status status = check_limits(plan.tensors, device); !status.ok()) return status;
  if (Status status = check(spec, choice, device); !status.ok()) return status;
  if (form.any_shape() && (choice.planes != 0 || choice.rows != 0)) {
    return does_not_fit("planes and bands are written for one shape: every index of theirs is a number");
  }
  auto pass = choice.planes != 0 ? depthwise_planes_pass(spec, choice, device, form)
              : choice.rows != 0 ? depthwise_bands_pass(spec, choice, device, form)
                                 : depthwise_blocked_pass(spec, choice, device, form);
  if (!pass) return std::move(pass).error();
  plan.passes.push_back(std::move(*pass));
  return plan;
}

namespace {

std::uint32_t extent(std::int64_t value) { return static_cast<std::uint32_t>(value); }

void bind_tensors(KernelWriter& writer, const Conv2dSpec& spec, View view) {
  const bool biased = spec.bias == Bias::per_channel;
  writer.bind("x", Element::vector, Access::read, {BindingSource::tensor, 0}, view);
  writer.bind("weights", Element::scalar, Access::read, {BindingSource::tensor, 1});
  if (biased) writer.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
  writer.bind("y", Element::vector, Access::write, {BindingSource::tensor, biased ? 3u : 2u});
}

// Parts of a plane, one a lane.
std::int64_t parts_of(const Conv2dSpec& spec, const Depthwise& choice) {
  if (choice.planes != 0) return 1;
  if (choice.rows != 0) return spec.out_h() / choice.rows;
  return divide_up(spec.out_w(), choice.x) * divide_up(spec.out_h(), choice.y);
}

// The channel of a lane, and which part of its plane.
void write_channel(KernelWriter& writer, std::int64_t parts) {
  const std::string number = writer.number("parts", parts);
  writer.body().line("int channel = column / ", number, ";");
  writer.body().line("int part = column % ", number, ";");
}

}  // namespace

Result<LaneMap> depthwise_lanes(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                const Form& form) {
  const std::int64_t lanes = parts_of(spec, choice) * (choice.planes != 0 ? spec.c / choice.planes : spec.c);
  return map_lanes({extent(lanes), 1, extent(spec.n)}, device, form,
                   form.any_shape() ? usual_workgroup : workgroup_for_few(static_cast<std::uint64_t>(lanes), device));
}

Result<Pass> depthwise_planes_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                   const Form& form) {
  const auto map = depthwise_lanes(spec, choice, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/planes: whole planes a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_planes(spec, choice, writer);
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> depthwise_bands_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                  const Form& form) {
  const auto map = depthwise_lanes(spec, choice, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/bands: some rows of a plane a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_channel(writer, parts_of(spec, choice));
  write_bands(spec, choice, writer);
  return writer.take(map->workgroup, map->grid);
}

Result<Pass> depthwise_blocked_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                    const Form& form) {
  const auto map = depthwise_lanes(spec, choice, device, form);
  if (!map) return map.error();
  KernelWriter writer(form, "depthwise/blocked: a block of a plane a lane");
  bind_tensors(writer, spec, choice.view);
  writer.body().lines(map->decoding(writer));
  write_channel(writer, parts_of(spec, choice));
  write_block(spec, choice, writer);
  return writer.take(map->workgroup, map->grid);
}

namespace {

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

namespace {

bool has_bias(const Conv2dSpec& spec) { return spec.bias == Bias::per_channel; }

// The sum of output (row, column) of a plane; empty: of nothing.
std::string sum_of(const Conv2dSpec& spec, std::int64_t plane, std::int64_t row, std::int64_t column,
                   const PlanePixel& pixel) {
  std::string sum;
  for (std::int64_t r = 0; r < spec.r; ++r) {
    const std::int64_t iy = row * spec.stride_y + r * spec.dilation_y - spec.pad_y;
    for (std::int64_t s = 0; s < spec.s; ++s) {
      const std::int64_t ix = column * spec.stride_x + s * spec.dilation_x - spec.pad_x;
      if (ix < 0 || ix >= spec.w) continue;
      const std::string value = pixel(plane, iy, ix);
      if (value.empty()) continue;
      if (!sum.empty()) sum += " + ";
      sum += value + " * w" + text_of(plane) + "_" + text_of(r * spec.s + s);
    }
  }
  if (has_bias(spec)) sum += (sum.empty() ? "bias" : " + bias") + text_of(plane);
  return sum;
}

}  // namespace

void write_weights(KernelWriter& writer, const Conv2dSpec& spec, const std::string& channel, std::int64_t plane) {
  const std::int64_t taps = spec.r * spec.s;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    writer.body().line("float w", plane, "_", tap, " = ",
                       writer.load("weights", "(" + channel + ") * " + text_of(taps) + " + " + text_of(tap)), ";");
  }
  if (has_bias(spec)) writer.body().line("float bias", plane, " = ", writer.load("bias", channel), ";");
}

std::string finished(const KernelWriter& writer, const Conv2dSpec& spec, const std::string& value) {
  return writer.activated(value, spec.activation);
}

void write_outputs(KernelWriter& writer, const Conv2dSpec& spec, std::int64_t planes, std::int64_t rows,
                   const PlanePixel& pixel) {
  const std::int64_t of_plane = rows * spec.out_w();
  for (std::int64_t at = 0; at < planes * of_plane; ++at) {
    const std::string sum =
        sum_of(spec, at / of_plane, at % of_plane / spec.out_w(), at % of_plane % spec.out_w(), pixel);
    writer.body().line("float y", at, " = ", sum.empty() ? writer.zero() : sum, ";");
    if (at % 4 != 3) continue;
    const std::string value =
        writer.vector("y" + text_of(at - 3), "y" + text_of(at - 2), "y" + text_of(at - 1), "y" + text_of(at));
    writer.body().line(writer.store("y", "first_y + " + text_of(at / 4), finished(writer, spec, value)));
  }
}

}  // namespace kiln::dynamic_shaders
