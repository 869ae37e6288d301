#include <kiln/program_interface.hpp>

#include "contract/texture_match.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

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
  constexpr std::string_view words[] = {"several types",   "boolean",         "8-bit integers",  "8-bit integers",
                                        "16-bit integers", "16-bit integers", "32-bit integers", "32-bit integers",
                                        "64-bit integers", "64-bit integers", "float16",         "float32",
                                        "float64"};
  const auto at = static_cast<std::size_t>(element);
  return words[at < std::size(words) ? at : 0];
}

// "uniform float gain", "storage block Letters (binding 5)", "value argument float gain (argument 2)"
std::string described(const ProgramResource& resource) {
  std::string text(to_string(resource.kind));
  if (!resource.type.empty()) text += " " + resource.type;
  text += " " + resource.name;
  if (!resource.number) return text;
  const bool argument = resource.kind >= ResourceKind::buffer_argument;
  return text + (argument ? " (argument " : " (binding ") + std::to_string(*resource.number) + ")";
}

std::string described(const UserKernelSpec::Binding& binding, std::size_t position) {
  if (binding.kind == BindingKind::image) return "images." + binding.name;
  if (binding.kind == BindingKind::sampler) return "samplers." + binding.name;
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
  if (binding.access == Access::read) return "an input";
  return binding.access == Access::write ? "an output" : "an inout";
}

