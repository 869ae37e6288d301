#include "simulator/wave/memory/image.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>

#include "simulator/wave/memory/access.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::memory_unit {
namespace {

const char* name_of(ImageType type) {
  constexpr const char* names[] = {"1D", "2D", "3D", "cube", "1D array", "2D array", "2D MSAA", "2D MSAA array"};
  const auto number = static_cast<unsigned>(type);
  return number < 8 ? "buffer" : names[number - 8];
}

}  // namespace

ImageView::ImageView(Wave& wave, const Op& op)
    : wave_(wave),
      op_(op),
      global_(wave, op),
      instruction_(wave.block->decoded[op.index].instruction),
      shape_(image_shape(instruction_.opcode)),
      descriptor_(wave.scalar + op.sdst, wave.generation) {}

bool ImageView::refuse_image(const std::string& what) const {
  refuse(wave_, op_, FaultKind::bad_state,
         what + " is not simulated (" + name_of(descriptor_.type) + " image of format " +
             std::to_string(descriptor_.format) + ", swizzle mode " + std::to_string(descriptor_.swizzle_mode) + ", " +
             std::to_string(descriptor_.width) + " x " + std::to_string(descriptor_.height) + ")");
  return false;
}

bool ImageView::open() {
  if (descriptor_.is_null()) return true;
  if (descriptor_.type < ImageType::one) {
    refuse(wave_, op_, FaultKind::bad_state,
           "image descriptor has type " + std::to_string(static_cast<unsigned>(descriptor_.type)));
    return false;
  }
  const std::optional<BufferFormat> found = find_image_format(wave_.generation, descriptor_.format);
  if (!found) return refuse_image("its format");
  format_ = *found;
  bytes_ = bytes_of(format_);
  if (descriptor_.type >= ImageType::two_samples) return refuse_image("its type");
  if (format_.block != 0 && instruction_.has(flag::store | flag::atomic)) return refuse_image("a store to its format");
  ImageDescriptor elements = descriptor_;
  if (format_.block != 0) {
    elements.width = (elements.width + 3) / 4;
    elements.height = (elements.height + 3) / 4;
  }
  auto reason = layout_.set(elements, bytes_, wave_.generation);
  if (!reason && descriptor_.compressed && format_.block != 0) reason = "compression (DCC)";
  if (!reason && descriptor_.compressed) reason = layout_.set_keys(descriptor_, wave_.generation);
  return !reason || refuse_image(*reason);
}

Texel ImageView::size(unsigned level) const noexcept {
  const auto part = [level](Word whole) { return whole >> level == 0 ? 1 : whole >> level; };
  Texel size{part(descriptor_.width), part(descriptor_.height), 1};
  switch (descriptor_.type) {
    case ImageType::three:
      size.z =
          descriptor_.layers_of_volume ? descriptor_.depth - descriptor_.base_layer + 1 : part(descriptor_.depth + 1);
      break;
    case ImageType::cube: {  // drivers leave the last layer of a single cube at 0
      constexpr Word faces = 6;
      size.z = std::max(faces, descriptor_.depth - descriptor_.base_layer + 1);
      break;
    }
    case ImageType::one_array:
      size.y = 1;
      [[fallthrough]];
    case ImageType::two_array:
      size.z = descriptor_.depth - descriptor_.base_layer + 1;
      break;
    case ImageType::one:
      size.y = 1;
      break;
    default:
      break;
  }
  return size;
}

bool ImageView::find(unsigned level, Texel at, Found& out) const noexcept {
  const Texel end = size(level);
  if (descriptor_.is_null() || level > descriptor_.last_level || at.x >= end.x || at.y >= end.y || at.z >= end.z) {
    return false;
  }
  const Word first = descriptor_.is_volume() && !descriptor_.layers_of_volume ? 0 : descriptor_.base_layer;
  const unsigned shift = format_.block != 0 ? 2 : 0;
  out.address = layout_.address(level, at.x >> shift, at.y >> shift, first + at.z);
  if (descriptor_.compressed) {
    out.key = layout_.has_tile_words() ? layout_.tile_word(level, at.x, at.y, first + at.z)
                                       : layout_.key(level, first + at.z, out.address);
  }
  return true;
}

