#include "program.hpp"

#include <kiln/digest.hpp>

#include <glslang/SPIRV/spirv.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/glslang_module.hpp"
#include "codec/module_uses.hpp"
#include "codec/specialization.hpp"
#include "texture.hpp"

namespace kiln::vulkan {
namespace {

// VkPipelineCacheHeaderVersionOne: a cache that holds nothing has these bytes only.
constexpr std::size_t cache_header_bytes = 32;

std::string sizes(const std::array<std::uint32_t, 3>& value) {
  return std::to_string(value[0]) + "x" + std::to_string(value[1]) + "x" + std::to_string(value[2]);
}

struct NamedCapability {
  std::uint32_t value;
  const char* name;
};
constexpr NamedCapability capability_names[] = {
    {spv::CapabilityKernel, "Kernel (OpenCL)"},
    {spv::CapabilityFloat16, "Float16"},
    {spv::CapabilityFloat64, "Float64"},
    {spv::CapabilityInt64, "Int64"},
    {spv::CapabilityInt64Atomics, "Int64Atomics"},
    {spv::CapabilityInt16, "Int16"},
    {spv::CapabilityInt8, "Int8"},
    {spv::CapabilityStorageBuffer16BitAccess, "StorageBuffer16BitAccess"},
    {spv::CapabilityUniformAndStorageBuffer16BitAccess, "UniformAndStorageBuffer16BitAccess"},
    {spv::CapabilityStorageBuffer8BitAccess, "StorageBuffer8BitAccess"},
    {spv::CapabilityUniformAndStorageBuffer8BitAccess, "UniformAndStorageBuffer8BitAccess"},
    {spv::CapabilityRuntimeDescriptorArray, "RuntimeDescriptorArray"},
    {spv::CapabilityShaderNonUniform, "ShaderNonUniform"},
    {spv::CapabilityPhysicalStorageBufferAddresses, "PhysicalStorageBufferAddresses (buffer_reference)"},
    {spv::CapabilityCooperativeMatrixNV, "CooperativeMatrixNV"},
    {spv::CapabilityAtomicFloat32AddEXT, "AtomicFloat32AddEXT"},
    {spv::CapabilityRayQueryKHR, "RayQueryKHR"},
    {spv::CapabilityInputAttachment, "InputAttachment"},
    {spv::CapabilitySparseResidency, "SparseResidency"},
    {spv::CapabilitySubgroupBallotKHR, "SubgroupBallotKHR"},
    {spv::CapabilitySubgroupVoteKHR, "SubgroupVoteKHR"},
    {spv::CapabilityVariablePointersStorageBuffer, "VariablePointersStorageBuffer"},
    {spv::CapabilityDotProductInputAll, "DotProductInputAll"},
    {spv::CapabilityDotProductInput4x8Bit, "DotProductInput4x8Bit"},
    {spv::CapabilityDotProductInput4x8BitPacked, "DotProductInput4x8BitPacked"},
    {spv::CapabilityDotProduct, "DotProduct"},
    {spv::CapabilityShaderClockKHR, "ShaderClockKHR"},
    {spv::CapabilityExpectAssumeKHR, "ExpectAssumeKHR"},
};

// glslang's name for those that the table lacks.
std::string capability_name(std::uint32_t capability) {
  const auto* known = std::ranges::find(capability_names, capability, &NamedCapability::value);
  if (known != std::end(capability_names)) return known->name;
  const auto module = glslang_module();
  return module ? (*module)->capability_name(capability) : "number " + std::to_string(capability);
}

std::uint32_t word_at(std::span<const std::byte> bytes) {
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) word |= std::to_integer<std::uint32_t>(bytes[i]) << 8 * i;
  return word;
}

void put_word(std::span<std::byte> bytes, std::uint32_t word) {
  for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(word >> 8 * i & 0xffU);
}

constexpr std::size_t entry_head = sizeof(Digest::bytes) + sizeof(std::uint32_t);

struct Entry {
  ModuleRecord module;
  std::span<const std::byte> cache;  // of the driver
};

Result<Entry> read_entry(std::span<const std::byte> bytes) {
  if (bytes.size() < entry_head) return corrupt("expected at least 36 bytes");
  const Digest digest = sha256(bytes.subspan(sizeof(Digest::bytes)));
  if (std::memcmp(digest.bytes.data(), bytes.data(), digest.bytes.size()) != 0) {
    return corrupt("the SHA-256 checksum does not match");
  }
  const std::span<const std::byte> body = bytes.subspan(entry_head);
  const std::uint32_t size = word_at(bytes.subspan(sizeof(Digest::bytes)));
  if (size > body.size()) {
    return corrupt("module of " + std::to_string(size) + " bytes, expected at most " + std::to_string(body.size()));
  }
  auto module = read_module(body.first(size));
  if (!module) return corrupt("the stored module is damaged");
  return Entry{std::move(*module), body.subspan(size)};
}

// What the driver's header says must be this device's: the driver itself checks no more.
Status check_cache_data(std::span<const std::byte> data, const VkPhysicalDeviceProperties& device) {
  if (data.empty()) return {};
  if (data.size() < cache_header_bytes) {
    return corrupt("pipeline cache of " + std::to_string(data.size()) + " bytes, expected at least 32");
  }
  const std::uint32_t version = word_at(data.subspan(4)), vendor = word_at(data.subspan(8)),
                      id = word_at(data.subspan(12));
  if (version != VK_PIPELINE_CACHE_HEADER_VERSION_ONE) {
    return corrupt("pipeline cache header version " + std::to_string(version) + ", expected 1");
  }
  if (vendor != device.vendorID || id != device.deviceID) {
    return corrupt("pipeline cache of device " + std::to_string(vendor) + ":" + std::to_string(id) + ", expected " +
                   std::to_string(device.vendorID) + ":" + std::to_string(device.deviceID));
  }
  if (std::memcmp(data.data() + 16, device.pipelineCacheUUID, VK_UUID_SIZE) != 0) {
    return corrupt("pipeline cache of another driver: its UUID differs");
  }
  return {};
}

}  // namespace

