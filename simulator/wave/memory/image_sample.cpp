// Image instructions with a sampler: samples, gathers, and the question for a level of detail.
//
// Weights of linear filters have eight bits of fraction, as the card's have. Levels of detail follow the longer of the
// two derivatives, which a quad's lanes share. An anisotropic filter takes the mean of samples that lie evenly along
// that derivative, as many as the other one fits into it, of the level that the shorter part asks for: AMD documents
// neither the places nor the weights of its own.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "simulator/wave/memory/image.hpp"
#include "simulator/wave/memory/sampler.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::memory_unit {
namespace {

struct Arguments {
  int offset[3] = {};
  float bias = 0, reference = 0, level = 0;
  float along[2][3] = {};  // derivatives
  float at[3] = {};
  float layer = 0;
};

float float_of(Word bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
Word word_of(float value) {
  Word bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

class Sampling {
 public:
  Sampling(Wave& wave, const Op& op)
      : wave_(wave),
        view_(wave, op),
        access_(view_.instruction().image),
        shape_(image_shape(view_.instruction().opcode)),
        sampler_(wave.scalar + op.reg[2], wave.generation) {}

  bool open() {
    if (!view_.open()) return false;
    format_ = view_.format();
    if (format_.type == NumberType::srgb && sampler_.plain_srgb) format_.type = NumberType::unorm;
    return true;
  }

  ImageView& view() { return view_; }
  NumberType type() const { return format_.type; }

  Arguments arguments(unsigned half, unsigned lane) const;
  // Of the lane's quad: the level that its derivatives ask for, without limits, and the line of samples.
  struct Detail {
    float level = 0;
    unsigned samples = 1;
    float line[3] = {};
  };
  Detail detail(unsigned half, unsigned lane, const Arguments& own) const;
  float limited(float lod, const Arguments& own) const;
  bool sample(unsigned lane, const Arguments& given, float lod, Color& out) const;
  bool sample_line(unsigned lane, const Arguments& given, const Detail& detail, float lod, Color& out) const;
  bool gather(unsigned lane, const Arguments& given, float lod, Color& out) const;
  const ImageShape& shape() const { return shape_; }

 private:
  struct Footprint {  // of one level: first texel and weight of the next along each axis
    std::int64_t first[3] = {};
    float weight[3] = {};
    bool linear = false;
  };
  Footprint footprint(const Arguments& given, unsigned level, bool linear) const;
  bool level_sample(unsigned lane, const Arguments& given, unsigned level, bool linear, float out[4]) const;
  bool texel(unsigned lane, const Arguments& given, unsigned level, const std::int64_t index[3], Color& out) const;
  bool corner(unsigned lane, const Arguments& given, unsigned level, const std::int64_t index[3], int size,
              Color& out) const;
  unsigned axes() const { return axes_of(access_.dim); }
  bool cube() const { return access_.dim == ImageDim::cube; }
  Texel layer_of(const Arguments& given, const Texel& size) const;
  bool normalised() const { return !access_.unnormalised && !sampler_.unnormalised; }
  bool border(unsigned lane, Color& out) const;

  Wave& wave_;
  ImageView view_;
  const ImageAccess& access_;
  ImageShape shape_;
  Sampler sampler_;
  BufferFormat format_;
};

Arguments Sampling::arguments(unsigned half, unsigned lane) const {
  Arguments out;
  unsigned next = 0;
  const auto word = [&] { return view_.address_row(next++, half)[lane]; };
  const auto half_float = [](Word bits) { return float_of(widened(bits, NumberType::floating)); };
  if (shape_.offset) {
    const Word packed = word();
    for (unsigned axis = 0; axis < 3; ++axis) {
      out.offset[axis] = static_cast<std::int32_t>(packed << (26 - 8 * axis)) >> 26;
    }
  }
  if (shape_.bias) out.bias = access_.a16 ? half_float(word()) : float_of(word());
  if (shape_.compare) out.reference = float_of(word());
  if (shape_.derivatives) {
    const unsigned count = derivative_count(access_.dim) / 2;
    for (auto& along : out.along) {
      for (unsigned axis = 0; axis < count; ++axis) {
        if (!shape_.short_derivatives) {
          along[axis] = float_of(word());
        } else {
          along[axis] = half_float(view_.address_row(next + axis / 2, half)[lane] >> 16 * (axis % 2));
        }
      }
      if (shape_.short_derivatives) next += (count + 1) / 2;
    }
  }
  unsigned taken = 0;
  const auto coordinate = [&] {
    const unsigned index = taken++;
    if (!access_.a16) return float_of(view_.address_row(next + index, half)[lane]);
    return half_float(view_.address_row(next + index / 2, half)[lane] >> 16 * (index % 2));
  };
  for (unsigned axis = 0; axis < axes(); ++axis) out.at[axis] = coordinate();
  if (coordinate_count(access_.dim) > axes()) out.layer = coordinate();
  if (shape_.level || shape_.clamp) out.level = coordinate();
  if (cube()) {  // shaders add 1.5 to coordinates from -0.5 to 0.5
    out.at[0] -= 1;
    out.at[1] -= 1;
  }
  return out;
}

Sampling::Detail Sampling::detail(unsigned half, unsigned lane, const Arguments& own) const {
  if (shape_.zero) return {};
  if (shape_.level) return {own.level};
  Arguments quad = own;
  if (!shape_.derivatives) {
    const unsigned first = lane & ~3U;
    const Arguments corner = arguments(half, first);
    for (unsigned way = 0; way < 2; ++way) {
      const Arguments beside = arguments(half, first + 1 + way);
      for (unsigned axis = 0; axis < 3; ++axis) quad.along[way][axis] = beside.at[axis] - corner.at[axis];
    }
  }
  const Texel size = view_.size(view_.descriptor().base_level);
  const float scale[3] = {static_cast<float>(size.x), static_cast<float>(size.y), static_cast<float>(size.z)};
  float length[2];
  for (unsigned way = 0; way < 2; ++way) {
    float square = 0;
    for (unsigned axis = 0; axis < axes(); ++axis) {
      const float part = quad.along[way][axis] * (normalised() ? scale[axis] : 1);
      square += part * part;
    }
    length[way] = std::sqrt(square);
  }
  const unsigned longer = length[0] >= length[1] ? 0 : 1;
  Detail out;
  if (sampler_.anisotropic && !is_integer(format_.type) && !shape_.gather) {
    const float ratio = std::ceil(length[longer] / std::fmax(length[1 - longer], 1e-30F) - 1 / 64.0F);
    out.samples =
        static_cast<unsigned>(std::fmin(std::fmax(ratio, 1.0F), static_cast<float>(1U << sampler_.anisotropy)));
    std::copy_n(quad.along[longer], 3, out.line);
  }
  out.level = std::log2(length[longer] / static_cast<float>(out.samples)) + own.bias;
  return out;
}

float Sampling::limited(float lod, const Arguments& own) const {
  float least = std::fmax(sampler_.min_lod, static_cast<float>(view_.descriptor().min_lod) / 256);
  if (shape_.clamp) least = std::fmax(least, own.level);
  const float biased = lod + sampler_.bias;
  return std::fmin(std::fmax(biased, least), std::fmax(sampler_.max_lod, least));
}

bool Sampling::border(unsigned lane, Color& out) const {
  constexpr std::uint8_t orders[8][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}, {3, 2, 1, 0}, {3, 0, 1, 2},
                                         {2, 1, 0, 3}, {1, 0, 3, 2}, {0, 1, 2, 3}, {0, 1, 2, 3}};
  constexpr unsigned black = 1, white = 2, table = 3;
  const Word one = is_integer(format_.type) ? 1 : word_of(1.0F);
  const Word rest = sampler_.border == white ? one : 0;
  Color color{rest, rest, rest, sampler_.border == black ? one : rest};
  if (sampler_.border == table) {
    if (wave_.border_colors == 0) return view_.refuse_image("a border colour without TA_CS_BC_BASE_ADDR");
    if (!view_.read(lane, wave_.border_colors + sampler_.border_index * sizeof(color), color.data(), sizeof(color))) {
      return false;
    }
  }
  for (unsigned c = 0; c < 4; ++c) out[c] = color[orders[view_.descriptor().border_swizzle][c]];
  return true;
}

Sampling::Footprint Sampling::footprint(const Arguments& given, unsigned level, bool linear) const {
  Footprint out;
  out.linear = linear;
  const Texel size = view_.size(level);
  const float extent[3] = {static_cast<float>(size.x), static_cast<float>(size.y), static_cast<float>(size.z)};
  for (unsigned axis = 0; axis < axes(); ++axis) {
    float at = given.at[axis] * (normalised() ? extent[axis] : 1);
    const Wrap wrap = sampler_.wrap[axis];
    const bool halfway = wrap == Wrap::half_border || wrap == Wrap::mirror_half_border;
    if (!(std::fabs(at) < 1e9F)) at = at > 0 ? 1e9F : at < 0 ? -1e9F : 0;
    at += static_cast<float>(given.offset[axis]);
    if (wrap == Wrap::mirror_half_border) at = std::fabs(at);
    if (halfway) at = std::fmin(std::fmax(at, 0.0F), linear ? extent[axis] : extent[axis] - 0.5F);
    if (!linear) {
      out.first[axis] = static_cast<std::int64_t>(std::floor(at));
      continue;
    }
    const double fixed = std::floor((static_cast<double>(at) - 0.5) * 256 + 0.5);
    out.first[axis] = static_cast<std::int64_t>(std::floor(fixed / 256));
    out.weight[axis] = static_cast<float>(fixed / 256 - static_cast<double>(out.first[axis]));
  }
  return out;
}

// The layer, from the resource's first on.
Texel Sampling::layer_of(const Arguments& given, const Texel& size) const {
  const bool layered = view_.descriptor().type >= ImageType::cube;
  if (!layered) return {0, 0, 0};
  const float nearest = std::nearbyint(given.layer);
  Word layer = nearest > 0 ? static_cast<Word>(std::fmin(nearest, 65535.0F)) : 0;
  if (cube()) layer = layer / 8 * 6 + std::min(layer % 8, 5U);  // shaders give 8 x layer + face
  return {0, 0, std::min(layer, size.z - 1)};
}

bool Sampling::texel(unsigned lane, const Arguments& given, unsigned level, const std::int64_t index[3],
                     Color& out) const {
  const Texel size = view_.size(level);
  Texel at = layer_of(given, size);
  if (cube() && sampler_.seamless) {
    const int edge = static_cast<int>(size.x);
    const bool s = index[0] < 0 || index[0] >= edge, t = index[1] < 0 || index[1] >= edge;
    if (s && t) return corner(lane, given, level, index, edge, out);
    FacePlace place{static_cast<int>(at.z % 6), static_cast<int>(index[0]), static_cast<int>(index[1])};
    if (s || t) place = over_edge(place, edge);
    at = {static_cast<Word>(place.s), static_cast<Word>(place.t), at.z / 6 * 6 + static_cast<Word>(place.face)};
  } else {
    const int extent[3] = {static_cast<int>(size.x), static_cast<int>(size.y), static_cast<int>(size.z)};
    Word whole[3] = {};
    for (unsigned axis = 0; axis < axes(); ++axis) {
      const int found = wrapped(sampler_.wrap[axis], index[axis], extent[axis]);
      if (found == beyond) {
        return border(lane, out);
      }
      whole[axis] = static_cast<Word>(found);
    }
    at = {whole[0], whole[1], axes() == 3 ? whole[2] : at.z};
  }
  bool outside = false;
  return view_.load(lane, level, at, format_, out, outside);
}

// Where three faces of a cube meet, the fourth texel is the mean of theirs.
bool Sampling::corner(unsigned lane, const Arguments& given, unsigned level, const std::int64_t index[3], int size,
                      Color& out) const {
  const auto inside = [size](std::int64_t value) { return value < 0 ? std::int64_t{0} : std::int64_t{size} - 1; };
  const std::int64_t near[3][3] = {
      {inside(index[0]), inside(index[1]), 0}, {index[0], inside(index[1]), 0}, {inside(index[0]), index[1], 0}};
  float sum[4] = {};
  for (const auto& at : near) {
    Color one{};
    if (!texel(lane, given, level, at, one)) return false;
    for (unsigned c = 0; c < 4; ++c) sum[c] += float_of(one[c]);
  }
  for (unsigned c = 0; c < 4; ++c) out[c] = word_of(sum[c] / 3);
  return true;
}

bool Sampling::level_sample(unsigned lane, const Arguments& given, unsigned level, bool linear, float out[4]) const {
  const Footprint foot = footprint(given, level, linear);
  const unsigned corners = foot.linear ? 1U << axes() : 1U;
  float sum[4] = {}, low[4] = {}, high[4] = {};
  bool first = true;
  for (unsigned corner_bits = 0; corner_bits < corners; ++corner_bits) {
    float weight = 1;
    std::int64_t index[3] = {};
    for (unsigned axis = 0; axis < axes(); ++axis) {
      const bool next = (corner_bits >> axis & 1U) != 0;
      index[axis] = foot.first[axis] + (next ? 1 : 0);
      if (foot.linear) weight *= next ? foot.weight[axis] : 1 - foot.weight[axis];
    }
    if (weight == 0) continue;
    Color color{};
    if (!texel(lane, given, level, index, color)) return false;
    float values[4];
    for (unsigned c = 0; c < 4; ++c) values[c] = float_of(color[c]);
    if (shape_.compare) values[0] = passes(sampler_.compare, given.reference, values[0]) ? 1.0F : 0.0F;
    if (!foot.linear) {  // bits as they are
      std::copy_n(values, 4, out);
      return true;
    }
    for (unsigned c = 0; c < 4; ++c) {
      sum[c] += values[c] * weight;
      low[c] = first ? values[c] : std::fmin(low[c], values[c]);
      high[c] = first ? values[c] : std::fmax(high[c], values[c]);
    }
    first = false;
  }
  constexpr unsigned least = 1, most = 2;
  std::copy_n(sampler_.mode == least ? low : sampler_.mode == most ? high : sum, 4, out);
  return true;
}

bool Sampling::sample(unsigned lane, const Arguments& given, float lod, Color& out) const {
  const ImageDescriptor& image = view_.descriptor();
  const bool linear = !is_integer(format_.type) && (lod > 0 ? sampler_.shrink_linear : sampler_.enlarge_linear);
  const auto level_at = [&](float level) {
    const auto whole = static_cast<unsigned>(std::fmax(level, 0.0F));
    return std::min(image.base_level + whole, image.last_level);
  };
  float values[4] = {};
  if (sampler_.mip == mip_linear && lod > 0 && !is_integer(format_.type)) {
    const float fixed = std::floor(lod * 256 + 0.5F) / 256, whole = std::floor(fixed), part = fixed - whole;
    float further[4] = {};
    if (!level_sample(lane, given, level_at(whole), linear, values)) return false;
    if (part != 0) {
      if (!level_sample(lane, given, level_at(whole + 1), linear, further)) return false;
      for (unsigned c = 0; c < 4; ++c) values[c] = values[c] * (1 - part) + further[c] * part;
    }
  } else {
    const float nearest = sampler_.mip == mip_none ? 0.0F : std::ceil(lod + 0.5F) - 1;
    if (!level_sample(lane, given, level_at(nearest), linear, values)) return false;
  }
  for (unsigned c = 0; c < 4; ++c) out[c] = word_of(values[c]);
  return true;
}

bool Sampling::sample_line(unsigned lane, const Arguments& given, const Detail& detail, float lod, Color& out) const {
  if (detail.samples == 1) return sample(lane, given, lod, out);
  const auto count = static_cast<float>(detail.samples);
  float sum[4] = {};
  for (unsigned i = 0; i < detail.samples; ++i) {
    Arguments moved = given;
    for (unsigned axis = 0; axis < axes(); ++axis) {
      moved.at[axis] += detail.line[axis] * ((static_cast<float>(i) + 0.5F) / count - 0.5F);
      if (cube()) moved.at[axis] = std::fmin(std::fmax(moved.at[axis], 0.0F), 1.0F);
    }
    Color color{};
    if (!sample(lane, moved, lod, color)) return false;
    for (unsigned c = 0; c < 4; ++c) sum[c] += float_of(color[c]);
  }
  for (unsigned c = 0; c < 4; ++c) out[c] = word_of(sum[c] / count);
  return true;
}

// One component of the four texels that a linear filter would mix, the lower row first, against the clock.
bool Sampling::gather(unsigned lane, const Arguments& given, float lod, Color& out) const {
  const ImageDescriptor& image = view_.descriptor();
  const float nearest = sampler_.mip == mip_none ? 0.0F : std::ceil(std::fmax(lod, 0.0F) + 0.5F) - 1;
  const unsigned level = std::min(image.base_level + static_cast<unsigned>(nearest), image.last_level);
  const Footprint foot = footprint(given, level, true);
  const unsigned component = access_.mask == 0 ? 0 : static_cast<unsigned>(__builtin_ctz(access_.mask));
  constexpr std::uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  for (unsigned i = 0; i < 4; ++i) {
    const std::int64_t index[3] = {foot.first[0] + order[i][0], foot.first[1] + order[i][1], 0};
    Color color{};
    if (!texel(lane, given, level, index, color)) return false;
    if (shape_.compare) {
      color[0] = word_of(passes(sampler_.compare, given.reference, float_of(color[0])) ? 1.0F : 0.0F);
    }
    out[i] = chosen(color, image.select >> 3 * component & 7U, format_.type);
  }
  return true;
}

Next sample_image(Wave& wave, const Op& op) {
  const TexelScope scope(wave);
  Sampling sampling(wave, op);
  if (!sampling.open()) return Next::fault;
  const ImageView& view = sampling.view();
  for (unsigned half = 0; half < wave.halves; ++half) {
    // All lanes read before one writes: a quad's derivatives come from all of its lanes.
    Color colors[group];
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left)), lane = half * group + i;
      const Arguments given = sampling.arguments(half, i);
      Color color{};
      if (!view.descriptor().is_null()) {
        const Sampling::Detail detail = sampling.detail(half, i, given);
        const float lod = sampling.limited(detail.level, given);
        const bool gathers = sampling.shape().gather;
        if (!(gathers ? sampling.gather(lane, given, lod, color)
                      : sampling.sample_line(lane, given, detail, lod, color))) {
          return Next::fault;
        }
      }
      colors[i] = color;
      if (sampling.shape().gather) continue;
      for (unsigned c = 0; c < 4; ++c) {
        colors[i][c] = chosen(color, view.descriptor().select >> 3 * c & 7U, sampling.type());
      }
    }
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      view.give(half, i, colors[i], is_integer(sampling.type()));
    }
  }
  view.give_status();
  return Next::go;
}

// The level that a sample would read, then what its derivatives ask for.
Next image_lod(Wave& wave, const Op& op) {
  const TexelScope scope(wave);
  Sampling sampling(wave, op);
  if (!sampling.open()) return Next::fault;
  const ImageDescriptor& image = sampling.view().descriptor();
  const auto levels = static_cast<float>(image.last_level - image.base_level);
  for (unsigned half = 0; half < wave.halves; ++half) {
    Color colors[group];
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const Arguments given = sampling.arguments(half, i);
      const float asked = sampling.detail(half, i, given).level;
      const float inside = std::fmin(std::fmax(sampling.limited(asked, given), 0.0F), levels);
      colors[i] = {word_of(inside), word_of(asked), 0, 0};
    }
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      sampling.view().give(half, i, colors[i], false);
    }
  }
  return Next::go;
}

constexpr Semantics lod_entries[] = {{"get_lod", &image_lod}};
constexpr Semantics sample_entry{"", &sample_image};

}  // namespace

SemanticsList image_detail() noexcept { return {lod_entries, std::size(lod_entries)}; }
const Semantics& image_sample() noexcept { return sample_entry; }

}  // namespace kiln::simulator::memory_unit