bool ImageView::load(unsigned lane, unsigned level, Texel at, const BufferFormat& as, Color& out, bool& outside) const {
  Found place;
  outside = !find(level, at, place);
  if (instruction_.tfe && !outside && !wave_.port->memory().resident(place.address)) without_memory_ |= Wide{1} << lane;
  std::optional<Element> element;
  if (!outside && descriptor_.compressed && !cleared(lane, place, element)) return false;
  if (!element) {
    element.emplace();
    if (!outside && !global_.load(lane, place.address, element->data(), bytes_)) return false;
  }
  out = as.block != 0 ? block_color(*element, as, at.x & 3U, at.y & 3U) : color_of(*element, as);
  return true;
}

bool ImageView::cleared(unsigned lane, const Found& at, std::optional<Element>& out) const {
  out.reset();
  if (layout_.has_tile_words()) {
    Word word = 0;
    if (!global_.load(lane, at.key, &word, sizeof(word))) return false;
    // Fields of depth and of stencil, which are all ones where the texels stand as they are.
    const bool plain = bytes_ == 1 ? (word >> 8U & 3U) == 3U : (word & 15U) == 15U;
    return plain || refuse_image("compressed depth or stencil (HTILE word " + hex(word) + ")");
  }
  std::uint8_t key = 0;
  if (!global_.load(lane, at.key, &key, 1)) return false;
  constexpr Word one = 0x3F800000;
  switch (cleared_by(key, wave_.generation)) {
    case Cleared::no:
      return true;
    case Cleared::zero:
      out.emplace();
      return true;
    case Cleared::first:
      out.emplace();
      return global_.load(lane, at.address & ~Wide{key_covers - 1}, out->data(), bytes_);
    case Cleared::ones:
      if (is_integer(format_.type)) break;
      out = element_of({one, one, one, one}, format_);
      return true;
    default:
      break;
  }
  return refuse_image("compressed data (DCC key " + hex(key) + ")");
}

// Waves of other threads may do the same at one time.
bool ImageView::expand(unsigned lane, const Found& at) const {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::optional<Element> element;
  if (!cleared(lane, at, element)) return false;
  if (!element) return true;
  std::byte block[key_covers];
  for (unsigned offset = 0; offset < key_covers; offset += bytes_) std::memcpy(block + offset, element->data(), bytes_);
  return global_.store(lane, at.address & ~Wide{key_covers - 1}, block, key_covers) &&
         global_.store(lane, at.key, &plain_key, 1);
}

// x, then y, z, face or layer, then the level.
void ImageView::texel_of(unsigned half, unsigned lane, unsigned& level, Texel& at) const {
  const auto coordinate = [&](unsigned index) -> Word {
    if (!instruction_.image.a16) return address_row(index, half)[lane];
    return address_row(index / 2, half)[lane] >> 16 * (index % 2) & 0xFFFFU;
  };
  unsigned next = 0;
  at = {coordinate(next++), 0, 0};
  switch (instruction_.image.dim) {
    case ImageDim::one:
      break;
    case ImageDim::one_array:
      at.z = coordinate(next++);
      break;
    case ImageDim::two:
    case ImageDim::two_samples:
      at.y = coordinate(next++);
      break;
    default:
      at.y = coordinate(next++);
      at.z = coordinate(next++);
      break;
  }
  const bool layered = descriptor_.type != ImageType::one && descriptor_.type != ImageType::two;
  if (!layered) at.z = 0;
  level = descriptor_.base_level + (shape_.level ? coordinate(next) : 0);
}

