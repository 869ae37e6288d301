// kiln_witness_vulkan_images: images on the Vulkan driver that VK_ICD_FILENAMES names, by its compute queue: filled by
// copies, then read in every level and layer; and one of which only a part has memory. Each case leaves what it read.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "witnesses/runners/renderer.hpp"
#include "witnesses/runners/vulkan/vulkan_buffer.hpp"

namespace kiln::witness {
namespace {

struct Format {
  const char* name;
  VkFormat format;
  std::uint32_t bytes, block;  // of an element, and its texels along an edge
  VkImageAspectFlags aspect = VK_IMAGE_ASPECT_COLOR_BIT;
};

constexpr Format formats[] = {
    {"rgba8", VK_FORMAT_R8G8B8A8_UNORM, 4, 1},
    {"bgra8_srgb", VK_FORMAT_B8G8R8A8_SRGB, 4, 1},
    {"rgb10_a2", VK_FORMAT_A2B10G10R10_UNORM_PACK32, 4, 1},
    {"r5g6b5", VK_FORMAT_R5G6B5_UNORM_PACK16, 2, 1},
    {"rg16_snorm", VK_FORMAT_R16G16_SNORM, 4, 1},
    {"bc1", VK_FORMAT_BC1_RGBA_UNORM_BLOCK, 8, 4},
    {"bc3_srgb", VK_FORMAT_BC3_SRGB_BLOCK, 16, 4},
    {"bc5_snorm", VK_FORMAT_BC5_SNORM_BLOCK, 16, 4},
    {"bc6", VK_FORMAT_BC6H_UFLOAT_BLOCK, 16, 4},
    {"bc6_signed", VK_FORMAT_BC6H_SFLOAT_BLOCK, 16, 4},
    {"bc7", VK_FORMAT_BC7_UNORM_BLOCK, 16, 4},
    {"bc7_srgb", VK_FORMAT_BC7_SRGB_BLOCK, 16, 4},
    {"depth16", VK_FORMAT_D16_UNORM, 2, 1, VK_IMAGE_ASPECT_DEPTH_BIT},
};

struct Shape {
  std::uint32_t width, height, layers, levels;
};
constexpr Shape shapes[] = {{70, 45, 1, 7}, {33, 21, 5, 3}};
constexpr Shape sparse_shape{256, 256, 1, 1};

VkExtent3D extent_of(const Shape& shape, std::uint32_t level) {
  return {std::max(1U, shape.width >> level), std::max(1U, shape.height >> level), 1};
}

class Image {
 public:
  Image(const VulkanDevice& device, const Shape& shape, VkFormat format, VkImageAspectFlags aspect,
        VkImageUsageFlags usage, VkImageCreateFlags flags)
      : device_(device), aspect_(aspect) {
    VkImageCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    info.flags = flags;
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = format;
    info.extent = extent_of(shape, 0);
    info.mipLevels = shape.levels;
    info.arrayLayers = shape.layers;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.tiling = VK_IMAGE_TILING_OPTIMAL;
    info.usage = usage;
    check(vkCreateImage(device.handle(), &info, nullptr, &image_), "vkCreateImage");
    VkMemoryRequirements needs{};
    vkGetImageMemoryRequirements(device.handle(), image_, &needs);
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = device.memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    check(vkAllocateMemory(device.handle(), &allocate, nullptr, &memory_), "vkAllocateMemory");
    if ((flags & VK_IMAGE_CREATE_SPARSE_BINDING_BIT) == 0) {
      check(vkBindImageMemory(device.handle(), image_, memory_, 0), "vkBindImageMemory");
    }
    range_ = {aspect, 0, shape.levels, 0, shape.layers};
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() {
    vkDestroyImageView(device_.handle(), view_, nullptr);
    vkDestroyImage(device_.handle(), image_, nullptr);
    vkFreeMemory(device_.handle(), memory_, nullptr);
  }

  VkImage handle() const { return image_; }
  VkDeviceMemory memory() const { return memory_; }
  VkImageView view(VkImageViewType type, VkFormat format) {
    if (view_ != VK_NULL_HANDLE) return view_;
    VkImageViewCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    info.image = image_;
    info.viewType = type;
    info.format = format;
    info.subresourceRange = range_;
    check(vkCreateImageView(device_.handle(), &info, nullptr, &view_), "vkCreateImageView");
    return view_;
  }
  void change_layout(VkCommandBuffer commands, VkImageLayout from, VkImageLayout to) const {
    VkImageMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.oldLayout = from;
    barrier.newLayout = to;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image_;
    barrier.subresourceRange = range_;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0,
                         nullptr, 0, nullptr, 1, &barrier);
  }
  VkImageAspectFlags aspect() const { return aspect_; }

