#include "contract/texture_match.hpp"

#include <iterator>
#include <string>
#include <string_view>

namespace kiln {
namespace {

class TextureMatch {
 public:
  TextureMatch(const ProgramResource& resource, const UserKernelSpec::Binding& given)
      : resource_(resource), given_(given) {}

  Result<TextureSource> texture() {
    texture_.dtype = given_.dtype;
    texture_.access = given_.access;
    texture_.wrap = given_.wrap;
    if (Status status = set_size(); !status.ok()) return status;
    if (Status status = set_format(); !status.ok()) return status;
    if (Status status = check_texels(); !status.ok()) return status;
    if (Status status = set_filter(); !status.ok()) return status;
    return texture_;
  }

 private:
  std::string tensor_text() const { return std::string(numpy_name(given_.dtype)) + " " + to_string(given_.shape); }

  Status set_size() {
    const TextureShape& declared = resource_.texture;
    const std::size_t sides = declared.dimensions + (declared.layered || declared.cube ? 1 : 0);
    const Shape& shape = given_.shape;
    constexpr std::string_view forms[] = {"[W]", "[H, W]", "[D, H, W]"};
    if (declared.dimensions < 1 || sides > std::size(forms)) {
      return invalid_argument("is declared with " + std::to_string(declared.dimensions) + " dimensions" +
                              (declared.layered ? " and layers" : "") + ", expected 1 to 3 with the layers");
    }
    const std::string form(sides == declared.dimensions ? forms[sides - 1]
                           : declared.cube              ? "[6 x cubes, H, W]"
                           : sides == 2                 ? "[layers, W]"
                                                        : "[layers, H, W]");
    const bool fits = (shape.size() == sides || shape.size() == sides + 1) &&
                      (shape.size() == sides || (shape.back() >= 1 && shape.back() <= 4));
    if (!fits) {
      return invalid_argument("takes " + form +
                              ", with a last dimension of 1 to 4 channels or without, and the job "
                              "provides " +
                              tensor_text());
    }
    texture_.channels = shape.size() == sides ? 1 : static_cast<std::uint32_t>(shape.back());
    for (std::size_t i = 0; i < sides; ++i) texture_.size[i] = static_cast<std::uint32_t>(shape[sides - 1 - i]);
    const bool cubes = texture_.size[0] == texture_.size[1] && texture_.size[2] % 6 == 0;
    if (declared.cube && (!cubes || (!declared.layered && texture_.size[2] != 6))) {
      return invalid_argument("takes square faces, " + std::string(declared.layered ? "six for each cube" : "six") +
                              ", and the job provides " + tensor_text());
    }
    return {};
  }

  Status set_format() {
    const ImageFormat declared = resource_.texture.format;
    const bool other = given_.format != declared && given_.format != ImageFormat::declared;
    if (declared != ImageFormat::declared && other) {
      return invalid_argument("is declared as " + std::string(facts_of(declared).name) +
                              ", and the job says format = \"" + std::string(facts_of(given_.format).name) +
                              "\". Remove one of them");
    }
    texture_.format = declared != ImageFormat::declared ? declared : given_.format;
    if (texture_.format != ImageFormat::declared) return {};
    const bool sampled = resource_.kind == ResourceKind::sampler;
    const bool integer = resource_.element != ElementType::f32;
    const std::uint32_t channels = sampled && texture_.channels == 3 ? 4 : texture_.channels;
    for (std::size_t i = 1; i < image_formats; ++i) {
      const ImageFormatFacts& facts = facts_of(static_cast<ImageFormat>(i));
      if (facts.packed || facts.channels != channels || facts.dtype != given_.dtype) continue;
      if (integer == (facts.kind == TexelKind::integer)) texture_.format = static_cast<ImageFormat>(i);
    }
    if (texture_.format != ImageFormat::declared) return {};
    return invalid_argument(
        "has no format for " + tensor_text() +
        ". Add format = \"rgba32f\" or another, or convert: an array in memory to float32 before the call, a file by "
        "dtype = \"float32\"");
  }