bool ImageView::addresses(unsigned half, unsigned, Addresses& out) {
  out.active = wave_.exec(half);
  out.careful = true;
  for (Word left = out.active; left != 0; left &= left - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
    unsigned level = 0;
    Texel at;
    texel_of(half, i, level, at);
    Found found;
    if (!find(level, at, found)) {
      out.outside |= 1U << i;
    } else if (descriptor_.compressed && !expand(half * group + i, found)) {
      return false;
    }
    out.lane[i] = found.address;
  }
  return true;
}

void ImageView::give_status() const {
  if (!instruction_.tfe) return;
  const unsigned row = op_.vdst + dwords_of(instruction_.dst.type, WaveSize::wave32) - 1;
  for (unsigned half = 0; half < wave_.halves; ++half) {
    for (Word left = wave_.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      wave_.row(row, half)[i] = static_cast<Word>(without_memory_ >> (half * group + i) & 1U);
    }
  }
}

void ImageView::give(unsigned half, unsigned lane, const Color& color, bool is_integer_color) const {
  const NumberType type = is_integer_color ? NumberType::uint : NumberType::floating;
  unsigned next = 0;
  for (unsigned c = 0; c < color.size(); ++c) {
    if (!shape_.gather && (instruction_.image.mask >> c & 1U) == 0) continue;
    if (!instruction_.image.d16) {
      wave_.row(op_.vdst + next, half)[lane] = color[c];
    } else {
      const Word value = narrowed(color[c], type);
      Word& word = wave_.row(op_.vdst + next / 2, half)[lane];
      word = next % 2 != 0 ? (word & 0xFFFFU) | value << 16U : (word & 0xFFFF0000U) | value;
    }
    ++next;
  }
}

// Image instructions that name texels by whole numbers: loads, stores, atomics, and the question for an image's size.

namespace {

Next load_image(Wave& wave, const Op& op) {
  const TexelScope scope(wave);
  ImageView view(wave, op);
  if (!view.open()) return Next::fault;
  const NumberType type = view.format().type;
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      unsigned level = 0;
      Texel at;
      view.texel_of(half, i, level, at);
      Color texel{}, color{};
      bool outside = true;
      if (!view.load(half * group + i, level, at, view.format(), texel, outside)) return Next::fault;
      for (unsigned c = 0; c < color.size() && !outside; ++c) {
        color[c] = chosen(texel, view.descriptor().select >> 3 * c & 7U, type);
      }
      view.give(half, i, color, is_integer(type));
    }
  }
  view.give_status();
  return Next::go;
}

Next store_image(Wave& wave, const Op& op) {
  const TexelScope scope(wave);
  ImageView view(wave, op);
  if (!view.open()) return Next::fault;
  const ImageAccess& access = view.instruction().image;
  const NumberType type = view.format().type;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!view.addresses(half, view.bytes(), at)) return Next::fault;
    for (Word left = at.active & ~at.outside; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      Color given{}, color{};
      unsigned next = 0;
      for (unsigned c = 0; c < given.size(); ++c) {
        if ((access.mask >> c & 1U) == 0) continue;
        const unsigned row = op.reg[1] + (access.d16 ? next / 2 : next);
        const Word word = wave.row(row, half)[i];
        given[c] = access.d16 ? widened(word >> 16 * (next % 2), type) : word;
        ++next;
      }
      // A channel takes the component that a load would fill from it.
      for (unsigned c = 4; c-- > 0;) {
        const unsigned select = view.descriptor().select >> 3 * c & 7U;
        if (select >= 4) color[select - 4] = given[c];
      }
      const Element element = element_of(color, view.format());
      if (!view.store(half * group + i, at.lane[i], element.data(), view.bytes())) return Next::fault;
    }
  }
  return Next::go;
}

