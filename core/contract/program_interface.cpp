#include <kiln/config_text.hpp>
#include <kiln/program_interface.hpp>

#include "contract/resource_checks.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace kiln {
namespace {

using config::toml_key;
using Uniform = UserKernelSpec::Uniform;

bool is_texture(BindingKind kind) noexcept {
  return kind == BindingKind::image || kind == BindingKind::sampler || kind == BindingKind::sampler_state;
}

// Finds what the job provides for each resource, and what is left over.
class Matching {
 public:
  Matching(const ProgramInterface& declared, const UserKernelSpec& kernel)
      : declared_(declared), kernel_(kernel), taken_(kernel.bindings.size()), set_(kernel.uniforms.size()) {
    std::uint32_t tensor = 0;
    for (const UserKernelSpec::Binding& binding : kernel.bindings) {
      if (binding.kind == BindingKind::grid) taken_[tensors_.size()] = true;  // no resource of the program
      tensors_.push_back(has_tensor(binding.kind) ? tensor++ : ResourceSource::none);
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
      if (source) {
        sources.push_back(*source);
      } else if (resource.block.empty() || ++wrong_in_[resource.block] <= most_told) {
        problem(source.error().within(described(resource)).message);
      }
    }
    for (const auto& [block, count] : wrong_in_) {
      if (count > most_told) problem(std::to_string(count - most_told) + " more problems in uniform block " + block);
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
      case ResourceKind::sampler_state:
        return source_of_sampler(resource);
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
      status = invalid_argument("takes at least " + bytes_text(block.bytes) + ", and the job provides " +
                                bytes_text(given.bytes));
    }
    if (!status.ok()) return status.within(described(given, *at));
    return ResourceSource{tensors_[*at]};
  }

  Result<ResourceSource> source_of_texture(const ProgramResource& resource) {
    const bool image = resource.kind == ResourceKind::image;
    const std::string_view table = image ? "images" : "samplers";
    const auto found = texture_named(resource.name, image ? BindingKind::image : BindingKind::sampler);
    if (!found) {
      return invalid_argument(
          "not provided by the job. Add " + std::string(table) + " = { " + toml_key(resource.name) + " = { " +
          (image && resource.access == Access::write ? "output = …, size = [W, H]" : "input = …") + " } }");
    }
    const UserKernelSpec::Binding& given = kernel_.bindings[*found];
    taken_[*found] = true;
    if (Status status = check_access(resource, given, resource.access == Access::read); !status.ok()) {
      return status.within(described(given, *found));
    }
    auto texture = match_texture(resource, given);
    if (!texture) return texture.error().within(described(given, *found));
    ResourceSource source{tensors_[*found]};
    source.texture = *texture;
    return source;
  }

  Result<ResourceSource> source_of_sampler(const ProgramResource& resource) {
    const auto found = texture_named(resource.name, BindingKind::sampler_state);
    if (!found) {
      return invalid_argument("not provided by the job. Add samplers = { " + toml_key(resource.name) +
                              " = { filter = \"linear\", wrap = \"clamp\" } }, without input");
    }
    taken_[*found] = true;
    auto state = match_sampler(resource, kernel_.bindings[*found]);
    if (!state) return state.error().within(described(kernel_.bindings[*found], *found));
    ResourceSource source;
    source.texture = *state;
    return source;
  }

  std::optional<std::size_t> texture_named(std::string_view name, BindingKind kind) const {
    const auto found = std::ranges::find_if(kernel_.bindings, [&](const UserKernelSpec::Binding& binding) {
      return binding.kind == kind && binding.name == name;
    });
    if (found == kernel_.bindings.end()) return std::nullopt;
    return static_cast<std::size_t>(found - kernel_.bindings.begin());
  }

  // A binding of the counter's name, or of another counter's in the same buffer.
  Result<ResourceSource> source_of_counter(const ProgramResource& counter) {
    std::optional<std::size_t> at = provider_named(counter.name);
    for (const ProgramResource& other : declared_.resources) {
      if (other.kind != ResourceKind::atomic_counter || other.number != counter.number) continue;
      const std::optional<std::size_t> of_other = provider_named(other.name);
      if (!at) at = of_other;
      if (of_other && of_other != at) {
        return invalid_argument("shares its buffer with atomic counter " + other.name +
                                ", and the job provides two buffers: bindings[" + std::to_string(*at) +
                                "] and bindings[" + std::to_string(*of_other) + "]. Remove one of them");
      }
    }
    if (!at) {
      return invalid_argument("not provided by the job. Add bindings = [ …, { output = FILE, shape = [" +
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
      std::string what = "not provided by the job (the job provides " + provided() + ")";
      const std::string_view form = block.access == Access::write ? "output = …, shape = [N]" : "input = …";
      return invalid_argument(what + ". Add { " + std::string(form) + " } with " +
                              (block.number ? "binding = " + std::to_string(*block.number) + " or " : "") +
                              "name = \"" + block.name + "\"");
    }
    taken_[*at] = true;
    const UserKernelSpec::Binding& given = kernel_.bindings[*at];
    Status status;
    if (block.mentioned) {
      status = check_buffer(block, given, all_read_only(*at));
    } else if (given.access != Access::read && only_unmentioned(*at)) {
      status = invalid_argument("the program declares but does not use this storage block, so " +
                                std::string(given_as(given)) + " cannot be written");
    }
    if (given.number && block.number && given.number != block.number) {
      status = invalid_argument("the job gives the name together with binding " + std::to_string(*given.number) +
                                ". Remove one of them, or correct the number");
    }
    if (!status.ok()) return status.within(described(given, *at));
    return ResourceSource{tensors_[*at]};
  }

  // The binding of that name, else the one of that number that no name claims.
  std::optional<std::size_t> provider_of(const ProgramResource& block) const {
    const auto& bindings = kernel_.bindings;
    if (const auto named = provider_named(block.name)) return named;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      if (bindings[i].kind == BindingKind::grid) continue;
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
      return invalid_argument("not provided by the job. Add uniforms = { " + toml_key(whole) + " = … }");
    }
    return invalid_argument("not provided by the job. Add blocks = { " + toml_key(resource.block) + " = { " +
                            toml_key(whole.substr(resource.block.size() + 1)) + " = … } }");
  }

