// VulkanProgram: the compute pipeline of a case, its set of descriptors, and its dispatches as commands.
// Thread-safety: one thread. Ownership: what it makes is its own; the device and the buffers outlive it.
#pragma once

#include "witnesses/catalog/shader_case.hpp"
#include "witnesses/runners/vulkan/vulkan_buffer.hpp"

#include <memory>

namespace kiln::witness {

class VulkanProgram {
 public:
  // Throws std::runtime_error where the SPIR-V file cannot be read or the driver refuses.
  VulkanProgram(const VulkanDevice& device, const ShaderCase& shader, const std::filesystem::path& spirv,
                const std::vector<std::unique_ptr<VulkanBuffer>>& buffers);
  VulkanProgram(const VulkanProgram&) = delete;
  VulkanProgram& operator=(const VulkanProgram&) = delete;
  ~VulkanProgram();

  // All passes, each after the writes of the one before. `groups`: three words, for a case that is indirect from the
  // host.
  void record(VkCommandBuffer commands, const ShaderCase& shader, VkBuffer groups,
              const std::vector<std::unique_ptr<VulkanBuffer>>& buffers) const;

 private:
  void create_layout(const ShaderCase& shader);
  void create_pipeline(const std::filesystem::path& spirv);
  void create_set(const ShaderCase& shader, const std::vector<std::unique_ptr<VulkanBuffer>>& buffers);
  void destroy();

  VkDevice device_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
};

}  // namespace kiln::witness
