#include "objects/binding.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include <kiln/device_checks.hpp>
#include <kiln/uniform_values.hpp>

namespace kiln::vulkan {
namespace {

constexpr std::size_t source_words = 5, grid_words = 2;

std::size_t most_words(const PassLaunch& launch) {
  return 2 + launch.bindings.size() + source_words * launch.sources.size() + grid_words;
}

std::uint64_t pair(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

// Assigns the buffers of a launch to the descriptors of its program.
class Binder {
 public:
  Binder(const VulkanProgram& program, const PassLaunch& launch, BoundPass& pass)
      : reflection_(program.reflection()), program_(program), launch_(launch), pass_(pass) {}

  Status bind() {
    make_blocks();
    const Status status = launch_.sources.empty() ? bind_by_number() : bind_by_source();
    if (!status.ok()) return status;
    return check_complete();
  }

 private:
  VulkanBuffer& buffer(std::size_t binding) { return static_cast<VulkanBuffer&>(*launch_.bindings[binding]); }

  void make_blocks() {
    for (const ValueBlock& block : reflection_.blocks) {
      if (!block.slot) pass_.push_constants = pass_.values.size();
      pass_.values.emplace_back(block.bytes);
    }
  }

  void add(std::uint32_t slot, std::uint32_t element, VulkanBuffer& buffer) {
    BoundDescriptor& bound = pass_.descriptors.emplace_back();
    bound.slot = slot;
    bound.element = element;
    bound.buffer = buffer.handle();
    bound.bytes = buffer.bytes();
  }

  // bindings[i] is the resource that declares binding i in the way of view i.
  Status bind_by_number() {
    for (std::uint32_t slot = 0; slot < reflection_.slots.size(); ++slot) {
      const DescriptorSlot& declared = reflection_.slots[slot];
      for (std::uint32_t element = 0; element < declared.count; ++element) {
        const std::uint32_t number = declared.declared + element;
        if (number >= launch_.bindings.size()) {
          return invalid_argument("the program has binding " + std::to_string(number) + ", the launch provides " +
                                  std::to_string(launch_.bindings.size()));
        }
        if (Status status = bind_view(slot, element, number); !status.ok()) return status;
      }
    }
    return {};
  }

  Status bind_view(std::uint32_t slot, std::uint32_t element, std::uint32_t number) {
    const VkDescriptorType type = reflection_.slots[slot].type;
    const View view = program_.view(number);
    const bool texels = type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
               image = type == VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
    const bool fits = texels  ? view == View::texels
                      : image ? view == View::image
                              : type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER && view == View::storage;
    if (!fits) {
      return invalid_argument("binding " + std::to_string(number) + " is viewed as " + std::string(to_string(view)) +
                              ", and the program declares another kind of resource there");
    }
    add(slot, element, buffer(number));
    if (!texels && !image) return {};
    auto made = buffer(number).texels();
    if (!made) return made.error();
    pass_.descriptors.back().view = *made;
    return {};
  }

  Status bind_by_source() {
    if (launch_.sources.size() != reflection_.resources.size()) {
      return invalid_argument(std::to_string(launch_.sources.size()) + " resources are provided, expected " +
                              std::to_string(reflection_.resources.size()));
    }
    for (std::size_t i = 0; i < launch_.sources.size(); ++i) {
      if (Status status = bind(reflection_.resources[i], launch_.sources[i]); !status.ok()) return status;
    }
    for (std::size_t i = 0; i < reflection_.blocks.size(); ++i) {
      const ValueBlock& block = reflection_.blocks[i];
      if (!block.slot || has(*block.slot, block.element)) continue;
      BoundDescriptor& bound = pass_.descriptors.emplace_back();
      bound.slot = *block.slot;
      bound.element = block.element;
      bound.values = i;
    }
    return {};
  }

  bool has(std::uint32_t slot, std::uint32_t element) const {
    return std::ranges::any_of(pass_.descriptors, [&](const BoundDescriptor& bound) {
      return bound.slot == slot && bound.element == element;
    });
  }

  Status bind(const ProgramResource& resource, const ResourceSource& source) {
    const bool provided = source.binding < launch_.bindings.size();
    if (resource.kind == ResourceKind::uniform) return provided ? bind_uniform(resource, source) : ok_status();
    if (resource.kind == ResourceKind::uniform_block) {
      if (!provided) return {};
      const ValueBlock& block = reflection_.blocks[static_cast<std::size_t>(resource.handle)];
      add(*block.slot, block.element, buffer(source.binding));
      return {};
    }
    if (!provided) {
      return invalid_argument(std::string(to_string(resource.kind)) + " " + resource.name + ": nothing provides it");
    }
    if (resource.kind == ResourceKind::image || resource.kind == ResourceKind::sampler) {
      return bind_texture(resource, source).within(resource.type + " " + resource.name);
    }
    const auto place = static_cast<std::uint64_t>(resource.handle);
    const auto slot = static_cast<std::uint32_t>(place >> 32);
    const auto element = static_cast<std::uint32_t>(place);
    if (!has(slot, element)) add(slot, element, buffer(source.binding));
    return {};
  }

  Status bind_texture(const ProgramResource& resource, const ResourceSource& source) {
    const TextureSlot& place = reflection_.textures[static_cast<std::size_t>(resource.handle)];
    const VkDescriptorType use = reflection_.slots[place.slot].type;
    const TextureSource& form = source.texture;
    VulkanBuffer& from = buffer(source.binding);
    const bool exact = has_its_texels(form), written = form.access != Access::read;
    if (!exact && (written || resource.texture.buffer)) {
      return unsupported("a tensor of " + std::string(numpy_name(form.dtype)) + " with " +
                         std::to_string(form.channels) + " channels as " + std::string(facts_of(form.format).name) +
                         " is not supported on Vulkan devices. Provide the format's own type, or use an opengl device");
    }
    add(place.slot, place.element, from);
    BoundDescriptor& bound = pass_.descriptors.back();
    if (resource.texture.buffer) {
      const std::uint64_t texel = std::uint64_t{form.channels} * size_of(form.dtype);
      const std::uint64_t most = program_.gpu().facts().properties.limits.maxTexelBufferElements;
      if (form.size[0] > most) {
        return unsupported(std::to_string(form.size[0]) + " texels, the device takes " + std::to_string(most));
      }
      auto view = from.texels(vulkan_format(form.format), form.size[0] * texel);
      if (!view) return view.error();
      bound.view = *view;
      return {};
    }
    auto texture = from.texture(place.view, form, use);
    if (!texture) return texture.error();
    bound.texture = *texture;
    BoundTexture& filled = pass_.textures.emplace_back();
    filled.texture = *texture;
    filled.buffer = from.handle();
    filled.written = written;
    if (exact) return {};
    std::vector<std::byte> read;
    std::span<const std::byte> tensor = from.written();
    if (tensor.empty()) {
      read.resize(from.bytes());
      if (Status status = from.read(0, read); !status.ok()) return status;
      tensor = read;
    }
    auto texels = converted_texels(form, tensor);
    if (!texels) return texels.error();
    filled.values = pass_.values.size();
    pass_.values.push_back(std::move(*texels));
    return {};
  }

  Status bind_uniform(const ProgramResource& resource, const ResourceSource& source) {
    const UniformMember& member = reflection_.members[static_cast<std::size_t>(resource.handle)];
    const std::uint64_t bytes = values_in(resource) * sizeof(double);
    VulkanBuffer& from = buffer(source.binding);
    std::span<const std::byte> whole = from.written();
    if (whole.empty()) {
      if (uniforms_.empty()) {
        uniforms_.resize(static_cast<std::size_t>(from.bytes()));
        if (Status status = from.read(0, uniforms_); !status.ok()) return status;
      }
      whole = uniforms_;
    }
    if (whole.size() < source.offset + bytes) {
      return invalid_argument("uniforms." + resource.name + ": its values end at byte " +
                              std::to_string(source.offset + bytes) + " of " + std::to_string(whole.size()));
    }
    auto components = uniform_components(resource, whole.data() + source.offset, source.given);
    if (!components) return std::move(components).error();
    place_in_block(resource, member.place, *components, pass_.values[member.block]);
    return {};
  }

  Status check_complete() const {
    std::size_t expected = 0;
    for (const DescriptorSlot& slot : reflection_.slots) expected += slot.count;
    if (pass_.descriptors.size() == expected) return {};
    return internal_error(std::to_string(pass_.descriptors.size()) + " descriptors, the program has " +
                          std::to_string(expected));
  }

  const Reflection& reflection_;
  const VulkanProgram& program_;
  const PassLaunch& launch_;
  BoundPass& pass_;
  std::vector<std::byte> uniforms_;  // of the tensor of uniforms, where the host cannot read it
};

Result<BoundPass> bind_pass(std::size_t index, const PassLaunch& launch, const DeviceInfo& info, const Gpu& gpu) {
  const std::string where = info.id + ": pass " + std::to_string(index);
  if (launch.program == nullptr) return invalid_argument(where + " has no program");
  const auto& program = static_cast<const VulkanProgram&>(*launch.program);
  if (&program.gpu() != &gpu) return invalid_argument(where + ": its program belongs to another device");
  BoundPass pass;
  pass.program = &program;
  pass.nothing = launch.grid == PassLaunch::nothing;
  if (pass.nothing) return pass;
  if (launch.sources.empty() && launch.bindings.size() != program.bindings()) {
    return invalid_argument(where + ": " + std::to_string(launch.bindings.size()) + " buffers, expected " +
                            std::to_string(program.bindings()));
  }
  for (Buffer* each : launch.bindings) {
    const std::string who = where + ": binding " + std::to_string(pass.buffers.size());
    if (each == nullptr) return invalid_argument(who + " is empty");
    auto& buffer = static_cast<VulkanBuffer&>(*each);
    if (&buffer.gpu() != &gpu) return invalid_argument(who + ": the buffer belongs to another device");
    pass.buffers.push_back(&buffer);
  }
  if (Status status = Binder(program, launch, pass).bind(); !status.ok()) return status.within(where);
  return pass;
}

}  // namespace

LaunchKeys::LaunchKeys(const Dispatch& dispatch, const Gpu& gpu) {
  std::size_t count = 0;
  for (const PassLaunch& launch : dispatch.passes) count += most_words(launch);
  words_.reserve(count);
  ends_.reserve(dispatch.passes.size());
  for (const PassLaunch& launch : dispatch.passes) {
    complete_ = complete_ && add(launch, gpu);
    ends_.push_back(words_.size());
  }
}

bool LaunchKeys::add(const PassLaunch& launch, const Gpu& gpu) {
  const auto* program = static_cast<const VulkanProgram*>(launch.program);
  if (program == nullptr || &program->gpu() != &gpu) return false;
  words_.push_back(program->number());
  const std::uint64_t nothing = launch.grid == PassLaunch::nothing ? 1 : 0;
  words_.push_back(pair(launch.bindings.size(), launch.sources.size()) | nothing << 63);
  for (const Buffer* each : launch.bindings) {
    const auto* buffer = static_cast<const VulkanBuffer*>(each);
    if (buffer == nullptr || &buffer->gpu() != &gpu) return false;
    words_.push_back(buffer->number());
  }
  for (const ResourceSource& source : launch.sources) {
    const TextureSource& texture = source.texture;
    const auto byte = [](auto value, unsigned at) { return std::uint64_t{static_cast<std::uint8_t>(value)} << 8 * at; };
    words_.push_back(pair(source.binding, texture.channels));
    words_.push_back(source.offset);
    words_.push_back(pair(texture.size[0], texture.size[1]));
    words_.push_back(texture.size[2]);
    words_.push_back(byte(source.given, 0) | byte(texture.dtype, 1) | byte(texture.format, 2) |
                     byte(texture.filter, 3) | byte(texture.wrap, 4) | byte(texture.access, 5));
  }
  words_.push_back(pair(launch.grid[0], launch.grid[1]));
  words_.push_back(pair(launch.grid[2], launch.waits ? 1 : 0));
  return true;
}

std::span<const std::uint64_t> LaunchKeys::binds(std::size_t launch) const {
  const std::size_t begin = launch == 0 ? 0 : ends_[launch - 1];
  return std::span(words_).subspan(begin, ends_[launch] - begin - grid_words);
}

bool LaunchKeys::equal(std::size_t a, std::size_t b) const {
  return complete_ && std::ranges::equal(binds(a), binds(b));
}

std::uint64_t LaunchKeys::hash(std::size_t launch) const {
  std::uint64_t hash = 0xcbf29ce484222325;
  if (complete_) {
    for (const std::uint64_t word : binds(launch)) hash = (hash ^ word) * 0x100000001b3;
  }
  return hash;
}

namespace {

// REQUIRES: the launch was bound.
bool writes_to(const PassLaunch& launch, const Buffer* buffer) {
  if (launch.grid == PassLaunch::nothing) return false;
  if (launch.sources.empty()) return std::ranges::find(launch.bindings, buffer) != launch.bindings.end();
  const auto& resources = static_cast<const VulkanProgram*>(launch.program)->reflection().resources;
  for (std::size_t i = 0; i < launch.sources.size(); ++i) {
    const ResourceSource& source = launch.sources[i];
    if (source.binding >= launch.bindings.size() || launch.bindings[source.binding] != buffer) continue;
    const bool texture = resources[i].kind == ResourceKind::image || resources[i].kind == ResourceKind::sampler;
    if ((texture ? source.texture.access : resources[i].access) != Access::read) return true;
  }
  return false;
}

// The host converts texels when it binds them, before any pass has run: no earlier pass may write them.
Status check_converted(const Dispatch& dispatch, std::size_t index, const DeviceInfo& info) {
  const PassLaunch& launch = dispatch.passes[index];
  const auto& resources = static_cast<const VulkanProgram*>(launch.program)->reflection().resources;
  for (std::size_t i = 0; i < launch.sources.size(); ++i) {
    const TextureSource& form = launch.sources[i].texture;
    const bool texture = resources[i].kind == ResourceKind::image || resources[i].kind == ResourceKind::sampler;
    if (!texture || has_its_texels(form)) continue;
    const Buffer* const tensor = launch.bindings[launch.sources[i].binding];
    const auto is_written = [tensor](const PassLaunch& earlier) { return writes_to(earlier, tensor); };
    if (std::ranges::none_of(dispatch.passes.first(index), is_written)) continue;
    return unsupported(info.id + ": pass " + std::to_string(index) + ": " + resources[i].type + " " +
                       resources[i].name + ": an earlier pass writes its tensor of " +
                       std::string(numpy_name(form.dtype)) + " with " + std::to_string(form.channels) +
                       " channels, which cannot be converted to " + std::string(facts_of(form.format).name) +
                       " within a dispatch. Write a tensor of the format's own type and channels, or use an opengl "
                       "device");
  }
  return {};
}

}  // namespace

// Passes that bind the same to the same program share what is bound.
Result<Submission> bind(const Dispatch& dispatch, const LaunchKeys& keys, const DeviceInfo& info, const Gpu& gpu) {
  Submission work;
  std::unordered_multimap<std::uint64_t, std::size_t> known;  // hash of a key to the pass
  std::vector<std::size_t> launch_of;                         // the first of each pass
  bool again = true;
  work.steps.reserve(dispatch.passes.size());
  for (std::size_t i = 0; i < dispatch.passes.size(); ++i) {
    const PassLaunch& launch = dispatch.passes[i];
    if (launch.grid != PassLaunch::nothing) {
      if (Status status = check_grid(info, i, launch); !status.ok()) return status;
    }
    std::optional<std::size_t> pass;
    const std::uint64_t hash = keys.hash(i);
    for (auto [at, end] = known.equal_range(hash); at != end && !pass; ++at) {
      if (keys.equal(launch_of[at->second], i)) pass = at->second;
    }
    if (!pass) {
      auto bound = bind_pass(i, launch, info, gpu);
      if (!bound) return bound.error();
      again = again && bound->values.empty() && !bound->nothing;
      pass = work.passes.size();
      work.passes.push_back(std::move(*bound));
      launch_of.push_back(i);
      known.emplace(hash, *pass);
    }
    const auto is_converted = [](const BoundTexture& texture) { return texture.values.has_value(); };
    if (std::ranges::any_of(work.passes[*pass].textures, is_converted)) {
      if (Status status = check_converted(dispatch, i, info); !status.ok()) return status;
    }
    work.steps.push_back({*pass, launch.grid, launch.waits});
  }
  if (again) work.key.assign(keys.words().begin(), keys.words().end());
  return work;
}

}  // namespace kiln::vulkan
