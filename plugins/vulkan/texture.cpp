#include "texture.hpp"

#include <kiln/tensor.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>

namespace kiln::vulkan {
namespace {

// In the order of ImageFormat.
constexpr VkFormat formats[] = {VK_FORMAT_UNDEFINED,
                                VK_FORMAT_R32G32B32A32_SFLOAT,
                                VK_FORMAT_R16G16B16A16_SFLOAT,
                                VK_FORMAT_R32G32_SFLOAT,
                                VK_FORMAT_R16G16_SFLOAT,
                                VK_FORMAT_B10G11R11_UFLOAT_PACK32,
                                VK_FORMAT_R32_SFLOAT,
                                VK_FORMAT_R16_SFLOAT,
                                VK_FORMAT_R16G16B16A16_UNORM,
                                VK_FORMAT_A2B10G10R10_UNORM_PACK32,
                                VK_FORMAT_R8G8B8A8_UNORM,
                                VK_FORMAT_R16G16_UNORM,
                                VK_FORMAT_R8G8_UNORM,
                                VK_FORMAT_R16_UNORM,
                                VK_FORMAT_R8_UNORM,
                                VK_FORMAT_R16G16B16A16_SNORM,
                                VK_FORMAT_R8G8B8A8_SNORM,
                                VK_FORMAT_R16G16_SNORM,
                                VK_FORMAT_R8G8_SNORM,
                                VK_FORMAT_R16_SNORM,
                                VK_FORMAT_R8_SNORM,
                                VK_FORMAT_R32G32B32A32_SINT,
                                VK_FORMAT_R16G16B16A16_SINT,
                                VK_FORMAT_R8G8B8A8_SINT,
                                VK_FORMAT_R32G32_SINT,
                                VK_FORMAT_R16G16_SINT,
                                VK_FORMAT_R8G8_SINT,
                                VK_FORMAT_R32_SINT,
                                VK_FORMAT_R16_SINT,
                                VK_FORMAT_R8_SINT,
                                VK_FORMAT_R32G32B32A32_UINT,
                                VK_FORMAT_R16G16B16A16_UINT,
                                VK_FORMAT_A2B10G10R10_UINT_PACK32,
                                VK_FORMAT_R8G8B8A8_UINT,
                                VK_FORMAT_R32G32_UINT,
                                VK_FORMAT_R16G16_UINT,
                                VK_FORMAT_R8G8_UINT,
                                VK_FORMAT_R32_UINT,
                                VK_FORMAT_R16_UINT,
                                VK_FORMAT_R8_UINT};
static_assert(std::size(formats) == image_formats);

template <class T>
T value_at(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One element as a number. Integers of 8 and 16 bits are 0 to 1 or -1 to 1 where `scaled`, as on OpenGL.
std::optional<double> element_of(const std::byte* at, DType dtype, bool scaled) noexcept {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(value_at<float>(at));
    case DType::f16:
      return from_half(value_at<std::uint16_t>(at));
    case DType::u8:
      return value_at<std::uint8_t>(at) / (scaled ? 255.0 : 1.0);
    case DType::u16:
      return value_at<std::uint16_t>(at) / (scaled ? 65535.0 : 1.0);
    case DType::i8:
      return scaled ? std::max(value_at<std::int8_t>(at) / 127.0, -1.0) : value_at<std::int8_t>(at);
    case DType::i16:
      return scaled ? std::max(value_at<std::int16_t>(at) / 32767.0, -1.0) : value_at<std::int16_t>(at);
    case DType::i32:
      return value_at<std::int32_t>(at);
    case DType::u32:
      return value_at<std::uint32_t>(at);
    default:
      return std::nullopt;
  }
}

template <class T>
void store(std::byte* at, double value) noexcept {
  const T stored = static_cast<T>(value);
  std::memcpy(at, &stored, sizeof stored);
}

// The number as a component of the format.
bool put_component(std::byte* at, const ImageFormatFacts& facts, double value) noexcept {
  const bool normalized = facts.kind == TexelKind::normalized;
  switch (facts.dtype) {
    case DType::f32:
      return store<float>(at, value), true;
    case DType::f16:
      return store<std::uint16_t>(at, to_half(value)), true;
    case DType::u8:
      return store<std::uint8_t>(at, normalized ? std::round(value * 255.0) : value), true;
    case DType::u16:
      return store<std::uint16_t>(at, normalized ? std::round(value * 65535.0) : value), true;
    case DType::i8:
      return store<std::int8_t>(at, normalized ? std::round(value * 127.0) : value), true;
    case DType::i16:
      return store<std::int16_t>(at, normalized ? std::round(value * 32767.0) : value), true;
    case DType::i32:
      return store<std::int32_t>(at, value), true;
    case DType::u32:
      return store<std::uint32_t>(at, value), true;
    default:
      return false;
  }
}

std::string size_text(const VkExtent3D& extent, std::uint32_t layers) {
  return std::to_string(extent.width) + " x " + std::to_string(extent.height) + " x " + std::to_string(extent.depth) +
         (layers > 1 ? " with " + std::to_string(layers) + " layers" : "");
}

}  // namespace

VkFormat vulkan_format(ImageFormat format) noexcept { return formats[static_cast<std::size_t>(format)]; }

bool has_its_texels(const TextureSource& form) noexcept {
  const ImageFormatFacts& facts = facts_of(form.format);
  return !facts.packed && facts.dtype == form.dtype && facts.channels == form.channels;
}

Status no_conversion(const TextureSource& form) {
  const ImageFormatFacts& facts = facts_of(form.format);
  if (facts.packed) {
    return unsupported("the packed format " + std::string(facts.name) +
                       " is not supported on Vulkan devices. Declare another, such as " +
                       (facts.kind == TexelKind::integer ? "rgba16ui" : "rgba16f") + ", or use an opengl device");
  }
  return unsupported("a tensor of " + std::string(numpy_name(form.dtype)) + " with " + std::to_string(form.channels) +
                     " channels as " + std::string(facts.name) +
                     " is not supported on Vulkan devices. Provide the format's type, or use an opengl device");
}

Result<std::vector<std::byte>> converted_texels(const TextureSource& form, std::span<const std::byte> tensor) {
  const ImageFormatFacts& facts = facts_of(form.format);
  const std::size_t from = size_of(form.dtype), to = size_of(facts.dtype);
  const std::size_t texels = tensor.size() / (from * form.channels);
  const bool scaled = facts.kind != TexelKind::integer;
  // Drivers of OpenGL round a narrower element in ways of their own.
  const bool is_signed = facts.dtype == DType::i8 || facts.dtype == DType::i16;
  const bool rounds = facts.dtype == DType::f16 || (facts.kind == TexelKind::normalized && is_signed);
  const bool offered = !facts.packed && (!rounds || facts.dtype == form.dtype);
  std::vector<std::byte> converted(texels * facts.channels * to);
  for (std::size_t i = 0; i < texels * facts.channels; ++i) {
    const std::size_t channel = i % facts.channels;
    std::optional<double> value = channel == 3 ? 1.0 : 0.0;
    if (channel < form.channels) {
      value = element_of(tensor.data() + (i / facts.channels * form.channels + channel) * from, form.dtype, scaled);
    }
    if (value && offered && put_component(converted.data() + i * to, facts, *value)) continue;
    return no_conversion(form);
  }
  return converted;
}

Result<std::unique_ptr<PixelTexture>> PixelTexture::create(Gpu& gpu, VkImageViewType type, const TextureSource& form,
                                                           VkDescriptorType use) {
  std::unique_ptr<PixelTexture> texture(new PixelTexture);
  texture->type_ = type;
  texture->form_ = form;
  texture->use_ = use;
  if (Status status = texture->make(gpu); !status.ok()) return status;
  return texture;
}

Status PixelTexture::make(Gpu& gpu) {
  const DeviceFunctions& vk = gpu.vk();
  const auto side = [this](std::size_t i) { return std::max<std::uint32_t>(form_.size[i], 1); };
  const bool one = type_ == VK_IMAGE_VIEW_TYPE_1D || type_ == VK_IMAGE_VIEW_TYPE_1D_ARRAY;
  const bool volume = type_ == VK_IMAGE_VIEW_TYPE_3D;
  extent_ = {side(0), one ? 1 : side(1), volume ? side(2) : 1};
  layers_ = type_ == VK_IMAGE_VIEW_TYPE_1D_ARRAY              ? side(1)
            : one || volume || type_ == VK_IMAGE_VIEW_TYPE_2D ? 1
                                                              : side(2);

  const bool storage = use_ == VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
  const bool linear = !storage && form_.filter == TextureFilter::linear;
  VkFormatProperties offered{};
  gpu.api().vk().GetPhysicalDeviceFormatProperties(gpu.facts().physical, vulkan_format(form_.format), &offered);
  VkFormatFeatureFlags needed = storage ? VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT : VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT;
  if (linear) needed |= VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT;
  if ((offered.optimalTilingFeatures & needed) != needed) {
    return unsupported(gpu.facts().info.name + " does not support " +
                       (storage  ? "images"
                        : linear ? "linear samplers"
                                 : "samplers") +
                       " of format " + std::string(facts_of(form_.format).name));
  }
  const VkPhysicalDeviceLimits& limits = gpu.facts().properties.limits;
  const std::uint32_t most = one      ? limits.maxImageDimension1D
                             : volume ? limits.maxImageDimension3D
                                      : limits.maxImageDimension2D;
  if (std::max({extent_.width, extent_.height, extent_.depth}) > most || layers_ > limits.maxImageArrayLayers) {
    return unsupported("an image of " + size_text(extent_, layers_) + " texels, the device takes at most " +
                       std::to_string(most) + " on a side and " + std::to_string(limits.maxImageArrayLayers) +
                       " layers");
  }

  auto image = structure<VkImageCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO);
  const bool cube = type_ == VK_IMAGE_VIEW_TYPE_CUBE || type_ == VK_IMAGE_VIEW_TYPE_CUBE_ARRAY;
  if (cube) image.flags = VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT;
  image.imageType = one ? VK_IMAGE_TYPE_1D : volume ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D;
  image.format = vulkan_format(form_.format);
  image.extent = extent_;
  image.mipLevels = 1;
  image.arrayLayers = layers_;
  image.samples = VK_SAMPLE_COUNT_1_BIT;
  image.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT |
                (storage ? VK_IMAGE_USAGE_STORAGE_BIT : VK_IMAGE_USAGE_SAMPLED_BIT);
  const std::string doing = "an image of " + size_text(extent_, layers_) + " texels";
  image_ = OwnedImage(gpu);
  Status status = gpu.check(vk.CreateImage(gpu.handle(), &image, nullptr, image_.out()), doing);
  if (!status.ok()) return status;
  VkMemoryRequirements needs{};
  vk.GetImageMemoryRequirements(gpu.handle(), image_.get(), &needs);
  auto type = gpu.memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (!type) type = gpu.memory_type(needs.memoryTypeBits, 0);
  if (!type) return unavailable(gpu.id() + ": " + doing + ": no memory type of the device is suitable");
  auto memory = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.allocationSize = needs.size;
  memory.memoryTypeIndex = *type;
  memory_ = OwnedMemory(gpu);
  status = gpu.check(vk.AllocateMemory(gpu.handle(), &memory, nullptr, memory_.out()), doing);
  if (status.ok()) status = gpu.check(vk.BindImageMemory(gpu.handle(), image_.get(), memory_.get(), 0), doing);
  if (!status.ok()) return status;

