// kiln_witness_vulkan: the cases on the Vulkan driver that VK_ICD_FILENAMES names, from SPIR-V files (--spirv).
//
// Every other case has its buffers in device memory, filled and read by copies, so that a driver's copy path is a
// witness too; the rest work on memory that the host sees.
#include "witnesses/runners/renderer.hpp"
#include "witnesses/runners/vulkan/vulkan_program.hpp"

#include <cstring>
#include <functional>

namespace kiln::witness {
namespace {

using Buffers = std::vector<std::unique_ptr<VulkanBuffer>>;

constexpr VkMemoryPropertyFlags host_memory =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkBufferUsageFlags shader_usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                            VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT;

// One submission, waited for; the wait is bounded so that a device that hangs is an answer.
class Submission {
 public:
  explicit Submission(const VulkanDevice& device) : device_(device) {
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = device.queue_family();
    check(vkCreateCommandPool(device.handle(), &pool, nullptr, &pool_), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device.handle(), &allocate, &commands_), "vkAllocateCommandBuffers");
    VkFenceCreateInfo fence{};
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    check(vkCreateFence(device.handle(), &fence, nullptr, &fence_), "vkCreateFence");
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check(vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;
  ~Submission() {
    vkDestroyFence(device_.handle(), fence_, nullptr);
    vkDestroyCommandPool(device_.handle(), pool_, nullptr);
  }

  VkCommandBuffer commands() const { return commands_; }

  void barrier(VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to, VkAccessFlags reads) const {
    VkMemoryBarrier memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = wrote;
    memory.dstAccessMask = reads;
    vkCmdPipelineBarrier(commands_, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  void run() const {
    check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    check(vkQueueSubmit(device_.queue(), 1, &info, fence_), "vkQueueSubmit");
    constexpr std::uint64_t two_minutes_ns = 120'000'000'000u;
    check(vkWaitForFences(device_.handle(), 1, &fence_, VK_TRUE, two_minutes_ns), "vkWaitForFences");
  }

 private:
  const VulkanDevice& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

Bytes group_words(const ShaderCase& shader) {
  Bytes bytes(12);
  std::memcpy(bytes.data(), shader.groups.data(), bytes.size());
  return bytes;
}

class VulkanRenderer final : public Renderer {
 public:
  explicit VulkanRenderer(const RunnerOptions& options)
      : device_(options.graphics_queue ? QueueChoice::graphics : QueueChoice::compute_only), spirv_(options.spirv) {}

  std::string name() override { return device_.name(); }

  std::string missing(const ShaderCase& shader) override {
    for (const std::string& need : shader.needs) {
      if (!device_.abilities().contains(need)) return need;
    }
    return {};
  }

  std::vector<Bytes> run(const ShaderCase& shader, const std::vector<Bytes>& initial) override {
    const bool staged = std::hash<std::string>{}(shader.name) % 2 == 1;
    const Buffers host = create(initial, host_memory);
    for (std::size_t k = 0; k < host.size(); ++k) host[k]->write(initial[k]);
    const Buffers own = staged ? create(initial, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) : Buffers{};
    const Buffers& used = staged ? own : host;
    VulkanBuffer groups(device_, 12, shader_usage, host_memory);
    groups.write(group_words(shader));
    const VulkanProgram program(device_, shader, spirv_ / (shader.name + ".spv"), used);

    const Submission submission(device_);
    const VkCommandBuffer commands = submission.commands();
    if (staged) upload(submission, shader, host, own);
    program.record(commands, shader, groups.handle(), used);
    if (staged) {
      submission.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                         VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
      for (std::size_t k = 0; k < own.size(); ++k) copy(commands, *own[k], *host[k]);
      submission.barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                         VK_ACCESS_HOST_READ_BIT);
    } else {
      submission.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                         VK_ACCESS_HOST_READ_BIT);
    }
    submission.run();
    std::vector<Bytes> results;
    for (const auto& buffer : host) results.push_back(buffer->read());
    return results;
  }

 private:
  Buffers create(const std::vector<Bytes>& contents, VkMemoryPropertyFlags memory) const {
    Buffers buffers;
    for (const Bytes& each : contents) {
      buffers.push_back(std::make_unique<VulkanBuffer>(device_, each.size(), shader_usage, memory));
    }
    return buffers;
  }

  static void copy(VkCommandBuffer commands, const VulkanBuffer& from, const VulkanBuffer& to) {
    const VkBufferCopy whole{0, 0, from.bytes()};
    vkCmdCopyBuffer(commands, from.handle(), to.handle(), 1, &whole);
  }

  static void upload(const Submission& submission, const ShaderCase& shader, const Buffers& host, const Buffers& own) {
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (shader.buffers[k].pattern == "zero" && own[k]->bytes() % 4 == 0) {
        vkCmdFillBuffer(submission.commands(), own[k]->handle(), 0, VK_WHOLE_SIZE, 0);
      } else {
        copy(submission.commands(), *host[k], *own[k]);
      }
    }
    submission.barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
                       VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT |
                           VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
  }

  VulkanDevice device_;
  std::filesystem::path spirv_;
};

}  // namespace
}  // namespace kiln::witness

int main(int argument_count, char** arguments) {
  return kiln::witness::run_cases(argument_count, arguments, [](const kiln::witness::RunnerOptions& options) {
    return std::make_unique<kiln::witness::VulkanRenderer>(options);
  });
}
