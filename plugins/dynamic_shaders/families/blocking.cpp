#include "dynamic_shaders/families/blocking.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

struct Word {
  std::string_view text;
  std::uint8_t value;
};
constexpr Word lanes_words[] = {{"channels", 1}, {"places", 2}, {"groups", 3}};
constexpr Word packing_words[] = {{"channels", 1}, {"pixels", 2}, {"plane", 3}};
constexpr Word view_words[] = {{"storage", 1}, {"texels", 2}, {"image", 3}};
constexpr Word rows_words[] = {{"looped", 1}, {"unrolled", 2}};
constexpr Word border_words[] = {{"padded", 1}, {"guarded", 2}};

template <std::size_t Count, class Enumeration>
std::string word_of(const Word (&words)[Count], Enumeration value) {
  for (const Word& word : words) {
    if (word.value == static_cast<std::uint8_t>(value)) return std::string(word.text);
  }
  return "invalid";
}

// Takes "name=value," off the front.
std::optional<std::string_view> take(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '=') return std::nullopt;
  text.remove_prefix(name.size() + 1);
  const std::string_view value = text.substr(0, text.find(','));
  text.remove_prefix(std::min(value.size() + 1, text.size()));
  return value;
}

template <std::size_t Count, class Enumeration>
bool read(std::string_view& text, std::string_view name, const Word (&words)[Count], Enumeration& to) {
  const auto value = take(text, name);
  if (!value) return false;
  for (const Word& word : words) {
    if (word.text != *value) continue;
    to = static_cast<Enumeration>(word.value);
    return true;
  }
  return false;
}

bool read(std::string_view& text, std::string_view name, std::int64_t& to) {
  const auto value = take(text, name);
  if (!value) return false;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), to);
  return error == std::errc() && end == value->data() + value->size();
}

Status does_not_fit(const std::string& what) { return unsupported("blocking: " + what); }

Status check_parameters(const Blocking& b) {
  if (b.lanes == Lanes::invalid || b.packing == Packing::invalid || b.view == View::invalid ||
      b.rows == Rows::invalid || b.border == Border::invalid) {
    return does_not_fit("a parameter is missing");
  }
  if (b.k < 4 || b.k > 16 || b.k % 4 != 0)
    return does_not_fit("k = " + std::to_string(b.k) + ", expected 4, 8, 12 or 16");
  if (b.x < 1 || b.x > 64 || b.y < 1 || b.y > 64) return does_not_fit("x and y must be 1 to 64");
  if (b.k * b.x * b.y > most_outputs) {
    return does_not_fit(std::to_string(b.k * b.x * b.y) + " outputs a lane, at most " + std::to_string(most_outputs));
  }
  if (b.workgroup < 1 || b.workgroup > 1024) return does_not_fit("workgroup must be 1 to 1024");
  return {};
}

// Terms of one step's unrolled body: what the driver's compiler has to work through.
std::int64_t unrolled_terms(const ConvShape& shape, const Blocking& b, const BlockedExtents& extents) {
  return extents.round_steps * extents.step_c * b.k * b.x * b.y * shape.s * (b.rows == Rows::unrolled ? shape.r : 1);
}

Status check_shape(const ConvShape& shape, const Blocking& b, const BlockedExtents& extents) {
  if (b.packing != Packing::channels) {
    if (b.x * shape.stride_x % 4 != 0)
      return does_not_fit("packing pixels: a block must begin at a multiple of four pixels");
    if (b.border == Border::guarded) return does_not_fit("border guarded: only with packing channels");
  }
  if (shape.out_h == 1 && b.y != 1) return does_not_fit("one row of outputs: y must be 1");
  if (extents.steps % extents.round_steps != 0) {
    return does_not_fit("rows unrolled, a 1x1 kernel: " + std::to_string(extents.steps) +
                        " steps over the channels are not a multiple of " + std::to_string(extents.round_steps));
  }
  if (b.lanes == Lanes::groups && shape.groups == 1) return does_not_fit("lanes over groups: there is one group");
  if (b.packing == Packing::plane && (!shape.flat || shape.pick_y != 1 || shape.pick_x != 1 || shape.w % 4 != 0)) {
    return does_not_fit("packing plane: only for 1x1 kernels of stride 1 on planes of a multiple of four pixels");
  }
  const std::int64_t terms = unrolled_terms(shape, b, extents);
  if (terms > most_unrolled_terms) {
    return does_not_fit(std::to_string(terms) + " terms unrolled, at most " + std::to_string(most_unrolled_terms));
  }
  if (extents.steps * (b.rows == Rows::looped ? shape.r + 1 : 1) > most_iterations) {
    return does_not_fit("more rounds of a loop than " + std::to_string(most_iterations));
  }
  return {};
}

Status check_device(const ConvShape& shape, const Blocking& b, const BlockedExtents& extents,
                    const DeviceInfo& device) {
  const auto workgroup = static_cast<std::uint64_t>(b.workgroup);
  if (workgroup > device.max_workgroup_lanes || workgroup > device.max_workgroup[0]) {
    return does_not_fit("a workgroup of " + std::to_string(b.workgroup) + " lanes, the device takes at most " +
                        std::to_string(std::min(device.max_workgroup_lanes, device.max_workgroup[0])));
  }
  const std::uint32_t needed = shape.bias ? 4 : 3;
  if (b.view == View::texels && device.max_texel_bindings < needed)
    return does_not_fit("the device has no texel buffers");
  if (b.view == View::image && device.max_image_bindings < needed)
    return does_not_fit("the device has no image buffers");
  if (b.view != View::storage) {
    for (const std::int64_t texels : {extents.activation_texels * shape.n, extents.weight_texels}) {
      if (static_cast<std::uint64_t>(texels) > device.max_view_texels) {
        return does_not_fit(std::to_string(texels) + " texels in a view, the device takes at most " +
                            std::to_string(device.max_view_texels));
      }
    }
  }
  constexpr std::int64_t most_texels = std::numeric_limits<std::int32_t>::max() / 4;
  for (const std::int64_t texels : {extents.activation_texels * shape.n, extents.weight_texels}) {
    if (texels > most_texels)
      return does_not_fit(std::to_string(texels) + " texels, an index reaches " + std::to_string(most_texels));
    if (device.max_buffer_bytes != 0 && static_cast<std::uint64_t>(texels) * 16 > device.max_buffer_bytes) {
      return does_not_fit(std::to_string(texels * 16) + " bytes, the device's buffers have at most " +
                          std::to_string(device.max_buffer_bytes));
    }
  }
  return {};
}

