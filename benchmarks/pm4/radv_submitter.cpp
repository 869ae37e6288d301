#include "pm4/submitter.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "kiln/clock.hpp"
#include "witnesses/runners/renderer.hpp"
#include "witnesses/runners/vulkan/vulkan_buffer.hpp"

namespace kiln::bench {
namespace {

using witness::VulkanBuffer;
using witness::VulkanDevice;

constexpr std::uint32_t add_code[] = {
#include "pm4_add.spv.inc"
};

class RawSubmitter final : public Submitter {
 public:
  explicit RawSubmitter(Commands commands) : device_(witness::QueueChoice::compute_only), kept_(commands) {
    for (std::size_t i = 0; i < most_buffers; ++i) {
      sums_.push_back(
          std::make_unique<VulkanBuffer>(device_, lanes * sizeof(std::uint32_t), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                                         VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT));
      sums_.back()->write(witness::Bytes(lanes * sizeof(std::uint32_t)));
    }
    try {
      create_pipeline();
      create_sets();
      create_commands();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~RawSubmitter() override { destroy(); }

  std::string name() override { return "raw calls: " + device_.name(); }

  std::uint64_t submit(std::size_t dispatches, std::size_t buffers) override {
    const std::uint64_t kernel_before = in_kernel_ns();
    const std::uint64_t begin = now_ns();
    if (kept_ == Commands::anew || recorded_dispatches_ != dispatches || recorded_buffers_ != buffers) {
      record(dispatches, buffers);
    }
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    witness::check(vkQueueSubmit(device_.queue(), 1, &info, fence_), "vkQueueSubmit");
    const std::uint64_t wall = now_ns() - begin;
    const std::uint64_t kernel = in_kernel_ns() - kernel_before;
    const bool radv = device_.name().find("RADV") != std::string::npos;
    if (radv && kernel == 0)
      throw std::runtime_error("RADV submitted on another thread, or another ioctl() came first");
    witness::check(vkWaitForFences(device_.handle(), 1, &fence_, VK_TRUE, ~std::uint64_t{0}), "vkWaitForFences");
    witness::check(vkResetFences(device_.handle(), 1, &fence_), "vkResetFences");
    for (std::size_t i = 0; i < dispatches; ++i) ++expected_[i % buffers];
    return wall - kernel;
  }

  void check() override {
    for (std::size_t i = 0; i < most_buffers; ++i) {
      const std::vector<std::uint32_t> wanted(lanes, expected_[i]);
      const witness::Bytes found = sums_[i]->read();
      if (std::memcmp(found.data(), wanted.data(), found.size()) != 0) throw std::runtime_error("radv: a sum is wrong");
    }
  }

 private:
  void create_pipeline() {
    const VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                                               nullptr};
    VkDescriptorSetLayoutCreateInfo set{};
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = 1;
    set.pBindings = &binding;
    witness::check(vkCreateDescriptorSetLayout(device_.handle(), &set, nullptr, &set_layout_),
                   "vkCreateDescriptorSetLayout");
    VkPipelineLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &set_layout_;
    witness::check(vkCreatePipelineLayout(device_.handle(), &layout, nullptr, &layout_), "vkCreatePipelineLayout");
    VkShaderModuleCreateInfo code{};
    code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    code.codeSize = sizeof add_code;
    code.pCode = add_code;
    VkShaderModule module = VK_NULL_HANDLE;
    witness::check(vkCreateShaderModule(device_.handle(), &code, nullptr, &module), "vkCreateShaderModule");
    VkComputePipelineCreateInfo pipeline{};
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = module;
    pipeline.stage.pName = "main";
    pipeline.layout = layout_;
    const VkResult made = vkCreateComputePipelines(device_.handle(), VK_NULL_HANDLE, 1, &pipeline, nullptr, &pipeline_);
    vkDestroyShaderModule(device_.handle(), module, nullptr);
    witness::check(made, "vkCreateComputePipelines");
  }

  void create_sets() {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, most_buffers};
    VkDescriptorPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool.maxSets = most_buffers;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    witness::check(vkCreateDescriptorPool(device_.handle(), &pool, nullptr, &sets_pool_), "vkCreateDescriptorPool");
    const std::vector<VkDescriptorSetLayout> layouts(most_buffers, set_layout_);
    VkDescriptorSetAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    allocate.descriptorPool = sets_pool_;
    allocate.descriptorSetCount = most_buffers;
    allocate.pSetLayouts = layouts.data();
    witness::check(vkAllocateDescriptorSets(device_.handle(), &allocate, sets_), "vkAllocateDescriptorSets");
    for (std::size_t i = 0; i < most_buffers; ++i) {
      const VkDescriptorBufferInfo place{sums_[i]->handle(), 0, VK_WHOLE_SIZE};
      VkWriteDescriptorSet write{};
      write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      write.dstSet = sets_[i];
      write.descriptorCount = 1;
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = &place;
      vkUpdateDescriptorSets(device_.handle(), 1, &write, 0, nullptr);
    }
  }