  // Whether the tensor's elements reach the texture without loss, and come back.
  Status check_texels() const {
    const ImageFormatFacts& facts = facts_of(texture_.format);
    const std::string holds = "holds " + std::string(facts.name);
    const bool integer = facts.kind == TexelKind::integer;
    const ElementType element = !integer                   ? ElementType::f32
                                : is_unsigned(facts.dtype) ? ElementType::u32
                                                           : ElementType::i32;
    if (element != resource_.element) {
      const std::string_view reads = resource_.element == ElementType::f32   ? "numbers with a fraction"
                                     : resource_.element == ElementType::i32 ? "signed integers"
                                                                             : "unsigned integers";
      return invalid_argument("is for " + std::string(reads) + ", and its format is " + std::string(facts.name));
    }
    const bool writes = given_.access != Access::read;
    if (writes && facts.channels != texture_.channels) {
      return invalid_argument(holds + " with " + std::to_string(facts.channels) + " channels, and the job provides " +
                              tensor_text() + " with " + std::to_string(texture_.channels) + ". Add format = \"" +
                              std::string(facts.name) + "\"");
    }
    if (texture_.channels > facts.channels) {
      return invalid_argument(holds + " with " + std::to_string(facts.channels) + " channels, and the job provides " +
                              tensor_text() + ", of which some would be lost");
    }
    const bool reads = given_.access != Access::write;
    if (reads && facts.packed) {
      return unsupported(holds + ", which no file has without loss: such an image can only be an output");
    }
    const bool exact = facts.dtype == given_.dtype;
    if (exact) return {};
    const bool narrow = given_.dtype == DType::u8 || given_.dtype == DType::u16;
    if (writes) {  // a picture, whose samples are 0 to 1 of what the image holds
      if (narrow && !integer && !is_signed_normalized(facts)) return {};
    } else if (integer                      ? widens(facts.dtype)
               : given_.dtype == DType::f16 ? facts.dtype == DType::f32
                                            : narrow_fits(facts)) {
      return {};
    }
    return invalid_argument(holds + ", and the job provides " + std::string(numpy_name(given_.dtype)) +
                            ", which is not the same without loss (expected " + std::string(numpy_name(facts.dtype)) +
                            ")");
  }

  static bool is_unsigned(DType dtype) noexcept {
    return dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32;
  }
  static bool is_signed_normalized(const ImageFormatFacts& facts) noexcept {
    return facts.kind == TexelKind::normalized && !is_unsigned(facts.dtype);
  }
  bool widens(DType to) const noexcept {
    return is_unsigned(given_.dtype) == is_unsigned(to) && kiln::size_of(given_.dtype) < kiln::size_of(to) &&
           given_.dtype != DType::f16 && given_.dtype != DType::boolean;
  }
  // Samples of 8 and 16 bits in a wider format.
  bool narrow_fits(const ImageFormatFacts& facts) const noexcept {
    if (is_signed_normalized(facts)) return given_.dtype == DType::i8 && facts.dtype == DType::i16;
    if (given_.dtype == DType::u8) return facts.dtype == DType::u16 || facts.kind == TexelKind::real;
    return (given_.dtype == DType::u16 || given_.dtype == DType::i8 || given_.dtype == DType::i16) &&
           facts.kind == TexelKind::real && facts.dtype == DType::f32;
  }

  Status set_filter() {
    const bool integer = facts_of(texture_.format).kind == TexelKind::integer;
    if (integer && given_.filter == TextureFilter::linear) {
      return invalid_argument("reads integers, which filter = \"linear\" cannot mix (expected \"nearest\")");
    }
    texture_.filter = given_.filter;
    if (texture_.filter == TextureFilter::automatic) {
      texture_.filter = integer ? TextureFilter::nearest : TextureFilter::linear;
    }
    return {};
  }

  const ProgramResource& resource_;
  const UserKernelSpec::Binding& given_;
  TextureSource texture_;
};

}  // namespace

Result<TextureSource> match_texture(const ProgramResource& resource, const UserKernelSpec::Binding& given) {
  return TextureMatch(resource, given).texture();
}

}  // namespace kiln