const ProgramInterface* VulkanProgram::interface(const KernelSource& source) const noexcept {
  std::call_once(completed_, [&] { interface_ = complete(module_.reflection, source); });
  return &interface_;
}

Result<VkSampler> VulkanProgram::sampler(const TextureSource& state, bool integer) const {
  const std::lock_guard lock(samplers_mutex_);
  const std::tuple key(state.filter, state.wrap, integer);
  if (const auto found = samplers_.find(key); found != samplers_.end()) return found->second.get();
  auto made = make_sampler(*gpu_, state.filter, state.wrap, integer);
  if (!made) return made.error();
  return samplers_.emplace(key, std::move(*made)).first->second.get();
}

// Makes a program of a module, step by step.
class ProgramMaker {
 public:
  ProgramMaker(const std::shared_ptr<Gpu>& gpu, const KernelSource& source)
      : gpu_(*gpu), source_(source), program_(new VulkanProgram(gpu)) {}

  // Of a compiler or a user.
  Status read(std::vector<std::uint32_t> words) {
    auto module = SpirvModule::parse(std::move(words), source_.entry);
    if (!module) return module.error();
    ModuleRecord record{{}, module->entry(), needs_of(*module), {}};
    if (Status status = check(record.needs); !status.ok()) return status;
    auto reflection = reflect(*module);
    if (!reflection) return reflection.error();
    record.words = module->with_bindings(std::exchange(reflection->bindings, {}));
    record.reflection = std::move(*reflection);
    return keep(std::move(record));
  }

  // Of an entry.
  Status read(ModuleRecord module) {
    Status status = SpirvModule::check_form(module.words).within("SPIR-V module");
    if (status.ok()) status = check(module.needs);
    return status.ok() ? keep(std::move(module)) : status;
  }

