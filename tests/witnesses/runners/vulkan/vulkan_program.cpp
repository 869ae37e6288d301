#include "witnesses/runners/vulkan/vulkan_program.hpp"

#include "witnesses/catalog/source_text.hpp"

#include <fstream>
#include <stdexcept>

namespace kiln::witness {
namespace {

VkDescriptorType descriptor_type(const BufferSpec& buffer) {
  return buffer.use == Use::uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

std::vector<std::uint32_t> read_words(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  std::vector<std::uint32_t> words(static_cast<std::size_t>(file.tellg()) / 4);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  return words;
}

}  // namespace

VulkanProgram::VulkanProgram(const VulkanDevice& device, const ShaderCase& shader, const std::filesystem::path& spirv,
                             const std::vector<std::unique_ptr<VulkanBuffer>>& buffers)
    : device_(device.handle()) {
  try {
    create_layout(shader);
    create_pipeline(spirv);
    create_set(shader, buffers);
  } catch (...) {
    destroy();
    throw;
  }
}

VulkanProgram::~VulkanProgram() { destroy(); }

void VulkanProgram::destroy() {
  vkDestroyDescriptorPool(device_, pool_, nullptr);
  vkDestroyPipeline(device_, pipeline_, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
  vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
}

void VulkanProgram::create_layout(const ShaderCase& shader) {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (std::uint32_t k = 0; k < shader.buffers.size(); ++k) {
    bindings.push_back({k, descriptor_type(shader.buffers[k]), 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  check(vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
  const auto words = static_cast<std::uint32_t>(push_constants(shader, 0).size());
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 * words};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = words == 0 ? 0 : 1;
  layout.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
}

void VulkanProgram::create_pipeline(const std::filesystem::path& spirv) {
  const std::vector<std::uint32_t> code = read_words(spirv);
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = code.size() * 4;
  module_info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device_, &module_info, nullptr, &module), "vkCreateShaderModule");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = layout_;
  const VkResult made = vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
  vkDestroyShaderModule(device_, module, nullptr);
  check(made, "vkCreateComputePipelines");
}

void VulkanProgram::create_set(const ShaderCase& shader, const std::vector<std::unique_ptr<VulkanBuffer>>& buffers) {
  const auto count = static_cast<std::uint32_t>(buffers.size());
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, count}};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = 1;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  check(vkCreateDescriptorPool(device_, &pool, nullptr, &pool_), "vkCreateDescriptorPool");
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = pool_;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &set_layout_;
  check(vkAllocateDescriptorSets(device_, &allocate, &set_), "vkAllocateDescriptorSets");
  for (std::uint32_t k = 0; k < count; ++k) {
    const VkDescriptorBufferInfo place{buffers[k]->handle(), 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet write{};
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set_;
    write.dstBinding = k;
    write.descriptorCount = 1;
    write.descriptorType = descriptor_type(shader.buffers[k]);
    write.pBufferInfo = &place;
    vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  }
}

void VulkanProgram::record(VkCommandBuffer commands, const ShaderCase& shader, VkBuffer groups,
                           const std::vector<std::unique_ptr<VulkanBuffer>>& buffers) const {
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
  for (std::uint32_t pass = 0; pass < shader.passes; ++pass) {
    if (pass > 0) {
      VkMemoryBarrier barrier{};
      barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
      barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
      barrier.dstAccessMask =
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
      vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, 0, 1, &barrier,
                           0, nullptr, 0, nullptr);
    }
    const std::vector<std::uint32_t> words = push_constants(shader, pass);
    if (!words.empty()) {
      vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                         static_cast<std::uint32_t>(4 * words.size()), words.data());
    }
    if (shader.indirect(pass)) {
      vkCmdDispatchIndirect(commands, shader.indirect_host ? groups : buffers[*shader.indirect_buffer]->handle(), 0);
    } else {
      vkCmdDispatch(commands, shader.groups[0], shader.groups[1], shader.groups[2]);
    }
  }
}

}  // namespace kiln::witness
