#include "queue.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <kiln/device_checks.hpp>
#include <kiln/uniform_values.hpp>

namespace kiln::vulkan {
namespace {

// Assigns the buffers of a launch to the descriptors of its program.
class Binder {
 public:
  Binder(const Queue& queue, const VulkanProgram& program, const PassLaunch& launch, Submission& work, BoundPass& pass)
      : queue_(queue),
        reflection_(program.reflection()),
        program_(program),
        launch_(launch),
        descriptors_(work.descriptors),
        pass_(pass) {}

  Status bind() {
    make_blocks();
    pass_.first = descriptors_.size();
    const Status status = launch_.sources.empty() ? bind_by_number() : bind_by_source();
    if (!status.ok()) return status;
    pass_.end = descriptors_.size();
    return check_complete();
  }

 private:
  VulkanBuffer& buffer(std::size_t binding) { return static_cast<VulkanBuffer&>(*launch_.bindings[binding]); }

  void make_blocks() {
    for (const ValueBlock& block : reflection_.blocks) {
      if (!block.slot) pass_.push_constants = pass_.values.size();
      pass_.values.push_back({std::vector<std::byte>(block.bytes)});
    }
  }

  void add(std::uint32_t slot, std::uint32_t element, VulkanBuffer& buffer) {
    BoundDescriptor& bound = descriptors_.emplace_back();
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
          return invalid_argument("the program needs " + std::to_string(number + 1) +
                                  " bindings, the launch provides " + std::to_string(launch_.bindings.size()));
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
                              ", but the program declares another kind of resource");
    }
    add(slot, element, buffer(number));
    if (!texels && !image) return {};
    auto made = buffer(number).texels(type);
    if (!made) return made.error();
    descriptors_.back().view = *made;
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
      BoundDescriptor& bound = descriptors_.emplace_back();
      bound.slot = *block.slot;
      bound.element = block.element;
      bound.values = i;
    }
    return {};
  }

  bool has(std::uint32_t slot, std::uint32_t element) const {
    return std::ranges::any_of(std::span(descriptors_).subspan(pass_.first), [&](const BoundDescriptor& bound) {
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
      // The tensor may be larger than a block may be.
      descriptors_.back().bytes = std::min<VkDeviceSize>(descriptors_.back().bytes, block.bytes);
      return {};
    }
    if (resource.kind == ResourceKind::sampler_state) return bind_sampler(resource, source);
    if (!provided) {
      return invalid_argument(std::string(to_string(resource.kind)) + " " + resource.name + " is not provided");
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

  Status bind_sampler(const ProgramResource& resource, const ResourceSource& source) {
    auto sampler = program_.sampler(source.texture, resource.element != ElementType::f32);
    if (!sampler) return sampler.error().within("sampler " + resource.name);
    const auto place = static_cast<std::uint64_t>(resource.handle);
    BoundDescriptor& bound = descriptors_.emplace_back();
    bound.slot = static_cast<std::uint32_t>(place >> 32);
    bound.element = static_cast<std::uint32_t>(place);
    bound.sampler = *sampler;
    return {};
  }

  Status bind_texture(const ProgramResource& resource, const ResourceSource& source) {
    const TextureSlot& place = reflection_.textures[static_cast<std::size_t>(resource.handle)];
    const VkDescriptorType use = reflection_.slots[place.slot].type;
    TextureSource form = source.texture;
    for (const std::size_t sampler : place.samplers) {
      if (launch_.sources[sampler].texture.filter == TextureFilter::linear) form.filter = TextureFilter::linear;
    }
    VulkanBuffer& from = buffer(source.binding);
    const bool exact = has_its_texels(form), written = form.access != Access::read;
    if (!exact && (written || resource.texture.buffer)) {
      return no_conversion(form);
    }
    add(place.slot, place.element, from);
    BoundDescriptor& bound = descriptors_.back();
    if (resource.texture.buffer) {
      const std::uint64_t texel = std::uint64_t{form.channels} * size_of(form.dtype);
      const std::uint64_t most = program_.gpu().facts().properties.limits.maxTexelBufferElements;
      if (form.size[0] > most) {
        return unsupported(std::to_string(form.size[0]) + " texels, the device takes at most " + std::to_string(most));
      }
      auto view = from.texels(use, vulkan_format(form.format), form.size[0] * texel);
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
    const auto tensor = contents(from, read);
    if (!tensor) return tensor.error();
    auto texels = converted_texels(form, *tensor);
    if (!texels) return texels.error();
    filled.values = pass_.values.size();
    pass_.values.push_back({std::move(*texels)});
    return {};
  }

  Status bind_uniform(const ProgramResource& resource, const ResourceSource& source) {
    const UniformMember& member = reflection_.members[static_cast<std::size_t>(resource.handle)];
    const std::uint64_t bytes = values_in(resource) * sizeof(double);
    const auto whole = contents(buffer(source.binding), uniforms_);
    if (!whole) return whole.error();
    if (whole->size() < source.offset + bytes) {
      return invalid_argument("uniforms." + resource.name + ": the values end at byte " +
                              std::to_string(source.offset + bytes) + ", expected at most " +
                              std::to_string(whole->size()));
    }
    auto components = uniform_components(resource, whole->data() + source.offset, source.given);
    if (!components) return std::move(components).error();
    place_in_block(resource, member.place, *components, pass_.values[member.block].bytes);
    return {};
  }

  // What a tensor holds when the submissions before have ended; `copy` has it where the host cannot read the tensor.
  Result<std::span<const std::byte>> contents(VulkanBuffer& from, std::vector<std::byte>& copy) const {
    if (Status status = queue_.reach(from.written_by()); !status.ok()) return status;
    if (const std::span<const std::byte> there = from.written(); !there.empty()) return there;
    if (copy.empty()) {
      copy.resize(static_cast<std::size_t>(from.bytes()));
      if (Status status = from.read(0, copy); !status.ok()) return status;
    }
    return std::span<const std::byte>(copy);
  }

  Status check_complete() const {
    std::size_t expected = 0;
    for (const DescriptorSlot& slot : reflection_.slots) expected += slot.count;
    const std::size_t found = pass_.end - pass_.first;
    if (found == expected) return {};
    return internal_error(std::to_string(found) + " descriptors, the program has " + std::to_string(expected));
  }

  const Queue& queue_;
  const Reflection& reflection_;
  const VulkanProgram& program_;
  const PassLaunch& launch_;
  std::vector<BoundDescriptor>& descriptors_;
  BoundPass& pass_;
  std::vector<std::byte> uniforms_;  // of the tensor of uniforms, where the host cannot read it
};

// Appends what the launch may write. REQUIRES: it was bound, and not as one of nothing.
void add_written(const PassLaunch& launch, std::vector<VulkanBuffer*>& written) {
  const auto add = [&](std::size_t binding) {
    written.push_back(static_cast<VulkanBuffer*>(launch.bindings[binding]));
  };
  for (std::size_t i = 0; i < launch.bindings.size() && launch.sources.empty(); ++i) add(i);
  const auto& resources = static_cast<const VulkanProgram*>(launch.program)->reflection().resources;
  for (std::size_t i = 0; i < launch.sources.size(); ++i) {
    const ResourceSource& source = launch.sources[i];
    const bool texture = resources[i].kind == ResourceKind::image || resources[i].kind == ResourceKind::sampler;
    const Access access = texture ? source.texture.access : resources[i].access;
    if (source.binding < launch.bindings.size() && access != Access::read) add(source.binding);
  }
}

// Appends to the passes of `work`, or fails.
Status bind_pass(Submission& work, std::size_t index, const PassLaunch& launch, const DeviceInfo& info,
                 const Queue& queue) {
  const auto where = [&] { return info.id + ": pass " + std::to_string(index); };
  if (launch.program == nullptr) return invalid_argument(where() + " has no program");
  const auto& program = static_cast<const VulkanProgram&>(*launch.program);
  if (&program.gpu() != &queue.gpu()) return invalid_argument(where() + ": the program belongs to another device");
  BoundPass& pass = work.passes.emplace_back();
  pass.program = &program;
  pass.nothing = launch.grid == PassLaunch::nothing;
  if (pass.nothing) return {};
  if (launch.sources.empty() && launch.bindings.size() != program.bindings()) {
    return invalid_argument(where() + ": " + std::to_string(launch.bindings.size()) + " buffers, expected " +
                            std::to_string(program.bindings()));
  }
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    const auto who = [&] { return where() + ": binding " + std::to_string(i); };
    if (launch.bindings[i] == nullptr) return invalid_argument(who() + " has no buffer");
    auto& buffer = static_cast<VulkanBuffer&>(*launch.bindings[i]);
    if (&buffer.gpu() != &queue.gpu()) return invalid_argument(who() + ": the buffer belongs to another device");
    if (buffer.shadow() != VK_NULL_HANDLE) work.shadowed.push_back(&buffer);
  }
  if (launch.indirect) {
    pass.grid = static_cast<VulkanBuffer&>(*launch.bindings[launch.indirect->binding]).handle();
    pass.grid_at = launch.indirect->offset;
  }
  if (Status status = Binder(queue, program, launch, work, pass).bind(); !status.ok()) return status.within(where());
  add_written(launch, work.written);
  return {};
}

// The host reads values of uniforms and converts texels when it binds them, before any pass has run: no earlier pass
// may write them.
Status check_host_reads(const Dispatch& dispatch, std::span<const LaunchStep> steps, const DeviceInfo& info) {
  std::set<const Buffer*> written;
  std::size_t passes = 0;  // whose buffers are in `written`
  for (std::size_t index = 0; index < steps.size(); ++index) {
    const bool is_first = steps[index].pass() == passes;
    if (is_first) ++passes;
    if (steps[index].is_nothing()) continue;
    const PassLaunch& launch = dispatch.passes[index];
    const auto& resources = static_cast<const VulkanProgram*>(launch.program)->reflection().resources;
    for (std::size_t i = 0; i < launch.sources.size(); ++i) {
      const ResourceSource& source = launch.sources[i];
      const ProgramResource& resource = resources[i];
      const bool uniform = resource.kind == ResourceKind::uniform;
      const bool texture = resource.kind == ResourceKind::image || resource.kind == ResourceKind::sampler;
      if (!uniform && (!texture || has_its_texels(source.texture))) continue;
      if (source.binding >= launch.bindings.size() || !written.contains(launch.bindings[source.binding])) continue;
      const std::string what = info.id + ": pass " + std::to_string(index) + ": " + (uniform ? "uniform " : "") +
                               resource.type + " " + resource.name + ": an earlier pass writes its tensor";
      if (uniform) return unsupported(what + ", which the host reads before the dispatch. Submit the passes apart");
      const TextureSource& form = source.texture;
      return unsupported(what + " of " + std::string(numpy_name(form.dtype)) + " with " +
                         std::to_string(form.channels) + " channels, which cannot be converted to " +
                         std::string(facts_of(form.format).name) +
                         " within a dispatch. Write a tensor of the format's own type and channels, or use an opengl "
                         "device");
    }
    std::vector<VulkanBuffer*> buffers;
    if (is_first) add_written(launch, buffers);
    written.insert(buffers.begin(), buffers.end());
  }
  return {};
}

// Of the launch that ended a plan.
Status refusal(Submission& work, std::size_t index, const Dispatch& dispatch, const DeviceInfo& info,
               const Queue& queue) {
  const PassLaunch& launch = dispatch.passes[index];
  Status status = launch.grid == PassLaunch::nothing ? ok_status() : check_grid(info, index, launch);
  if (status.ok()) status = bind_pass(work, index, launch, info, queue);
  return status.ok() ? internal_error(info.id + ": pass " + std::to_string(index) + " has no key") : status;
}

}  // namespace

Result<Submission> bind(const Dispatch& dispatch, LaunchPlan plan, const DeviceInfo& info, const Queue& queue) {
  Submission work;
  work.again = true;
  work.passes.reserve(plan.checks.size());
  work.descriptors.reserve(plan.checks.size());
  bool host_reads = false;
  for (const std::size_t i : plan.checks) {
    const LaunchStep& step = plan.key.steps[i];
    if (!step.is_nothing()) {
      if (Status status = check_grid(info, i, dispatch.passes[i]); !status.ok()) return status;
    }
    if (step.pass() < work.passes.size()) continue;
    if (Status status = bind_pass(work, i, dispatch.passes[i], info, queue); !status.ok()) return status;
    const BoundPass& pass = work.passes.back();
    work.again = work.again && pass.values.empty() && !pass.nothing;
    host_reads = host_reads || !pass.values.empty();
  }
  if (!plan.complete) return refusal(work, plan.key.steps.size(), dispatch, info, queue);
  if (host_reads) {
    if (Status status = check_host_reads(dispatch, plan.key.steps, info); !status.ok()) return status;
  }
  work.key = std::move(plan.key);
  return work;
}

}  // namespace kiln::vulkan