  // cache: of an earlier process; empty: none. `may_compile`: else VK_PIPELINE_COMPILE_REQUIRED is possible.
  VkResult create(std::span<const std::byte> cache, bool may_compile) {
    const DeviceFunctions& vk = gpu_.vk();
    auto cache_info = structure<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
    cache_info.initialDataSize = cache.size();
    cache_info.pInitialData = cache.data();
    program_->cache_ = OwnedPipelineCache(gpu_);
    VkResult result = vk.CreatePipelineCache(gpu_.handle(), &cache_info, nullptr, program_->cache_.out());
    if (result == VK_SUCCESS) result = create_layout();
    OwnedShaderModule module(gpu_);
    auto code = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    code.codeSize = program_->module_.words.size() * sizeof(std::uint32_t);
    code.pCode = program_->module_.words.data();
    if (result == VK_SUCCESS) result = vk.CreateShaderModule(gpu_.handle(), &code, nullptr, module.out());
    if (result != VK_SUCCESS) return result;

    VkPipelineCreationFeedbackEXT feedback{}, stage{};
    auto wanted = structure<VkPipelineCreationFeedbackCreateInfoEXT>(
        VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO_EXT);
    wanted.pPipelineCreationFeedback = &feedback;
    wanted.pipelineStageCreationFeedbackCount = 1;
    wanted.pPipelineStageCreationFeedbacks = &stage;
    auto info = structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    info.pNext = gpu_.creation_feedback() ? &wanted : nullptr;
    info.flags = may_compile ? 0 : VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT_EXT;
    auto size = structure<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
    size.requiredSubgroupSize = gpu_.facts().subgroup;
    info.stage.pNext = size.requiredSubgroupSize != 0 ? &size : nullptr;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module.get();
    info.stage.pName = program_->module_.entry.c_str();
    info.layout = program_->layout_.get();
    program_->pipeline_ = OwnedPipeline(gpu_);
    result =
        vk.CreateComputePipelines(gpu_.handle(), program_->cache_.get(), 1, &info, nullptr, program_->pipeline_.out());
    compiled_ = (feedback.flags & (VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT |
                                   VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT_EXT)) ==
                VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT;
    return result;
  }

  // Whether the driver says that it took no code from the cache. It may say nothing.
  bool compiled() const noexcept { return compiled_; }

  std::unique_ptr<Program> take() {
    std::size_t cached = 0;
    gpu_.vk().GetPipelineCacheData(gpu_.handle(), program_->cache_.get(), &cached, nullptr);
    program_->compiles_at_dispatch_ = cached <= cache_header_bytes;
    // An estimate: the driver's intermediate form and machine code.
    constexpr std::uint64_t for_any = 64 << 10, for_each_byte = 8;
    program_->charge_ = for_any + for_each_byte * (program_->module_.words.size() * sizeof(std::uint32_t) + cached);
    return std::move(program_);
  }

 private:
  Status keep(ModuleRecord module) {
    program_->module_ = std::move(module);
    program_->bindings_ = source_.bindings.size();
    program_->views_ = source_.views;
    return check_slots();
  }