  auto view = structure<VkImageViewCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO);
  view.image = image_.get();
  view.viewType = type_;
  view.format = image.format;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, layers_};
  view_ = OwnedImageView(gpu);
  status = gpu.check(vk.CreateImageView(gpu.handle(), &view, nullptr, view_.out()), doing);
  if (!status.ok() || use_ != VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER) return status;
  auto sampler = make_sampler(gpu, form_.filter, form_.wrap, facts_of(form_.format).kind == TexelKind::integer);
  if (!sampler) return sampler.error();
  sampler_ = std::move(*sampler);
  return {};
}

Result<OwnedSampler> make_sampler(Gpu& gpu, TextureFilter filter, TextureWrap wrap, bool integer) {
  constexpr VkSamplerAddressMode wraps[] = {VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE, VK_SAMPLER_ADDRESS_MODE_REPEAT,
                                            VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT,
                                            VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER};
  auto info = structure<VkSamplerCreateInfo>(VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO);
  info.magFilter = info.minFilter = filter == TextureFilter::linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
  info.addressModeU = info.addressModeV = info.addressModeW = wraps[static_cast<std::size_t>(wrap)];
  info.borderColor = integer ? VK_BORDER_COLOR_INT_TRANSPARENT_BLACK : VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK;
  OwnedSampler sampler(gpu);
  Status status = gpu.check(gpu.vk().CreateSampler(gpu.handle(), &info, nullptr, sampler.out()), "a sampler");
  if (!status.ok()) return status;
  return sampler;
}

}  // namespace kiln::vulkan