  void create_commands() {
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_.queue_family();
    witness::check(vkCreateCommandPool(device_.handle(), &pool, nullptr, &commands_pool_), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = commands_pool_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    witness::check(vkAllocateCommandBuffers(device_.handle(), &allocate, &commands_), "vkAllocateCommandBuffers");
    VkFenceCreateInfo fence{};
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    witness::check(vkCreateFence(device_.handle(), &fence, nullptr, &fence_), "vkCreateFence");
  }

  // What an application would: the pipeline once, a barrier where a dispatch needs an earlier one's sums.
  void record(std::size_t dispatches, std::size_t buffers) {
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = kept_ == Commands::anew ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0;
    recorded_dispatches_ = dispatches;
    recorded_buffers_ = buffers;
    witness::check(vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    for (std::size_t i = 0; i < dispatches; ++i) {
      if (i > 0 && i % buffers == 0) {
        VkMemoryBarrier barrier{};
        barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
        vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                             1, &barrier, 0, nullptr, 0, nullptr);
      }
      vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &sets_[i % buffers], 0,
                              nullptr);
      vkCmdDispatch(commands_, 1, 1, 1);
    }
    witness::check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
  }

  void destroy() {
    (void)vkDeviceWaitIdle(device_.handle());
    vkDestroyFence(device_.handle(), fence_, nullptr);
    vkDestroyCommandPool(device_.handle(), commands_pool_, nullptr);
    vkDestroyDescriptorPool(device_.handle(), sets_pool_, nullptr);
    vkDestroyPipeline(device_.handle(), pipeline_, nullptr);
    vkDestroyPipelineLayout(device_.handle(), layout_, nullptr);
    vkDestroyDescriptorSetLayout(device_.handle(), set_layout_, nullptr);
  }

  VulkanDevice device_;
  Commands kept_;
  std::size_t recorded_dispatches_ = 0, recorded_buffers_ = 0;
  std::vector<std::unique_ptr<VulkanBuffer>> sums_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorPool sets_pool_ = VK_NULL_HANDLE;
  VkDescriptorSet sets_[most_buffers] = {};
  VkCommandPool commands_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::uint32_t expected_[most_buffers] = {};
};

// Where Debian and most others put it; empty: not there.
std::string radv_description() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/vulkan/icd.d", error)) {
    if (entry.path().filename().string().starts_with("radeon_icd")) return entry.path();
  }
  return "";
}

}  // namespace

std::unique_ptr<Submitter> make_radv_submitter(Commands commands, std::string& absent) {
  if (std::getenv("VK_ICD_FILENAMES") == nullptr) {
    const std::string description = radv_description();
    if (description.empty()) {
      absent = "/usr/share/vulkan/icd.d has no radeon_icd*.json";
      return nullptr;
    }
    setenv("VK_ICD_FILENAMES", description.c_str(), 1);
  }
  try {
    auto radv = std::make_unique<RawSubmitter>(commands);
    if (radv->name().find("RADV") != std::string::npos) return radv;
    absent = radv->name() + " is another driver";
  } catch (const std::runtime_error& error) {
    absent = error.what();
  }
  return nullptr;
}

std::unique_ptr<Submitter> make_raw_vulkan_submitter(Commands commands) {
  return std::make_unique<RawSubmitter>(commands);
}

}  // namespace kiln::bench