  Status check(const ModuleNeeds& needs) const {
    constexpr std::array<std::uint32_t, 3> declared_by_text{0, 0, 0};
    const VkPhysicalDeviceLimits& limits = gpu_.facts().properties.limits;
    const std::array<std::uint32_t, 3>& size = needs.workgroup;
    if (source_.workgroup != declared_by_text && source_.workgroup != size) {
      return invalid_argument("the text declares a workgroup of " + sizes(size) + ", expected " +
                              sizes(source_.workgroup));
    }
    if (needs.version > gpu_.spirv_version()) {
      return unsupported("SPIR-V " + std::to_string(needs.version >> 16) + "." +
                         std::to_string(needs.version >> 8 & 0xffU) + ", the device takes at most 1." +
                         std::to_string(gpu_.spirv_version() >> 8 & 0xffU));
    }
    const std::uint64_t lanes = std::uint64_t{size[0]} * size[1] * size[2];
    const DeviceInfo& info = gpu_.facts().info;
    if (!std::ranges::equal(size, info.max_workgroup, std::ranges::less_equal()) || lanes > info.max_workgroup_lanes) {
      return invalid_argument("a workgroup of " + sizes(size) + ", the device takes at most " +
                              std::to_string(info.max_workgroup_lanes) + " lanes and at most " +
                              sizes(info.max_workgroup));
    }
    if (needs.shared_bytes > limits.maxComputeSharedMemorySize) {
      return invalid_argument(std::to_string(needs.shared_bytes) + " bytes of shared memory, the device has at most " +
                              std::to_string(limits.maxComputeSharedMemorySize));
    }
    std::string unknown, lacking;
    for (const std::uint32_t capability : needs.capabilities) {
      const auto known = gpu_.capabilities().find(capability);
      if (known != gpu_.capabilities().end() && known->second) continue;
      std::string& list = known == gpu_.capabilities().end() ? unknown : lacking;
      list += (list.empty() ? "" : ", ") + capability_name(capability);
    }
    const std::string program = "the program needs the SPIR-V capability ";
    if (!unknown.empty()) return unsupported(program + unknown + ", which Kiln does not enable");
    const std::string who = ", which " + gpu_.facts().info.name + " does not support";
    if (!lacking.empty()) return unsupported(program + lacking + who);
    const std::uint64_t uses = needs.uses & ~gpu_.uses();
    return uses == 0 ? ok_status() : unsupported("the program needs the Vulkan feature " + names_of(uses) + who);
  }

  Status check_slots() const {
    const VkPhysicalDeviceLimits& limits = gpu_.facts().properties.limits;
    const Reflection& reflection = program_->reflection();
    if (reflection.push_constant_bytes > limits.maxPushConstantsSize) {
      return unsupported(std::to_string(reflection.push_constant_bytes) +
                         " bytes of push constants, the device takes at most " +
                         std::to_string(limits.maxPushConstantsSize));
    }
    const auto count = [&](std::initializer_list<VkDescriptorType> types) {
      std::uint64_t sum = 0;
      for (const DescriptorSlot& slot : reflection.slots) {
        if (std::ranges::find(types, slot.type) != types.end()) sum += slot.count;
      }
      return sum;
    };
    const std::uint64_t blocks = count({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}),
                        uniforms = count({VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER}),
                        textures = count({VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE,
                                          VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER}),
                        samplers = count({VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, VK_DESCRIPTOR_TYPE_SAMPLER}),
                        images = count({VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER});
    const struct {
      const char* what;
      std::uint64_t needed;
      std::uint32_t of_stage, of_set;
    } needs[] = {
        {"storage blocks", blocks, limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers},
        {"uniform blocks", uniforms, limits.maxPerStageDescriptorUniformBuffers, limits.maxDescriptorSetUniformBuffers},
        {"textures", textures, limits.maxPerStageDescriptorSampledImages, limits.maxDescriptorSetSampledImages},
        {"samplers", samplers, limits.maxPerStageDescriptorSamplers, limits.maxDescriptorSetSamplers},
        {"images", images, limits.maxPerStageDescriptorStorageImages, limits.maxDescriptorSetStorageImages},
        {"resources", blocks + uniforms + textures + images, limits.maxPerStageResources, limits.maxPerStageResources},
    };
    for (const auto& need : needs) {
      const std::uint32_t most = std::min(need.of_stage, need.of_set);
      if (need.needed <= most) continue;
      return invalid_argument(std::to_string(need.needed) + " " + need.what + ", the device takes at most " +
                              std::to_string(most));
    }
    for (const ValueBlock& block : reflection.blocks) {
      if (!block.slot || block.bytes <= limits.maxUniformBufferRange) continue;
      return invalid_argument("a uniform block of " + std::to_string(block.bytes) +
                              " bytes, the device takes at most " + std::to_string(limits.maxUniformBufferRange));
    }
    return {};
  }