// REQUIRES: check_device() is ok, which bounds the boxes.
Status check_launches(const Blocking& b, const BlockedExtents& extents, const DeviceInfo& device) {
  if (Status status = check_grid(extents.grid, device); !status.ok()) return does_not_fit(status.message);
  if (b.packing != Packing::plane) {
    if (const auto lanes = map_lanes(narrow(extents.activation_box), device); !lanes) return lanes.error();
  }
  if (const auto lanes = map_lanes(narrow(extents.weight_box), device); !lanes) return lanes.error();
  return {};
}

}  // namespace

std::string to_text(const Blocking& b) {
  std::string text = "lanes=" + word_of(lanes_words, b.lanes);
  const auto number = [&text](const char* name, std::int64_t value) {
    text += ',';
    text += name;
    text += '=';
    text += std::to_string(value);
  };
  const auto word = [&text](const char* name, const std::string& value) {
    text += ',';
    text += name;
    text += '=';
    text += value;
  };
  number("k", b.k);
  number("x", b.x);
  number("y", b.y);
  word("packing", word_of(packing_words, b.packing));
  word("view", word_of(view_words, b.view));
  word("rows", word_of(rows_words, b.rows));
  word("border", word_of(border_words, b.border));
  number("workgroup", b.workgroup);
  return text;
}

std::optional<Blocking> blocking_of(std::string_view text) {
  const std::string_view id = text;
  Blocking b;
  const bool whole = read(text, "lanes", lanes_words, b.lanes) && read(text, "k", b.k) && read(text, "x", b.x) &&
                     read(text, "y", b.y) && read(text, "packing", packing_words, b.packing) &&
                     read(text, "view", view_words, b.view) && read(text, "rows", rows_words, b.rows) &&
                     read(text, "border", border_words, b.border) && read(text, "workgroup", b.workgroup) &&
                     text.empty();
  if (!whole || to_text(b) != id) return std::nullopt;  // one id a blocking: "k=08" is none
  return b;
}

BlockedExtents extents_of(const ConvShape& shape, const Blocking& b) noexcept {
  BlockedExtents extents;
  extents.blocks_x = divide_up(shape.out_w, b.x);
  extents.blocks_y = divide_up(shape.out_h, b.y);
  extents.step_c = b.packing == Packing::channels ? 4 : 1;
  extents.steps = divide_up(shape.c, extents.step_c);
  extents.k_lanes = divide_up(shape.k, b.k);
  const bool one_tap = shape.r == 1 && shape.s == 1;
  extents.round_steps = one_tap && b.rows == Rows::unrolled ? 4 : 1;
  if (b.lanes == Lanes::channels) extents.k_lanes = round_up(extents.k_lanes, b.workgroup);
  extents.weight_texels =
      shape.groups * extents.steps * extents.step_c * shape.r * shape.s * (b.k / 4) * extents.k_lanes;
  if (b.packing == Packing::plane) {
    extents.packed_h = 1;
    extents.packed_w = shape.w / 4;
  } else if (b.border == Border::guarded) {
    extents.packed_h = shape.h;
    extents.packed_w = shape.w;
  } else {
    extents.packed_h = (extents.blocks_y * b.y - 1) * shape.stride_y + (shape.r - 1) * shape.dilation_y + 1;
    extents.packed_w = (extents.blocks_x * b.x - 1) * shape.stride_x + (shape.s - 1) * shape.dilation_x + 1;
    if (b.packing == Packing::pixels) extents.packed_w = divide_up(extents.packed_w, 4);
  }
  extents.activation_texels = shape.groups * extents.steps * extents.packed_h * extents.packed_w;
  extents.activation_box = {extents.packed_h * extents.packed_w, shape.groups * extents.steps, shape.n};
  extents.weight_box = {b.k / 4 * extents.k_lanes, extents.steps * extents.step_c * shape.r * shape.s, shape.groups};
  const std::int64_t blocks = extents.blocks_x * extents.blocks_y, lanes = shape.groups * extents.k_lanes;
  const bool places = b.lanes == Lanes::places;
  extents.grid = {places ? divide_up(blocks, b.workgroup) : blocks, places ? lanes : divide_up(lanes, b.workgroup),
                  shape.n};
  const bool rows = shape.out_w % 4 == 0 && b.x % 4 == 0;
  const bool run = b.x == shape.out_w && shape.out_h % b.y == 0;  // a block's rows lie behind one another
  extents.wide_stores = rows || (run && b.y * b.x % 4 == 0 && shape.out_h * shape.out_w % 4 == 0);
  return extents;
}

Status check(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device) {
  if (Status status = check_parameters(blocking); !status.ok()) return status;
  const BlockedExtents extents = extents_of(shape, blocking);
  if (Status status = check_shape(shape, blocking, extents); !status.ok()) return status;
  if (Status status = check_device(shape, blocking, extents, device); !status.ok()) return status;
  return check_launches(blocking, extents, device);
}

}  // namespace kiln::dynamic_shaders