std::string list_of(std::span<const ProgramResource> resources, ResourceKind kind) {
  std::string text;
  for (const ProgramResource& resource : resources) {
    if (resource.kind == kind) text += (text.empty() ? "" : ", ") + described(resource);
  }
  return text.empty() ? "none" : text;
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

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

Status wrong_type(const ProgramResource& resource, const UserKernelSpec::Binding& given, std::string_view verb) {
  const std::string_view wanted = numpy_name(resource.element);
  std::string text = std::string(verb) + " " + std::string(word_of(resource.element)) + ", and the job provides " +
                     std::string(numpy_name(given.dtype));
  if (!wanted.empty()) text += ". Add dtype = \"" + std::string(wanted) + "\"";
  if (!wanted.empty() && given.access != Access::write) text += ", which converts a file if nothing is lost";
  return invalid_argument(std::move(text));
}

// all_read_only: every block that the binding provides is.
Status check_access(const ProgramResource& resource, const UserKernelSpec::Binding& given, bool all_read_only) {
  if (all_read_only && given.access != Access::read) {
    return invalid_argument("is read only in the program, and the job provides it as " + std::string(given_as(given)) +
                            ", which the kernel would have to write. Provide it as an input");
  }
  if (resource.access == Access::write && given.access == Access::read) {
    return invalid_argument(
        "is write only in the program, and the job provides it as an input, whose new content would be lost. Provide "
        "it as an output or inout");
  }
  return {};
}

Status check_size(const ProgramResource& resource, const UserKernelSpec::Binding& given) {
  if (given.bytes < resource.bytes) {
    return invalid_argument("takes at least " + bytes_text(resource.bytes) + ", and the job provides " +
                            bytes_text(given.bytes));
  }
  const std::uint64_t stride = resource.array_stride;
  if (stride == 0) return {};
  if (resource.open_ended && (given.bytes - resource.array_offset) % stride != 0) {
    return invalid_argument("holds an array whose elements take " + bytes_text(stride) + " each from byte " +
                            std::to_string(resource.array_offset) + " on, and the job provides " +
                            bytes_text(given.bytes) + ", which ends within an element");
  }
  const std::uint64_t used = resource.element_bytes;
  const std::uint64_t element = kiln::size_of(given.dtype);
  if (used == 0 || used == stride || element == 0) return {};
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
  return invalid_argument("holds an array whose elements lie " + bytes_text(stride) + " apart and use " +
                          std::to_string(used) + " of them, and the job provides " + to_string(given.shape) + " of " +
                          std::string(numpy_name(given.dtype)) + ". Pad the last dimension to " +
                          std::to_string(stride / element) + " elements, or declare an array without padding");
}

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

// "light.a[1][2]" behind its last dot: "a" and {1, 2}.
struct ElementName {
  std::size_t size = 0;  // of the name without indices
  std::vector<std::uint32_t> indices;
};

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

// The lengths that the values of a uniform may have, dimension by dimension.
struct Extent {
  std::uint32_t least = 0, most = 0;
};

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

// Of a uniform that is the last `outer` of its indices of what the job provides. The program may use fewer elements of
// an array than its source declares.
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
  const bool real = resource.element == ElementType::f32 || resource.element == ElementType::f64;
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

// Finds what the job provides for each resource, and what is left over.
class Matching {
 public:
  Matching(const ProgramInterface& declared, const UserKernelSpec& kernel)
      : declared_(declared), kernel_(kernel), taken_(kernel.bindings.size()), set_(kernel.uniforms.size()) {
    std::uint32_t tensor = 0;
    for (const UserKernelSpec::Binding& binding : kernel.bindings) {
      tensors_.push_back(binding.kind == BindingKind::local ? ResourceSource::none : tensor++);
    }
    std::uint64_t offset = 0;
    for (const Uniform& uniform : kernel.uniforms) {
      offsets_.push_back(offset);
      offset += values_in(uniform) * sizeof(double);
    }
    uniforms_ = tensor;
  }

  Result<std::vector<ResourceSource>> sources() {
    std::vector<ResourceSource> sources;
    for (const ProgramResource& resource : declared_.resources) {
      auto source = source_of(resource);
      if (source)
        sources.push_back(*source);
      else
        problem(source.error().within(described(resource)).message);
    }
    check_left_over();
    if (!problems_.empty()) return invalid_argument(problems_);
    return sources;
  }

 private:
  Result<ResourceSource> source_of(const ProgramResource& resource) {
    if (!resource.unusable.empty()) return unsupported(resource.unusable);
    if (!resource.block.empty() && provider_named(resource.block)) return ResourceSource{};
    const bool block = resource.kind == ResourceKind::storage_block;
    if (!resource.mentioned && resource.kind != ResourceKind::uniform && (!block || !provider_of(resource))) {
      return ResourceSource{};
    }
    switch (resource.kind) {
      case ResourceKind::storage_block:
        return source_of_block(resource);
      case ResourceKind::uniform:
        return source_of_uniform(resource);
      case ResourceKind::buffer_argument:
      case ResourceKind::value_argument:
      case ResourceKind::local_argument:
        return source_of_argument(resource);
      case ResourceKind::uniform_block:
        return source_of_uniform_block(resource);
      case ResourceKind::image:
      case ResourceKind::sampler:
        return source_of_texture(resource);
      case ResourceKind::atomic_counter:
        return source_of_counter(resource);
      case ResourceKind::invalid:
        break;
    }
    return unsupported("a job cannot provide this kind of resource");
  }

  // The whole block from a binding of its name; else its members have values of their own.
  Result<ResourceSource> source_of_uniform_block(const ProgramResource& block) {
    const std::optional<std::size_t> at = provider_named(block.name);
    if (!at) return ResourceSource{};
    taken_[*at] = true;
    const UserKernelSpec::Binding& given = kernel_.bindings[*at];
    Status status = check_access(block, given, true);
    if (status.ok() && given.bytes < block.bytes) {
      status =
          invalid_argument("takes " + bytes_text(block.bytes) + ", and the job provides " + bytes_text(given.bytes));
    }
    if (!status.ok()) return status.within(described(given, *at));
    return ResourceSource{tensors_[*at]};
  }

  Result<ResourceSource> source_of_texture(const ProgramResource& resource) {
    const bool image = resource.kind == ResourceKind::image;
    const std::string_view table = image ? "images" : "samplers";
    const BindingKind kind = image ? BindingKind::image : BindingKind::sampler;
    const auto& bindings = kernel_.bindings;
    const auto found = std::ranges::find_if(bindings, [&](const UserKernelSpec::Binding& binding) {
      return binding.kind == kind && binding.name == resource.name;
    });
    if (found == bindings.end()) {
      return invalid_argument("the job provides nothing for it. Add " + std::string(table) + " = { " + resource.name +
                              " = { input = … } }");
    }
    const auto at = static_cast<std::size_t>(found - bindings.begin());
    taken_[at] = true;
    if (Status status = check_access(resource, *found, resource.access == Access::read); !status.ok()) {
      return status.within(described(*found, at));
    }
    auto texture = match_texture(resource, *found);
    if (!texture) return texture.error().within(described(*found, at));
    ResourceSource source{tensors_[at]};
    source.texture = *texture;
    return source;
  }

  // A binding of the counter's name, or of another counter's in the same buffer.
  Result<ResourceSource> source_of_counter(const ProgramResource& counter) {
    std::optional<std::size_t> at = provider_named(counter.name);
    for (const ProgramResource& other : declared_.resources) {
      if (!at && other.kind == ResourceKind::atomic_counter && other.number == counter.number) {
        at = provider_named(other.name);
      }
    }
    if (!at) {
      return invalid_argument("the job provides nothing for it. Add bindings = [ …, { output = FILE, shape = [" +
                              std::to_string(counter.bytes / sizeof(std::uint32_t)) +
                              "], dtype = \"uint32\", name = \"" + counter.name + "\" } ]");
    }
    taken_[*at] = true;
    const UserKernelSpec::Binding& given = kernel_.bindings[*at];
    Status status = check_buffer(counter, given, false);
    if (!status.ok()) return status.within(described(given, *at));
    return ResourceSource{tensors_[*at]};
  }

  Result<ResourceSource> source_of_block(const ProgramResource& block) {
    const std::optional<std::size_t> at = provider_of(block);
    if (!at) {
      std::string what = "the job provides nothing for it (it provides " + provided() + ")";
      return invalid_argument(what + ". Add { input = … } with " +
                              (block.number ? "binding = " + std::to_string(*block.number) + " or " : "") +
                              "name = \"" + block.name + "\"");
    }
    taken_[*at] = true;
    const UserKernelSpec::Binding& given = kernel_.bindings[*at];
    Status status;
    if (block.mentioned) {
      status = check_buffer(block, given, all_read_only(*at));
    } else if (given.access != Access::read && only_unmentioned(*at)) {
      status = invalid_argument("the program declares it and does not use it, so " + std::string(given_as(given)) +
                                " cannot be written");
    }
    if (given.number && block.number && given.number != block.number) {
      status = invalid_argument("the job gives it binding " + std::to_string(*given.number) +
                                " beside its name. Remove one of them, or correct the number");
    }
    if (!status.ok()) return status.within(described(given, *at));
    return ResourceSource{tensors_[*at]};
  }

  // The binding of that name, else the one of that number that no name claims.
  std::optional<std::size_t> provider_of(const ProgramResource& block) const {
    const auto& bindings = kernel_.bindings;
    if (const auto named = provider_named(block.name)) return named;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      if (bindings[i].name.empty() && block.number == bindings[i].number.value_or(static_cast<std::uint32_t>(i))) {
        return i;
      }
    }
    return std::nullopt;
  }

  std::optional<std::size_t> provider_named(std::string_view name) const {
    const auto& bindings = kernel_.bindings;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      if (bindings[i].kind == BindingKind::buffer && !name.empty() && bindings[i].name == name) return i;
    }
    return std::nullopt;
  }

  bool all_read_only(std::size_t binding) const {
    return std::ranges::all_of(declared_.resources, [&](const ProgramResource& other) {
      return other.kind != ResourceKind::storage_block || other.access == Access::read || provider_of(other) != binding;
    });
  }

  bool only_unmentioned(std::size_t binding) const {
    return std::ranges::none_of(declared_.resources, [&](const ProgramResource& other) {
      return other.kind == ResourceKind::storage_block && other.mentioned && provider_of(other) == binding;
    });
  }

  // What has its name, or an array of arrays that it is a part of: "a" provides "a[0]" and "a[1]" of float a[2][3].
  Result<ResourceSource> source_of_uniform(const ProgramResource& resource) {
    const ElementName element = element_name(resource.name);
    const std::size_t dimensions = element.indices.size();
    for (std::size_t i = 0; i < kernel_.uniforms.size(); ++i) {
      const Uniform& given = kernel_.uniforms[i];
      if (given.name.size() < element.size || !resource.name.starts_with(given.name)) continue;
      const std::size_t named = element_name(given.name).indices.size();
      if (given.name.size() != resource.name.size() && resource.name[given.name.size()] != '[') continue;
      set_[i] = true;
      const std::size_t outer = dimensions - named;
      const std::vector<Extent> extents = extents_of(resource, element.indices, outer);
      if (Status status = check_uniform(resource, given, extents); !status.ok()) return status;
      std::uint64_t index = 0;
      std::uint64_t values = values_in(given);
      for (std::size_t d = 0; d < outer; ++d) {
        index = index * given.shape[d] + element.indices[named + d];
        values /= given.shape[d];
      }
      return ResourceSource{uniforms_, offsets_[i] + index * values * sizeof(double), given.type};
    }
    if (resource.has_default || !resource.mentioned) return ResourceSource{};
    const std::string whole = resource.name.substr(0, element.size);
    if (resource.block.empty()) {
      return invalid_argument("the job provides nothing for it. Add uniforms = { " + whole + " = … }");
    }
    return invalid_argument("the job provides nothing for it. Add blocks = { " + resource.block + " = { " +
                            whole.substr(resource.block.size() + 1) + " = … } }");
  }

  Result<ResourceSource> source_of_argument(const ProgramResource& argument) {
    const std::size_t at = argument.number.value_or(0);
    if (at >= kernel_.bindings.size()) {
      return invalid_argument("the job provides nothing for it (it provides " +
                              std::to_string(kernel_.bindings.size()) + " bindings)");
    }
    const UserKernelSpec::Binding& given = kernel_.bindings[at];
    taken_[at] = true;
    Status status;
    if (argument.kind == ResourceKind::value_argument) {
      status = check_value(argument, given);
    } else if (argument.kind == ResourceKind::local_argument) {
      if (given.kind != BindingKind::local) {
        status = invalid_argument("points to local memory, and the job provides " + std::string(given_as(given)) +
                                  ". Provide { local = BYTES }");
      }
    } else if (given.kind != BindingKind::buffer) {
      status = invalid_argument("points to a buffer, and the job provides " + std::string(given_as(given)) +
                                ". Provide { input = … }, { output = … } or { inout = … }");
    } else {
      status = check_buffer(argument, given, argument.access == Access::read);
    }
    if (!status.ok()) return status.within(described(given, at));
    if (given.kind == BindingKind::local) return ResourceSource{ResourceSource::none, given.bytes};
    return ResourceSource{tensors_[at]};
  }

  bool is_unused(const UserKernelSpec::Binding& given, std::size_t position) const {
    return std::ranges::any_of(declared_.unused, [&](const ProgramResource& resource) {
      if (!given.name.empty()) return resource.name == given.name;
      if (resource.kind != ResourceKind::storage_block) return false;
      return !resource.number || *resource.number == given.number.value_or(static_cast<std::uint32_t>(position));
    });
  }

  // OpenGL and the text of a program count images and samplers among the uniforms.
  bool is_unused_texture(const UserKernelSpec::Binding& given) const {
    return std::ranges::any_of(declared_.unused, [&](const ProgramResource& resource) {
      const std::string_view whole = std::string_view(given.name).substr(0, element_name(given.name).size);
      return resource.kind == ResourceKind::uniform && (resource.name == given.name || resource.name == whole);
    });
  }

  // What the job provides and the program does not take: most likely a mistyped name or number.
  void check_left_over() {
    for (std::size_t i = 0; i < kernel_.bindings.size(); ++i) {
      const UserKernelSpec::Binding& given = kernel_.bindings[i];
      if (taken_[i]) continue;
      const std::string who = described(given, i) + ": ";
      if (kernel_.dialect == Dialect::opencl_c) {
        problem(who + "the kernel takes " + std::to_string(declared_.resources.size()) + " arguments");
      } else if (given.kind == BindingKind::image || given.kind == BindingKind::sampler) {
        if (!is_unused_texture(given)) {
          const ResourceKind kind = given.kind == BindingKind::image ? ResourceKind::image : ResourceKind::sampler;
          problem(who + "the program has no such " + std::string(to_string(kind)) + " (it has " +
                  list_of(declared_.resources, kind) + ")");
        } else if (given.access != Access::read) {
          problem(who + "the program declares it and does not use it, so it cannot be written");
        }
      } else if (!is_unused(given, i)) {
        problem(who + "the program has no such storage block (it has " +
                list_of(declared_.resources, ResourceKind::storage_block) + ")");
      } else if (given.access != Access::read) {
        problem(who + "the program declares this storage block and does not use it, so " +
                std::string(given_as(given)) + " cannot be written");
      }
    }
    for (std::size_t i = 0; i < kernel_.uniforms.size(); ++i) {
      const std::string& name = kernel_.uniforms[i].name;
      const auto same = [&](const ProgramResource& other) {
        const std::string_view whole = std::string_view(other.name).substr(0, element_name(other.name).size);
        return other.kind == ResourceKind::uniform && (other.name == name || whole == name);
      };
      if (set_[i] || std::ranges::any_of(declared_.unused, same)) continue;
      problem("uniforms." + name + ": the program has no such uniform (it has " +
              list_of(declared_.resources, ResourceKind::uniform) + ")");
    }
  }

  void problem(const std::string& message) { problems_ += (problems_.empty() ? "" : "; ") + message; }

  std::string provided() const {
    std::string text;
    for (std::size_t i = 0; i < kernel_.bindings.size(); ++i) {
      const UserKernelSpec::Binding& binding = kernel_.bindings[i];
      text += text.empty() ? "" : ", ";
      text += binding.name.empty() ? "binding " + std::to_string(binding.number.value_or(static_cast<std::uint32_t>(i)))
                                   : "block " + binding.name;
    }
    return text.empty() ? "no binding" : text;
  }

  const ProgramInterface& declared_;
  const UserKernelSpec& kernel_;
  std::vector<std::uint32_t> tensors_;  // of each binding: its place among the launch's bindings
  std::vector<std::uint64_t> offsets_;  // of each uniform's values in the tensor of uniforms
  std::uint32_t uniforms_ = 0;          // that tensor's place among the launch's bindings
  std::string problems_;
  std::vector<bool> taken_, set_;  // bindings and uniforms that a resource uses
};

}  // namespace

std::uint64_t values_in(const ProgramResource& uniform) noexcept {
  std::uint64_t values = 1;
  for (const std::uint32_t extent : uniform.shape) values *= extent;
  return values;
}

Result<std::vector<ResourceSource>> provide(const ProgramInterface& declared, const UserKernelSpec& kernel) {
  for (const Uniform& uniform : kernel.uniforms) {
    const bool typed = uniform.type == Uniform::Type::boolean || uniform.type == Uniform::Type::integer ||
                       uniform.type == Uniform::Type::number;
    if (!typed || values_in(uniform) == 0) {
      return invalid_argument("uniform '" + uniform.name + "': has no " + (typed ? "values" : "type"));
    }
  }
  return Matching(declared, kernel).sources();
}

}  // namespace kiln