// Two words in the mask are one of 64 bits; a comparison doubles that.
template <class Narrow, class Broad, auto NarrowBody, auto BroadBody, bool Compares>
Next image_atomic(Wave& wave, const Op& op) {
  ImageView view(wave, op);
  if (!view.open()) return Next::fault;
  const bool broad = view.instruction().image.mask == (Compares ? 15 : 3);
  const unsigned bytes = broad ? sizeof(Broad) : sizeof(Narrow);
  if (!view.descriptor().is_null() && bytes != view.bytes()) {
    view.refuse_image("an atomic of " + std::to_string(bytes) + " bytes");
    return Next::fault;
  }
  const unsigned second = op.reg[1] + (Compares ? bytes / word_bytes : 0);
  return broad ? atomic_with<Broad, BroadBody>(view, wave, op, op.reg[1], second)
               : atomic_with<Narrow, NarrowBody>(view, wave, op, op.reg[1], second);
}

// Width, height, depth or layers (of a row of rows: in the second place), levels.
Next image_size(Wave& wave, const Op& op) {
  ImageView view(wave, op);
  if (!view.open()) return Next::fault;
  const ImageDescriptor& image = view.descriptor();
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const Word asked = view.address_row(0, half)[i];
      Color answer{};
      const Word levels = image.last_level - image.base_level + 1;
      if (!image.is_null()) answer[3] = levels;
      if (!image.is_null() && asked < levels) {
        const Texel size = view.size(image.base_level + asked);
        answer[0] = size.x;
        answer[1] = image.type == ImageType::one_array ? size.z : size.y;
        answer[2] = size.z;
      }
      view.give(half, i, answer, true);
    }
  }
  return Next::go;
}

using I32 = std::int32_t;
using I64 = std::int64_t;
namespace a = arithmetic;

constexpr Semantics image_entries[] = {
    {"load", &load_image},
    {"load_mip", &load_image},
    {"store", &store_image},
    {"store_mip", &store_image},
    {"get_resinfo", &image_size},
    {"atomic_swap", &image_atomic<Word, Wide, a::swap<Word>, a::swap<Wide>, false>},
    {"atomic_cmpswap", &image_atomic<Word, Wide, a::compare_swap<Word>, a::compare_swap<Wide>, true>},
    {"atomic_add", &image_atomic<Word, Wide, a::add<Word>, a::add<Wide>, false>},
    {"atomic_sub", &image_atomic<Word, Wide, a::subtract<Word>, a::subtract<Wide>, false>},
    {"atomic_smin", &image_atomic<I32, I64, a::minimum<I32>, a::minimum<I64>, false>},
    {"atomic_umin", &image_atomic<Word, Wide, a::minimum<Word>, a::minimum<Wide>, false>},
    {"atomic_smax", &image_atomic<I32, I64, a::maximum<I32>, a::maximum<I64>, false>},
    {"atomic_umax", &image_atomic<Word, Wide, a::maximum<Word>, a::maximum<Wide>, false>},
    {"atomic_and", &image_atomic<Word, Wide, a::bit_and<Word>, a::bit_and<Wide>, false>},
    {"atomic_or", &image_atomic<Word, Wide, a::bit_or<Word>, a::bit_or<Wide>, false>},
    {"atomic_xor", &image_atomic<Word, Wide, a::bit_xor<Word>, a::bit_xor<Wide>, false>},
    {"atomic_inc", &image_atomic<Word, Wide, a::increment<Word>, a::increment<Wide>, false>},
    {"atomic_dec", &image_atomic<Word, Wide, a::decrement<Word>, a::decrement<Wide>, false>},
    {"atomic_fcmpswap",
     &image_atomic<Word, Wide, a::compare_swap_float<float, Word>, a::compare_swap_float<double, Wide>, true>},
    {"atomic_fmin", &image_atomic<Word, Wide, a::minimum_float<float, Word>, a::minimum_float<double, Wide>, false>},
    {"atomic_fmax", &image_atomic<Word, Wide, a::maximum_float<float, Word>, a::maximum_float<double, Wide>, false>},
};

}  // namespace

SemanticsList image() noexcept { return {image_entries, std::size(image_entries)}; }

}  // namespace kiln::simulator::memory_unit