 private:
  const VulkanDevice& device_;
  VkImageAspectFlags aspect_;
  VkImageSubresourceRange range_{};
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
};

// What one case binds: the buffer of its answers at 0, images from 1 on.
struct Binding {
  VkDescriptorType type;
  std::vector<VkDescriptorImageInfo> images;
};

class Images {
 public:
  explicit Images(std::filesystem::path spirv) : device_(QueueChoice::compute_only), spirv_(std::move(spirv)) {
    VkSamplerCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO;
    info.maxLod = VK_LOD_CLAMP_NONE;
    check(vkCreateSampler(device_.handle(), &info, nullptr, &sampler_), "vkCreateSampler");
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = device_.queue_family();
    check(vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_), "vkCreateCommandPool");
  }
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;
  ~Images() {
    vkDestroyCommandPool(device_.handle(), pool_, nullptr);
    vkDestroySampler(device_.handle(), sampler_, nullptr);
  }

  std::string name() const { return device_.name(); }
  bool has_sparse_images() const { return device_.abilities().contains("sparse_image2D"); }

  Bytes fetch(const Format& format) {
    std::vector<std::unique_ptr<Image>> images;
    std::vector<std::unique_ptr<VulkanBuffer>> uploads;
    std::mt19937 random(static_cast<std::uint32_t>(format.format));
    const VkCommandBuffer commands = begin();
    Binding binding{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, {}};
    std::uint32_t texels = 0;
    for (const Shape& shape : shapes) {
      images.push_back(std::make_unique<Image>(device_, shape, format.format, format.aspect,
                                               VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT, 0));
      std::vector<VkBufferImageCopy> copies;
      VkDeviceSize bytes = 0;
      for (std::uint32_t level = 0; level < shape.levels; ++level) {
        const VkExtent3D extent = extent_of(shape, level);
        copies.push_back({bytes, 0, 0, {format.aspect, level, 0, shape.layers}, {0, 0, 0}, extent});
        const auto elements = [&](std::uint32_t size) { return (size + format.block - 1) / format.block; };
        bytes += VkDeviceSize{elements(extent.width)} * elements(extent.height) * shape.layers * format.bytes;
        bytes = (bytes + 15) / 16 * 16;
        texels += extent.width * extent.height * shape.layers;
      }
      uploads.push_back(std::make_unique<VulkanBuffer>(device_, bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, host_memory));
      Bytes contents(bytes);
      for (std::byte& each : contents) each = static_cast<std::byte>(random());
      uploads.back()->write(contents);
      const Image& image = *images.back();
      image.change_layout(commands, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
      vkCmdCopyBufferToImage(commands, uploads.back()->handle(), image.handle(), VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                             static_cast<std::uint32_t>(copies.size()), copies.data());
      image.change_layout(commands, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
      binding.images.push_back({sampler_, images.back()->view(VK_IMAGE_VIEW_TYPE_2D_ARRAY, format.format),
                                VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL});
    }
    return run(commands, "fetch", {binding}, VkDeviceSize{texels} * 16, 3);
  }

  // Memory for the image's first tile.
  Bytes sparse() {
    Image image(device_, sparse_shape, VK_FORMAT_R32_UINT, VK_IMAGE_ASPECT_COLOR_BIT,
                VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT,
                VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT);
    constexpr VkExtent3D tile{128, 128, 1};  // of 64 KiB, by the standard
    const VkSparseImageMemoryBind bind{{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0}, {0, 0, 0}, tile, image.memory(), 0, 0};
    const VkSparseImageMemoryBindInfo binds{image.handle(), 1, &bind};
    VkBindSparseInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO;
    info.imageBindCount = 1;
    info.pImageBinds = &binds;
    check(vkQueueBindSparse(device_.queue(), 1, &info, VK_NULL_HANDLE), "vkQueueBindSparse");
    check(vkQueueWaitIdle(device_.queue()), "vkQueueWaitIdle");
    const VkCommandBuffer commands = begin();
    image.change_layout(commands, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
    const VkDescriptorImageInfo place{sampler_, image.view(VK_IMAGE_VIEW_TYPE_2D, VK_FORMAT_R32_UINT),
                                      VK_IMAGE_LAYOUT_GENERAL};
    const Bytes got =
        run(commands, "sparse",
            {{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, {place}}, {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, {place}}},
            64 * 16 * 16, 1);
    std::vector<std::uint32_t> words(got.size() / 4);
    std::memcpy(words.data(), got.data(), got.size());
    for (std::uint32_t at = 0; at < 64 * 16; ++at) {
      const std::uint32_t column = at % 64, row = at / 64;
      const bool resident = column * 4 < tile.width && row * 16 < tile.height;
      const std::uint32_t value = resident ? 1 + column * 16 + row : 0, bit = resident ? 1 : 0;
      if (words[4 * at + 1] != value || words[4 * at + 2] != bit || words[4 * at + 3] != bit) {
        throw std::runtime_error("texel " + std::to_string(column * 4) + ", " + std::to_string(row * 16) + " is " +
                                 std::to_string(words[4 * at + 1]) + ", residency " +
                                 std::to_string(words[4 * at + 2]));
      }
    }
    return got;
  }

 private:
  static constexpr VkMemoryPropertyFlags host_memory =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

  VkCommandBuffer begin() {
    check(vkResetCommandPool(device_.handle(), pool_, 0), "vkResetCommandPool");
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check(vkAllocateCommandBuffers(device_.handle(), &allocate, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check(vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
    return commands;
  }

  // Dispatches `groups` workgroups of a shader and gives what they wrote to the buffer.
  Bytes run(VkCommandBuffer commands, const std::string& shader, const std::vector<Binding>& bindings,
            VkDeviceSize bytes, std::uint32_t groups) {
    const VkDevice device = device_.handle();
    VulkanBuffer answers(device_, bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, host_memory);
    std::vector<VkDescriptorSetLayoutBinding> places{
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
    std::vector<VkDescriptorPoolSize> sizes{{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1}};
    for (const Binding& each : bindings) {
      const auto count = static_cast<std::uint32_t>(each.images.size());
      places.push_back(
          {static_cast<std::uint32_t>(places.size()), each.type, count, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
      sizes.push_back({each.type, count});
    }
    VkDescriptorSetLayoutCreateInfo set_info{};
    set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set_info.bindingCount = static_cast<std::uint32_t>(places.size());
    set_info.pBindings = places.data();
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    check(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout), "vkCreateDescriptorSetLayout");
    VkPipelineLayoutCreateInfo layout_info{};
    layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &set_layout;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    check(vkCreatePipelineLayout(device, &layout_info, nullptr, &layout), "vkCreatePipelineLayout");
    VkDescriptorPoolCreateInfo pool_info{};
    pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool_info.maxSets = 1;
    pool_info.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
    pool_info.pPoolSizes = sizes.data();
    VkDescriptorPool pool = VK_NULL_HANDLE;
    check(vkCreateDescriptorPool(device, &pool_info, nullptr, &pool), "vkCreateDescriptorPool");
    VkDescriptorSetAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    allocate.descriptorPool = pool;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    check(vkAllocateDescriptorSets(device, &allocate, &set), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo buffer{answers.handle(), 0, VK_WHOLE_SIZE};
    for (std::uint32_t at = 0; at < places.size(); ++at) {
      VkWriteDescriptorSet write{};
      write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      write.dstSet = set;
      write.dstBinding = at;
      write.descriptorCount = places[at].descriptorCount;
      write.descriptorType = places[at].descriptorType;
      write.pBufferInfo = &buffer;
      write.pImageInfo = at == 0 ? nullptr : bindings[at - 1].images.data();
      vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
    }
    const VkPipeline pipeline = pipeline_of(shader, layout);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
    vkCmdDispatch(commands, groups, 1, 1);
    VkMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    check(vkQueueSubmit(device_.queue(), 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vkQueueWaitIdle(device_.queue()), "vkQueueWaitIdle");
    vkDestroyPipeline(device, pipeline, nullptr);
    vkDestroyDescriptorPool(device, pool, nullptr);
    vkDestroyPipelineLayout(device, layout, nullptr);
    vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
    return answers.read();
  }

  VkPipeline pipeline_of(const std::string& shader, VkPipelineLayout layout) const {
    const std::filesystem::path path = spirv_ / (shader + ".spv");
    std::ifstream file(path, std::ios::binary);
    const std::string code((std::istreambuf_iterator<char>(file)), {});
    if (code.empty()) throw std::runtime_error(path.string() + ": cannot be read");
    std::vector<std::uint32_t> words(code.size() / 4);
    std::memcpy(words.data(), code.data(), words.size() * 4);
    VkShaderModuleCreateInfo module_info{};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = words.size() * 4;
    module_info.pCode = words.data();
    VkShaderModule module = VK_NULL_HANDLE;
    check(vkCreateShaderModule(device_.handle(), &module_info, nullptr, &module), "vkCreateShaderModule");
    VkComputePipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = layout;
    VkPipeline pipeline = VK_NULL_HANDLE;
    const VkResult made = vkCreateComputePipelines(device_.handle(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
    vkDestroyShaderModule(device_.handle(), module, nullptr);
    check(made, "vkCreateComputePipelines");
    return pipeline;
  }

  VulkanDevice device_;
  std::filesystem::path spirv_;
  VkSampler sampler_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
};

int run_images(const std::vector<std::string>& arguments) {
  std::filesystem::path out, spirv;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--out" && has_value) {
      out = arguments[++i];
    } else if (arguments[i] == "--spirv" && has_value) {
      spirv = arguments[++i];
    } else if ((arguments[i] == "--shaders" || arguments[i] == "--queue") && has_value) {
      ++i;
    } else {
      names.push_back(arguments[i]);
    }
  }
  Images images(spirv);
  std::ofstream(out / "renderer.txt") << images.name();
  std::ofstream status(out / "status.txt", std::ios::app);
  for (const std::string& name : names) {
    status << name << "\tbegun\t\n" << std::flush;
    try {
      if (name == "sparse" && !images.has_sparse_images()) {
        status << name << "\tabsent\tsparse images\n" << std::flush;
        continue;
      }
      Bytes got;
      if (name == "sparse") got = images.sparse();
      for (const Format& format : formats) {
        if (name == format.name) got = images.fetch(format);
      }
      std::ofstream file(out / (name + ".texels.bin"), std::ios::binary);
      file.write(reinterpret_cast<const char*>(got.data()), static_cast<std::streamsize>(got.size()));
      status << name << "\tok\t\n" << std::flush;
    } catch (const std::runtime_error& error) {
      status << name << "\tfailed\t" << error.what() << "\n" << std::flush;
    }
  }
  return 0;
}

}  // namespace
}  // namespace kiln::witness

int main(int argument_count, char** arguments) {
  try {
    return kiln::witness::run_images({arguments, arguments + argument_count});
  } catch (const kiln::witness::NoRenderer& error) {
    std::cerr << error.what() << '\n';
    return 3;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
