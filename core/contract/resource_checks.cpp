#include "contract/resource_checks.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace kiln {
namespace {

using Uniform = UserKernelSpec::Uniform;

std::uint64_t size_of(ElementType element) noexcept {
  switch (element) {
    case ElementType::i8:
    case ElementType::u8:
      return 1;
    case ElementType::i16:
    case ElementType::u16:
    case ElementType::f16:
      return 2;
    case ElementType::boolean:
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::f64:
      return 8;
    case ElementType::unknown:
      break;
  }
  return 0;
}

bool is_integer(ElementType element) noexcept { return element >= ElementType::boolean && element <= ElementType::u64; }

std::string_view word_of(ElementType element) noexcept {
  constexpr std::string_view words[] = {"several types",   "32-bit booleans", "8-bit integers",  "8-bit integers",
                                        "16-bit integers", "16-bit integers", "32-bit integers", "32-bit integers",
                                        "64-bit integers", "64-bit integers", "float16",         "float32",
                                        "float64"};
  const auto at = static_cast<std::size_t>(element);
  return words[at < std::size(words) ? at : 0];
}

// Whether elements of a file can be the program's. Bytes (u8) can be anything; signed and unsigned share their bits;
// integers of 64 bits may come as pairs of 32; a pair of float16 is packed in 32 bits (packHalf2x16).
bool fits(DType given, ElementType declared) noexcept {
  if (given == DType::invalid || given == DType::u8 || declared == ElementType::unknown) return true;
  if (given == DType::f16) return declared == ElementType::f16 || declared == ElementType::u32;
  if (given == DType::f32) return declared == ElementType::f32;
  if (given == DType::f64) return declared == ElementType::f64;
  const std::uint64_t bytes = size_of(given);
  return is_integer(declared) && (size_of(declared) == bytes || (bytes == 4 && size_of(declared) == 8));
}

// The type that a file would have to be converted to; empty: none that it could be.
std::string_view numpy_name(ElementType element) noexcept {
  constexpr std::string_view names[] = {"",       "uint32", "int8",   "uint8",   "int16",   "uint16", "int32",
                                        "uint32", "int64",  "uint64", "float16", "float32", "float64"};
  const auto at = static_cast<std::size_t>(element);
  return names[at < std::size(names) ? at : 0];
}

// "float32, or uint8 (its bytes)"
std::string accepted_types(ElementType element) {
  std::string text;
  for (auto type = static_cast<std::uint8_t>(DType::f32); type <= static_cast<std::uint8_t>(DType::boolean); ++type) {
    const auto dtype = static_cast<DType>(type);
    if (dtype != DType::u8 && fits(dtype, element)) text += std::string(numpy_name(dtype)) + ", ";
  }
  return text + (size_of(element) == 1 ? "or uint8" : "or uint8 (its bytes)");
}

// The contract does not know whether the tensor is a file or the memory of an application: the advice has both.
Status wrong_type(const ProgramResource& resource, const UserKernelSpec::Binding& given, std::string_view verb) {
  const std::string wanted(numpy_name(resource.element));
  std::string text = std::string(verb) + " " + std::string(word_of(resource.element)) + ", and the job provides " +
                     std::string(numpy_name(given.dtype)) + ", expected " + accepted_types(resource.element);
  if (wanted.empty()) return invalid_argument(std::move(text));
  text += ". Convert an array in memory to " + wanted + " before the call. For a file, add dtype = \"" + wanted + "\"";
  if (given.access != Access::write) text += ", which converts the file if nothing is lost";
  return invalid_argument(std::move(text));
}

}  // namespace

std::string described(const ProgramResource& resource) {
  std::string text(to_string(resource.kind));
  if (!resource.type.empty()) text += " " + resource.type;
  text += " " + resource.name;
  if (!resource.number) return text;
  const bool argument = resource.kind >= ResourceKind::buffer_argument && resource.kind <= ResourceKind::local_argument;
  return text + (argument ? " (argument " : " (binding ") + std::to_string(*resource.number) + ")";
}