  VkResult create_layout() {
    const DeviceFunctions& vk = gpu_.vk();
    const Reflection& reflection = program_->reflection();
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (const DescriptorSlot& slot : reflection.slots) {
      bindings.push_back(
          {static_cast<std::uint32_t>(bindings.size()), slot.type, slot.count, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    }
    auto set = structure<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
    set.bindingCount = static_cast<std::uint32_t>(bindings.size());
    set.pBindings = bindings.data();
    program_->set_layout_ = OwnedSetLayout(gpu_);
    VkResult result = vk.CreateDescriptorSetLayout(gpu_.handle(), &set, nullptr, program_->set_layout_.out());
    if (result != VK_SUCCESS) return result;
    program_->set_layout_handle_ = program_->set_layout_.get();
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, reflection.push_constant_bytes};
    auto layout = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    layout.setLayoutCount = 1;
    layout.pSetLayouts = program_->set_layout();
    layout.pushConstantRangeCount = reflection.push_constant_bytes != 0 ? 1 : 0;
    layout.pPushConstantRanges = &range;
    program_->layout_ = OwnedPipelineLayout(gpu_);
    return vk.CreatePipelineLayout(gpu_.handle(), &layout, nullptr, program_->layout_.out());
  }

  Gpu& gpu_;
  const KernelSource& source_;
  std::unique_ptr<VulkanProgram> program_;
  bool compiled_ = false;
};

namespace {

template <class Validate>
Result<std::vector<std::uint32_t>> given_module(const KernelSource& source, const Validate& validate) {
  auto words = validate(std::string_view(source.text));
  if (!words) return words.error();
  return specialized(std::move(*words), source.entry, source.constants, source.workgroup, UnknownConstants::refused);
}

Result<std::vector<std::uint32_t>> translated(decltype(GlslangModule::compile) compile, const KernelSource& source,
                                              const GlslLimits& limits, LineNumbers lines = LineNumbers::none) {
  auto compiled = compile(source, limits, lines);
  if (!compiled) return compiled.error();
  // A constant that no statement uses is not in the module.
  auto made = specialized(std::move(compiled->words), source.entry, compiled->values, source.workgroup,
                          UnknownConstants::ignored);
  if (!made) return made.error().within(source.files.empty() || source.files[0].empty() ? "GLSL" : source.files[0]);
  // glslang writes SPIR-V 1.3, also with conversions that only 1.4 has.
  const auto module = SpirvModule::parse(*made, source.entry);
  return module ? module->without_conversions() : made;
}

}  // namespace

Result<std::unique_ptr<Program>> build_program(const std::shared_ptr<Gpu>& gpu, const KernelSource& source,
                                               WorkCounters& counters) {
  const std::string who = gpu->id() + (source.files.empty() ? "" : ": " + source.files[0]);
  const bool module = source.dialect == Dialect::code_object;
  if (module || source.dialect == Dialect::glsl) counters.builds.fetch_add(1, std::memory_order_relaxed);
  const auto glslang = glslang_module();
  if (!glslang) return glslang.error().within(gpu->id());
  const GlslLimits& limits = gpu->facts().glsl_limits;
  const SpirvRules rules{gpu->facts().properties.apiVersion, gpu->scalar_blocks(),
                         (gpu->uses() & bit_of(ModuleUse::local_size_id)) != 0};
  const auto valid = [&](std::string_view bytes) { return (*glslang)->validated(bytes, rules); };
  auto words = module ? given_module(source, valid) : translated((*glslang)->compile, source, limits);
  if (!words) return words.error().within(module ? who : gpu->id());
  // glslang translates some texts that Vulkan does not allow. Where read() refuses one too, its message says more.
  Status validity;
  if (!module) {
    const auto check = [&](const std::vector<std::uint32_t>& made) {
      const auto checked = valid({reinterpret_cast<const char*>(made.data()), made.size() * sizeof made.front()});
      return checked ? Status() : checked.error();
    };
    validity = check(*words);
    // The same with lines, for the message. Those of an included file would have the first one's name.
    if (!validity.ok() && source.files.size() < 2) {
      const auto with_lines = translated((*glslang)->compile, source, limits, LineNumbers::kept);
      const Status again = with_lines ? check(*with_lines) : Status();
      if (!again.ok()) validity = again;
    }
    if (!validity.ok()) {
      validity = invalid_argument("the GLSL compiler translates the text to invalid SPIR-V (" + validity.message +
                                  "). Write the text in another way");
    }
  }
  ProgramMaker maker(gpu, source);
  if (Status status = maker.read(std::move(*words)); !status.ok()) return status.within(who);
  if (!validity.ok()) return validity.within(who);
  if (Status status = gpu->check(maker.create({}, true), "compiling a pipeline"); !status.ok()) return status;
  return maker.take();
}

Result<std::unique_ptr<Program>> load_program(const std::shared_ptr<Gpu>& gpu, const KernelSource& source,
                                              const ProgramBinary& binary, WorkCounters& counters) {
  if (binary.format != entry_format) {
    return unsupported(gpu->id() + ": program of format '" + binary.format + "', expected '" + entry_format + "'");
  }
  const std::string what = gpu->id() + ": program of " + std::to_string(binary.bytes.size()) + " bytes";
  auto entry = read_entry(binary.bytes);
  if (!entry) return entry.error().within(what);
  if (Status status = check_cache_data(entry->cache, gpu->facts().properties); !status.ok()) return status.within(what);
  ProgramMaker maker(gpu, source);
  if (Status status = maker.read(std::move(entry->module)); !status.ok()) return corrupt(what + ": " + status.message);
  counters.loads.fetch_add(1, std::memory_order_relaxed);
  // A driver that stores code must not compile it again; one that stores a header only (lavapipe) always does.
  const bool has_code = entry->cache.size() > cache_header_bytes;
  const bool may_compile = !has_code || !gpu->cache_control();
  const VkResult made = maker.create(entry->cache, may_compile);
  if (made == VK_PIPELINE_COMPILE_REQUIRED_EXT) {
    return corrupt(what + ": the driver rejected the stored code and would compile the program again");
  }
  if (Status status = gpu->check(made, "loading a pipeline").within(what); !status.ok()) {
    // A lost device and a shortage say nothing of the entry.
    const bool passing = status.code == StatusCode::device_lost || status.code == StatusCode::unavailable;
    return passing ? status : corrupt(status.message);
  }
  if (has_code && may_compile && maker.compiled()) {
    return corrupt(what + ": the driver rejected the stored code and compiled the program again");
  }
  return maker.take();
}

Result<ProgramBinary> serialize_program(const VulkanProgram& program) {
  Gpu& gpu = *program.gpu_;
  const DeviceFunctions& vk = gpu.vk();
  std::size_t size = 0;
  VkResult read = vk.GetPipelineCacheData(gpu.handle(), program.cache_.get(), &size, nullptr);
  std::vector<std::byte> cache(size);
  if (read == VK_SUCCESS) read = vk.GetPipelineCacheData(gpu.handle(), program.cache_.get(), &size, cache.data());
  if (Status status = gpu.check(read, "reading a pipeline cache"); !status.ok()) return status;
  cache.resize(size);
  ProgramBinary binary;
  binary.format = entry_format;
  binary.bytes.resize(entry_head);
  append(program.module_, binary.bytes);
  put_word(std::span(binary.bytes).subspan(sizeof(Digest::bytes)),
           static_cast<std::uint32_t>(binary.bytes.size() - entry_head));
  binary.bytes.insert(binary.bytes.end(), cache.begin(), cache.end());
  const Digest digest = sha256(std::span<const std::byte>(binary.bytes).subspan(sizeof(Digest::bytes)));
  std::memcpy(binary.bytes.data(), digest.bytes.data(), digest.bytes.size());
  return binary;
}

}  // namespace kiln::vulkan