  Result<ResourceSource> source_of_argument(const ProgramResource& argument) {
    const std::size_t at = argument.number.value_or(0);
    if (at >= kernel_.bindings.size()) {
      return invalid_argument("not provided by the job (the job provides " + std::to_string(kernel_.bindings.size()) +
                              " bindings)");
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

  // What is given for a resource that cannot be set is not left over: the resource has its own error.
  bool is_unusable(std::string_view given) const {
    return std::ranges::any_of(declared_.resources, [&](const ProgramResource& resource) {
      const std::string_view whole = std::string_view(resource.name).substr(0, element_name(resource.name).size);
      return !resource.unusable.empty() && (resource.name == given || whole == given);
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
      if (taken_[i] || is_unusable(given.name)) continue;
      const std::string who = described(given, i) + ": ";
      if (kernel_.dialect == Dialect::opencl_c) {
        problem(who + "the kernel takes " + std::to_string(declared_.resources.size()) + " arguments");
      } else if (is_texture(given.kind)) {
        if (!is_unused_texture(given)) {
          const ResourceKind kind = given.kind == BindingKind::image     ? ResourceKind::image
                                    : given.kind == BindingKind::sampler ? ResourceKind::sampler
                                                                         : ResourceKind::sampler_state;
          problem(who + "the program has no such " + std::string(to_string(kind)) + " (it has " +
                  list_of(declared_.resources, kind) + ")");
        } else if (has_tensor(given.kind) && given.access != Access::read) {
          problem(who + "the program declares but does not use this image, so the image cannot be written");
        }
      } else if (!is_unused(given, i)) {
        problem(who + "the program has no such storage block (it has " +
                list_of(declared_.resources, ResourceKind::storage_block) + ")");
      } else if (given.access != Access::read) {
        problem(who + "the program declares but does not use this storage block, so " + std::string(given_as(given)) +
                " cannot be written");
      }
    }
    std::map<std::string, std::size_t> left_over_in;  // values of a block, a struct or an array
    for (std::size_t i = 0; i < kernel_.uniforms.size(); ++i) {
      const std::string& name = kernel_.uniforms[i].name;
      const auto same = [&](const ProgramResource& other) {
        const std::string_view whole = std::string_view(other.name).substr(0, element_name(other.name).size);
        return other.kind == ResourceKind::uniform && (other.name == name || whole == name);
      };
      if (set_[i] || is_unusable(name) || std::ranges::any_of(declared_.unused, same)) continue;
      const std::string root = name.substr(0, name.find_first_of(".["));
      const std::size_t count = ++left_over_in[root];
      if (count > most_told) continue;
      problem(key_of(name) + name + ": the program has no such uniform" +
              (count == 1 ? " (it has " + list_of(declared_.resources, ResourceKind::uniform) + ")" : ""));
    }
    for (const auto& [root, count] : left_over_in) {
      if (count > most_told) problem(std::to_string(count - most_told) + " more problems in " + root);
    }
  }

  // Of the job: values of structs and of blocks have the same form of name.
  std::string key_of(std::string_view value) const {
    const std::string_view root = value.substr(0, value.find('.'));
    const bool in_block = std::ranges::any_of(declared_.resources, [root](const ProgramResource& resource) {
      return resource.kind == ResourceKind::uniform_block && resource.name == root;
    });
    if (in_block && root != value) return "blocks.";
    return root == value ? "uniforms." : "uniforms or blocks: ";
  }

  void problem(const std::string& message) { problems_ += (problems_.empty() ? "" : "; ") + message; }

  std::string provided() const {
    std::string text;
    for (std::size_t i = 0; i < kernel_.bindings.size(); ++i) {
      const UserKernelSpec::Binding& binding = kernel_.bindings[i];
      if (binding.kind == BindingKind::grid) continue;
      text += text.empty() ? "" : ", ";
      text += binding.name.empty() ? "binding " + std::to_string(binding.number.value_or(static_cast<std::uint32_t>(i)))
                                   : "block " + binding.name;
    }
    return text.empty() ? "no binding" : text;
  }

  static constexpr std::size_t most_told = 4;  // problems with the values of one block

  const ProgramInterface& declared_;
  const UserKernelSpec& kernel_;
  std::vector<std::uint32_t> tensors_;  // of each binding: its place among the launch's bindings
  std::vector<std::uint64_t> offsets_;  // of each uniform's values in the tensor of uniforms
  std::uint32_t uniforms_ = 0;          // that tensor's place among the launch's bindings
  std::string problems_;
  std::map<std::string, std::size_t> wrong_in_;  // by block: values that the job does not provide, or not rightly
  std::vector<bool> taken_, set_;                // bindings and uniforms that a resource uses
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
