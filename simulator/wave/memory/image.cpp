// Image instructions that name texels by whole numbers: loads, stores, atomics, and the question for an image's size.
#include <iterator>

#include "simulator/wave/memory/access.hpp"
#include "simulator/wave/memory/image_view.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::memory_unit {
namespace {

Next load_image(Wave& wave, const Op& op) {
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