std::string described(const UserKernelSpec::Binding& binding, std::size_t position) {
  if (binding.kind == BindingKind::image) return "images." + binding.name;
  if (binding.kind == BindingKind::sampler || binding.kind == BindingKind::sampler_state) {
    return "samplers." + binding.name;
  }
  std::string text = "bindings[" + std::to_string(position) + "]";
  if (!binding.name.empty()) text += " (name = \"" + binding.name + "\")";
  if (binding.number) text += " (binding = " + std::to_string(*binding.number) + ")";
  return text;
}

std::string_view given_as(const UserKernelSpec::Binding& binding) noexcept {
  if (binding.kind == BindingKind::value) return "a number";
  if (binding.kind == BindingKind::local) return "local memory";
  if (binding.kind == BindingKind::image) return "an image";
  if (binding.kind == BindingKind::sampler) return "a sampler";
  if (binding.kind == BindingKind::sampler_state) return "a sampler without a texture";
  if (binding.access == Access::read) return "an input";
  return binding.access == Access::write ? "an output" : "an inout";
}

std::string list_of(std::span<const ProgramResource> resources, ResourceKind kind) {
  constexpr std::size_t most_listed = 8;
  std::string text;
  std::size_t count = 0;
  for (const ProgramResource& resource : resources) {
    if (resource.kind == kind && ++count <= most_listed) text += (text.empty() ? "" : ", ") + described(resource);
  }
  if (count > most_listed) text += " and " + std::to_string(count - most_listed) + " more";
  return text.empty() ? "none" : text;
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

Status check_access(const ProgramResource& resource, const UserKernelSpec::Binding& given, bool all_read_only) {
  if (all_read_only && given.access != Access::read) {
    return invalid_argument("is read-only in the program, and the job provides " + std::string(given_as(given)) +
                            ". Provide an input");
  }
  if (resource.access == Access::write && given.access == Access::read) {
    return invalid_argument("is write-only in the program, and the job provides an input. Provide an output or inout");
  }
  return {};
}

namespace {

// How elements without their padding become elements of `stride` bytes: by a longer last dimension where the last
// dimensions of the tensor are one element of `used` bytes, as [3, 3] of a mat3.
std::string padding_advice(const UserKernelSpec::Binding& given, std::uint64_t used, std::uint64_t stride) {
  const std::uint64_t all = stride / kiln::size_of(given.dtype);
  std::uint64_t bytes = kiln::size_of(given.dtype), rows = 1;
  for (auto extent = given.shape.rbegin(); extent != given.shape.rend(); ++extent) {
    bytes *= static_cast<std::uint64_t>(*extent);
    if (extent != given.shape.rbegin()) rows *= static_cast<std::uint64_t>(*extent);
    if (bytes >= used) break;
  }
  if (bytes == used && all % rows == 0) return "Pad the last dimension to " + std::to_string(all / rows) + " elements";
  return "Provide a tensor of shape [N, " + std::to_string(all) + "] with the padding of each element";
}

Status check_size(const ProgramResource& resource, const UserKernelSpec::Binding& given) {
  if (given.bytes < resource.bytes) {
    return invalid_argument("takes at least " + bytes_text(resource.bytes) + ", and the job provides " +
                            bytes_text(given.bytes));
  }
  const std::uint64_t stride = resource.array_stride;
  if (stride == 0) return {};
  if (resource.open_ended && (given.bytes - resource.array_offset) % stride != 0) {
    return invalid_argument("has an array with elements of " + bytes_text(stride) + " from byte " +
                            std::to_string(resource.array_offset) + " on, and the job provides " +
                            bytes_text(given.bytes) + ", which ends within an element");
  }
  const std::uint64_t used = resource.element_bytes;
  const std::uint64_t element = kiln::size_of(given.dtype);
  if (used == 0 || used == stride || element == 0) return {};
  const bool has_bytes = resource.element == ElementType::i8 || resource.element == ElementType::u8;
  if (given.dtype == DType::u8 && !has_bytes && given.shape.size() == 1) return {};  // the block's bytes as they are
  if (resource.struct_elements && given.shape.size() < 2) return {};
  // Elements with padding: one of the tensor's rows, or of its blocks of rows, must be as long as one of them. A row
  // may also hold several whole structs.
  std::uint64_t row = element, within = element;
  for (auto extent = given.shape.rbegin(); extent != given.shape.rend() && row < stride; ++extent) {
    within = row;
    row *= static_cast<std::uint64_t>(*extent);
  }
  if (row == stride) return {};
  if (resource.struct_elements && row % stride == 0 && stride % within == 0) return {};
  return invalid_argument("has an array with elements of " + bytes_text(used) + " and a stride of " +
                          bytes_text(stride) + ", and the job provides " + std::string(numpy_name(given.dtype)) + " " +
                          to_string(given.shape) + ". " + padding_advice(given, used, stride) +
                          ", or declare an array without padding");
}

}  // namespace

Status check_buffer(const ProgramResource& resource, const UserKernelSpec::Binding& given, bool all_read_only) {
  if (Status status = check_access(resource, given, all_read_only); !status.ok()) return status;
  if (!fits(given.dtype, resource.element)) return wrong_type(resource, given, "holds");
  return check_size(resource, given);
}

Status check_value(const ProgramResource& resource, const UserKernelSpec::Binding& given) {
  const bool as_file = given.kind == BindingKind::buffer && given.access == Access::read;
  if (given.kind != BindingKind::value && !as_file) {
    return invalid_argument("is passed by value, and the job provides " + std::string(given_as(given)) +
                            ". Provide { float = … }, { int = … } or an input file with its bytes");
  }
  if (given.bytes != resource.bytes) {
    return invalid_argument("takes " + bytes_text(resource.bytes) + ", and the job provides " +
                            bytes_text(given.bytes));
  }
  if (!fits(given.dtype, resource.element)) return wrong_type(resource, given, "is of");
  return {};
}

ElementName element_name(std::string_view name) {
  ElementName element;
  const std::size_t dot = name.rfind('.');
  element.size = std::min(name.find('[', dot == std::string_view::npos ? 0 : dot), name.size());
  for (std::size_t at = element.size; at < name.size(); at = name.find('[', at + 1)) {
    std::uint32_t index = 0;
    std::from_chars(name.data() + at + 1, name.data() + name.size(), index);
    element.indices.push_back(index);
  }
  return element;
}

namespace {

std::string shape_text(const std::vector<Extent>& shape) {
  if (shape.empty()) return "one value";
  std::string text;
  for (const Extent& extent : shape) {
    text += (text.empty() ? "" : " x ") + std::to_string(extent.least);
    if (extent.most == std::numeric_limits<std::uint32_t>::max())
      text += " or more";
    else if (extent.most != extent.least)
      text += " to " + std::to_string(extent.most);
  }
  return text + " values";
}

}  // namespace

std::vector<Extent> extents_of(const ProgramResource& uniform, std::span<const std::uint32_t> indices,
                               std::size_t outer) {
  constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();
  std::vector<Extent> extents;
  const std::vector<std::uint32_t>& declared = uniform.lengths;
  for (std::size_t i = indices.size() - outer; i < indices.size(); ++i) {
    const std::uint32_t length = i < declared.size() ? declared[i] : 0;
    extents.push_back(length == 0 ? Extent{indices[i] + 1, any} : Extent{length, length});
  }
  for (const std::uint32_t length : uniform.shape) extents.push_back({length, length});
  if (declared.size() == indices.size() + 1 && !uniform.shape.empty()) {
    const std::uint32_t length = declared.back();
    extents[outer].most = length == 0 ? any : std::max(length, extents[outer].least);
  }
  return extents;
}

Status check_uniform(const ProgramResource& resource, const Uniform& given, const std::vector<Extent>& extents) {
  constexpr std::string_view words[] = {"nothing", "booleans", "integers", "floating-point numbers"};
  const bool boolean = resource.element == ElementType::boolean;
  const bool real = resource.element == ElementType::f16 || resource.element == ElementType::f32 ||
                    resource.element == ElementType::f64;
  const bool type_fits = given.type == Uniform::Type::boolean   ? boolean
                         : given.type == Uniform::Type::integer ? !boolean
                                                                : real;
  if (!type_fits) {
    return invalid_argument("the job provides " + std::string(words[static_cast<std::size_t>(given.type)]) +
                            " (expected " +
                            (boolean ? "true or false"
                             : real  ? "numbers"
                                     : "integers") +
                            ")");
  }
  bool fit = given.shape.size() == extents.size();
  for (std::size_t i = 0; fit && i < extents.size(); ++i) {
    fit = given.shape[i] >= extents[i].least && given.shape[i] <= extents[i].most;
  }
  if (fit) return {};
  std::vector<Extent> found;
  for (const std::uint32_t length : given.shape) found.push_back({length, length});
  return invalid_argument("the job provides " + shape_text(found) + " (expected " + shape_text(extents) +
                          (resource.matrix ? ", a matrix row by row" : "") + ")");
}

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
  std::string tensor_text() const {
    return (given_.picture ? "a picture, " : "") + std::string(numpy_name(given_.dtype)) + " " +
           to_string(given_.shape);
  }

  Status set_size() {
    const TextureShape& declared = resource_.texture;
    const std::size_t sides = declared.dimensions + (declared.layered || declared.cube ? 1 : 0);
    Shape shape = given_.shape;
    if (given_.picture && sides == 3 && !declared.cube) shape.insert(shape.begin(), 1);
    constexpr std::string_view forms[] = {"[W]", "[H, W]", "[D, H, W]"};
    if (declared.dimensions < 1 || sides > std::size(forms)) {
      return invalid_argument("is declared with " + std::to_string(declared.dimensions) + " dimensions" +
                              (declared.layered ? " and layers" : "") + ", expected 1 to 3 including the layers");
    }
    const std::string form(sides == declared.dimensions ? forms[sides - 1]
                           : declared.cube              ? "[6 x cubes, H, W]"
                           : sides == 2                 ? "[layers, W]"
                                                        : "[layers, H, W]");
    const bool fits = (shape.size() == sides || shape.size() == sides + 1) &&
                      (shape.size() == sides || (shape.back() >= 1 && shape.back() <= 4));
    if (!fits || (given_.picture && declared.cube)) {
      return invalid_argument("takes " + form +
                              ", optionally with a last dimension of 1 to 4 channels, and the job provides " +
                              tensor_text());
    }
    texture_.channels = shape.size() == sides ? 1 : static_cast<std::uint32_t>(shape.back());
    for (std::size_t i = 0; i < sides; ++i) texture_.size[i] = static_cast<std::uint32_t>(shape[sides - 1 - i]);
    const bool cubes = texture_.size[0] == texture_.size[1] && texture_.size[2] % 6 == 0;
    if (declared.cube && (!cubes || (!declared.layered && texture_.size[2] != 6))) {
      return invalid_argument("takes square faces, " + std::string(declared.layered ? "six for each cube" : "six") +
                              " (size = [W, W, " + (declared.layered ? "6 x cubes" : "6") +
                              "]), and the job provides " + tensor_text());
    }
    return {};
  }

  Status set_format() {
    const ImageFormat declared = resource_.texture.format;
    const bool other = given_.format != declared && given_.format != ImageFormat::declared;
    if (declared != ImageFormat::declared && other) {
      return invalid_argument("is declared as " + std::string(facts_of(declared).name) +
                              ", and the job has format = \"" + std::string(facts_of(given_.format).name) +
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
    if (integer) {
      return invalid_argument("takes " + std::string(texels_text()) + ", and the job provides " + tensor_text());
    }
    return invalid_argument(
        "has no format for " + tensor_text() +
        ". Add format = \"rgba32f\" or another. Or convert an array in memory to float32 before the call, a file with "
        "dtype = \"float32\"");
  }

  std::string_view texels_text() const {
    return resource_.element == ElementType::f32   ? "floating-point numbers"
           : resource_.element == ElementType::i32 ? "signed integers"
                                                   : "unsigned integers";
  }

  // Whether the tensor's elements reach the texture without loss, and come back.
  Status check_texels() const {
    const ImageFormatFacts& facts = facts_of(texture_.format);
    const std::string holds = "has format " + std::string(facts.name);
    const bool integer = facts.kind == TexelKind::integer;
    const ElementType element = !integer                   ? ElementType::f32
                                : is_unsigned(facts.dtype) ? ElementType::u32
                                                           : ElementType::i32;
    if (element != resource_.element) {
      return invalid_argument("takes " + std::string(texels_text()) + ", and the format is " + std::string(facts.name));
    }
    const bool writes = given_.access != Access::read;
    if (writes && facts.channels != texture_.channels) {
      return invalid_argument(holds + " with " + std::to_string(facts.channels) + " channels, and the job provides " +
                              tensor_text() + " with " + std::to_string(texture_.channels) +
                              " channels. Add format = \"" + std::string(facts.name) + "\"");
    }
    if (texture_.channels > facts.channels) {
      return invalid_argument(holds + " with " + std::to_string(facts.channels) + " channels, and the job provides " +
                              tensor_text() + ", so some channels would be lost");
    }
    const bool reads = given_.access != Access::write;
    if (reads && facts.packed) {
      return unsupported(holds + ", which no file stores without loss. Such an image can only be an output");
    }
    const bool exact = facts.dtype == given_.dtype;
    // A texture in a buffer is the tensor's own bytes: nothing converts them.
    if (resource_.texture.buffer && (!exact || facts.channels != texture_.channels)) {
      return invalid_argument("is a buffer texture and " + holds + ", which is " +
                              std::string(numpy_name(facts.dtype)) + " with " + std::to_string(facts.channels) +
                              " channels, and the job provides " + tensor_text() + " with " +
                              std::to_string(texture_.channels) + " channels");
    }
    if (exact) return {};
    const bool narrow = given_.dtype == DType::u8 || given_.dtype == DType::u16;
    if (writes) {  // the samples of a PNG are 0 to 1 of what the image holds
      const bool shows = given_.shown && narrow && !integer && !is_signed_normalized(facts);
      if (shows && (!reads || narrow_fits(facts))) return {};
    } else if (integer                      ? widens(facts.dtype)
               : given_.dtype == DType::f16 ? facts.dtype == DType::f32
                                            : narrow_fits(facts)) {
      return {};
    }
    return invalid_argument(holds + ", and the job provides " + std::string(numpy_name(given_.dtype)) +
                            ", which cannot be converted without loss (expected " +
                            std::string(numpy_name(facts.dtype)) + ")");
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
    if (is_signed_normalized(facts)) return false;  // 32767 is no multiple of 127
    if (given_.dtype == DType::u8) return facts.dtype == DType::u16 || facts.kind == TexelKind::real;
    return (given_.dtype == DType::u16 || given_.dtype == DType::i8 || given_.dtype == DType::i16) &&
           facts.kind == TexelKind::real && facts.dtype == DType::f32;
  }

  Status set_filter() {
    if (resource_.texture.alone) {
      texture_.filter = TextureFilter::nearest;
      if (given_.filter == TextureFilter::automatic && given_.wrap == TextureWrap::clamp) return {};
      return invalid_argument("is a texture without a sampler. Set filter and wrap for the sampler instead");
    }
    const bool integer = facts_of(texture_.format).kind == TexelKind::integer;
    if (integer && given_.filter == TextureFilter::linear) {
      return invalid_argument("reads integers, which filter = \"linear\" does not support (expected \"nearest\")");
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

Result<TextureSource> match_sampler(const ProgramResource& resource, const UserKernelSpec::Binding& given) {
  TextureSource made;
  made.filter = given.filter;
  made.wrap = given.wrap;
  const bool real = resource.element == ElementType::f32;
  if (made.filter == TextureFilter::automatic) made.filter = real ? TextureFilter::linear : TextureFilter::nearest;
  const std::string_view reads =
      resource.element == ElementType::unknown ? "reads integers and floating-point numbers" : "reads integers";
  if (!real && made.filter == TextureFilter::linear) {
    return invalid_argument(std::string(reads) +
                            ", and filter = \"linear\" does not support integers (expected \"nearest\")");
  }
  if (resource.element == ElementType::unknown && made.wrap == TextureWrap::border) {
    return invalid_argument(std::string(reads) +
                            ", which have no common border colour. Use another wrap, or two samplers");
  }
  return made;
}

Result<TextureSource> match_texture(const ProgramResource& resource, const UserKernelSpec::Binding& given) {
  return TextureMatch(resource, given).texture();
}

}  // namespace kiln
