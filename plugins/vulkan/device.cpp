#include "device.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <kiln/device_checks.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/uniform_values.hpp>

#include "physical_facts.hpp"

namespace kiln::vulkan {
namespace {

// Whether Mesa's own cache is the folder that Kiln fills with authenticated files.
std::string driver_cache_word(const DriverContext& context, const std::string& id) {
  const char* const folder = std::getenv("MESA_SHADER_CACHE_DIR");
  std::string reason;
  if (folder == nullptr) {
    reason = "MESA_SHADER_CACHE_DIR is not set";
  } else if (driver_setting_of(folder).empty()) {
    reason = "MESA_SHADER_CACHE_DIR " + std::string(folder) + " is no folder that kiln::driver_environment() names";
  } else if (const Status status = check_private_folder(folder); !status.ok()) {
    reason = "MESA_SHADER_CACHE_DIR: " + status.message;
  }
  if (reason.empty()) return "adopted";
  context.log.write(LogLevel::info, "vulkan", id + ": driver cache not adopted: " + reason);
  return "not adopted";
}

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

}  // namespace

VulkanDevice::VulkanDevice(std::shared_ptr<Gpu> gpu, std::unique_ptr<Queue> queue, DeviceInfo info,
                           WorkCounters& counters)
    : gpu_(std::move(gpu)),
      queue_(std::move(queue)),
      info_(std::move(info)),
      counters_(counters),
      transfers_(std::make_shared<Transfers>(gpu_)) {}

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::open(std::shared_ptr<const VulkanApi> api,
                                                         const PhysicalFacts& facts, const DriverContext& context) {
  auto gpu = Gpu::open(std::move(api), facts);
  if (!gpu) return gpu.error();
  auto queue = Queue::create(*gpu);
  if (!queue) return queue.error();
  DeviceInfo info = facts.info;
  add_driver_build(**gpu, info);
  info.driver_cache = info.driver.starts_with("Mesa") ? driver_cache_word(context, info.id) : "none";
  return std::unique_ptr<VulkanDevice>(
      new VulkanDevice(std::move(*gpu), std::move(*queue), std::move(info), *context.counters));
}

Result<std::unique_ptr<Buffer>> VulkanDevice::create_buffer(const BufferDesc& desc) noexcept try {
  if (Status status = check_buffer(info_, desc); !status.ok()) return status;
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  return VulkanBuffer::create(gpu_, transfers_, desc);
} catch (...) {
  return caught();
}

Status VulkanDevice::check_source(const KernelSource& source) const {
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  for (std::size_t i = 0; i < source.views.size(); ++i) {
    const View view = source.views[i];
    if (view != View::texels && view != View::image) continue;
    const std::uint32_t most = view == View::image ? info_.max_image_bindings : info_.max_texel_bindings;
    if (i >= most) {
      return invalid_argument(info_.id + ": binding " + std::to_string(i) + " is viewed as " +
                              std::string(to_string(view)) + ", the most such bindings are " + std::to_string(most));
    }
  }
  return {};
}

Result<std::unique_ptr<Program>> VulkanDevice::build(const KernelSource& source) noexcept try {
  if (Status status = check_source(source); !status.ok()) return status;
  return build_program(gpu_, source, counters_);
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> VulkanDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept
    try {
  if (Status status = check_source(source); !status.ok()) return status;
  return load_program(gpu_, source, binary, counters_);
} catch (...) {
  return caught();
}

Result<ProgramBinary> VulkanDevice::serialize(const Program& program) noexcept try {
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  const auto& ours = static_cast<const VulkanProgram&>(program);
  if (&ours.gpu() != gpu_.get()) return invalid_argument(info_.id + ": the program belongs to another device");
  return serialize_program(ours);
} catch (...) {
  return caught();
}

Result<BoundPass> VulkanDevice::bind(std::size_t index, const PassLaunch& launch) const {
  const std::string where = info_.id + ": pass " + std::to_string(index);
  if (launch.program == nullptr) return invalid_argument(where + " has no program");
  const auto& program = static_cast<const VulkanProgram&>(*launch.program);
  if (&program.gpu() != gpu_.get()) return invalid_argument(where + ": its program belongs to another device");
  BoundPass pass;
  pass.program = &program;
  pass.grid = launch.grid;
  if (launch.grid == PassLaunch::nothing) return pass;
  if (launch.sources.empty() && launch.bindings.size() != program.bindings()) {
    return invalid_argument(where + ": " + std::to_string(launch.bindings.size()) + " buffers, expected " +
                            std::to_string(program.bindings()));
  }
  if (Status status = check_grid(info_, index, launch); !status.ok()) return status;
  for (Buffer* each : launch.bindings) {
    const std::string who = where + ": binding " + std::to_string(pass.buffers.size());
    if (each == nullptr) return invalid_argument(who + " is empty");
    auto& buffer = static_cast<VulkanBuffer&>(*each);
    if (&buffer.gpu() != gpu_.get()) return invalid_argument(who + ": the buffer belongs to another device");
    pass.buffers.push_back(&buffer);
  }
  if (Status status = Binder(program, launch, pass).bind(); !status.ok()) return status.within(where);
  return pass;
}

Result<std::uint64_t> VulkanDevice::submit(const Dispatch& dispatch) noexcept try {
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  if (dispatch.passes.empty()) return invalid_argument(info_.id + ": a dispatch without passes");
  std::vector<BoundPass> passes;
  passes.reserve(dispatch.passes.size());
  for (const PassLaunch& launch : dispatch.passes) {
    auto pass = bind(passes.size(), launch);
    if (!pass) return pass.error();
    passes.push_back(std::move(*pass));
  }
  return queue_->submit(passes);
} catch (...) {
  return caught();
}

Result<FenceResult> VulkanDevice::wait(std::uint64_t value, Deadline deadline) noexcept try {
  auto result = queue_->wait(value, deadline);
  if (!result && result.error().code != StatusCode::device_lost) return Status(result.error()).within(info_.id);
  return result;
} catch (...) {
  return caught();
}

}  // namespace kiln::vulkan
