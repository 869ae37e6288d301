// What one would write for Vulkan without Kiln: pipelines from SPIR-V, with whatever cache the driver has, or with the
// data of a VkPipelineCache for each in files of its own.
//
//   start_vulkan FOLDER COUNT [CACHES]       runs FOLDER/k0.spv, k1.spv, … on FOLDER/x.npy; CACHES: where it keeps the
//   data of pipeline caches. Prints the milliseconds until all pipelines were made, files included.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kiln/clock.hpp"
#include "witnesses/runners/vulkan/vulkan_buffer.hpp"

namespace {

using kiln::witness::Bytes;
using kiln::witness::check;
using kiln::witness::VulkanBuffer;
using kiln::witness::VulkanDevice;

constexpr VkDeviceSize bytes = 4096 * sizeof(float);  // of the input, and of each output

template <class Structure>
Structure structure(VkStructureType type) {
  Structure made{};
  made.sType = type;
  return made;
}

// Empty: there is no such file.
std::vector<char> contents(const std::string& path) {
  std::vector<char> all;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return all;
  const off_t size = lseek(file, 0, SEEK_END);
  all.resize(static_cast<std::size_t>(size));
  if (pread(file, all.data(), all.size(), 0) != size) all.clear();
  close(file);
  return all;
}

class Kernels {
 public:
  Kernels(std::string folder, std::string caches) : folder_(std::move(folder)), caches_(std::move(caches)) {
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
    auto set = structure<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
    set.bindingCount = 2;
    set.pBindings = bindings;
    check(vkCreateDescriptorSetLayout(device_.handle(), &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
    auto layout = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &set_layout_;
    check(vkCreatePipelineLayout(device_.handle(), &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  }

  // From SPIR-V, and the data of a cache where it is kept. A kept one must have the code, where the driver stores code.
  VkPipeline pipeline(const std::string& number) const {
    const std::vector<char> code = contents(folder_ + "/k" + number + ".spv");
    const std::string file = caches_.empty() ? "" : caches_ + "/" + number;
    const std::vector<char> kept = file.empty() ? code : contents(file);
    auto data = structure<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
    data.initialDataSize = file.empty() ? 0 : kept.size();
    data.pInitialData = kept.data();
    VkPipelineCache cache = VK_NULL_HANDLE;
    check(vkCreatePipelineCache(device_.handle(), &data, nullptr, &cache), "vkCreatePipelineCache");
    auto text = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    text.codeSize = code.size();
    text.pCode = reinterpret_cast<const std::uint32_t*>(code.data());
    VkShaderModule module = VK_NULL_HANDLE;
    check(vkCreateShaderModule(device_.handle(), &text, nullptr, &module), "vkCreateShaderModule");
    auto info = structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    info.stage = structure<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = layout_;
    VkPipeline made = VK_NULL_HANDLE;
    check(vkCreateComputePipelines(device_.handle(), cache, 1, &info, nullptr, &made), "vkCreateComputePipelines");
    vkDestroyShaderModule(device_.handle(), module, nullptr);
    if (!file.empty() && kept.empty()) keep(cache, file);
    vkDestroyPipelineCache(device_.handle(), cache, nullptr);
    return made;
  }

  // Runs it on x.npy and writes the output beside it.
  void run(VkPipeline pipeline, const std::string& output) {
    if (commands_ == VK_NULL_HANDLE) prepare();
    std::vector<char> file = contents(folder_ + "/x.npy");
    const auto values = file.end() - static_cast<std::ptrdiff_t>(bytes);
    Bytes input(bytes);
    std::memcpy(input.data(), &*values, bytes);
    in_.write(input);
    auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check(vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
    vkCmdDispatch(commands_, 1, 1, 1);
    auto visible = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    visible.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    visible.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &visible, 0,
                         nullptr, 0, nullptr);
    check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    auto submit = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands_;
    check(vkQueueSubmit(device_.queue(), 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vkQueueWaitIdle(device_.queue()), "vkQueueWaitIdle");
    const Bytes result = out_.read();
    std::memcpy(&*values, result.data(), bytes);
    std::ofstream(folder_ + "/" + output, std::ios::binary)
        .write(file.data(), static_cast<std::streamsize>(file.size()));
  }

 private:
  void keep(VkPipelineCache cache, const std::string& path) const {
    std::size_t size = 0;
    check(vkGetPipelineCacheData(device_.handle(), cache, &size, nullptr), "vkGetPipelineCacheData");
    std::vector<char> data(size);
    check(vkGetPipelineCacheData(device_.handle(), cache, &size, data.data()), "vkGetPipelineCacheData");
    std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(size));
  }

  void prepare() {
    out_.write(Bytes(bytes));  // kernels write a part of it, and Kiln's outputs begin as zeros
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    auto pool = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    VkDescriptorPool sets = VK_NULL_HANDLE;
    check(vkCreateDescriptorPool(device_.handle(), &pool, nullptr, &sets), "vkCreateDescriptorPool");
    auto allocate = structure<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
    allocate.descriptorPool = sets;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    check(vkAllocateDescriptorSets(device_.handle(), &allocate, &set_), "vkAllocateDescriptorSets");
    for (std::uint32_t binding = 0; binding < 2; ++binding) {
      const VkDescriptorBufferInfo buffer{(binding == 0 ? in_ : out_).handle(), 0, VK_WHOLE_SIZE};
      auto write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
      write.dstSet = set_;
      write.dstBinding = binding;
      write.descriptorCount = 1;
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = &buffer;
      vkUpdateDescriptorSets(device_.handle(), 1, &write, 0, nullptr);
    }
    auto commands = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    commands.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    commands.queueFamilyIndex = device_.queue_family();
    VkCommandPool all = VK_NULL_HANDLE;
    check(vkCreateCommandPool(device_.handle(), &commands, nullptr, &all), "vkCreateCommandPool");
    auto one = structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    one.commandPool = all;
    one.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    one.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device_.handle(), &one, &commands_), "vkAllocateCommandBuffers");
  }

  static constexpr VkMemoryPropertyFlags host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const std::string folder_, caches_;
  VulkanDevice device_{kiln::witness::QueueChoice::compute_only};
  VulkanBuffer in_{device_, bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, host};
  VulkanBuffer out_{device_, bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, host};
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: start_vulkan FOLDER COUNT [CACHES]");
  Kernels kernels(argv[1], argc > 3 ? argv[3] : "");
  double ready_ms = 0;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    const std::string number = std::to_string(i);
    const std::uint64_t begin = kiln::now_ns();
    const VkPipeline pipeline = kernels.pipeline(number);
    ready_ms += static_cast<double>(kiln::now_ns() - begin) / 1e6;
    kernels.run(pipeline, "plain" + number + ".npy");
  }
  std::printf("%.3f\n", ready_ms);
  std::fflush(nullptr);
  _exit(0);
} catch (const std::exception& error) {
  std::fprintf(stderr, "start_vulkan: %s\n", error.what());
  return 1;
}
