// PixelTexture: the image or sampled texture of a user's kernel, copied from and to a buffer.
//
// Thread-safety: immutable after create(). Ownership: the buffer that it belongs to owns it, and outlives its
// dispatches.
#pragma once

#include <kiln/program_interface.hpp>

#include <memory>
#include <span>
#include <vector>

#include "gpu.hpp"

namespace kiln::vulkan {

class PixelTexture {
 public:
  // REQUIRES: not a texture of a buffer (TextureShape::buffer). unsupported: the device has no such image.
  static Result<std::unique_ptr<PixelTexture>> create(Gpu& gpu, VkImageViewType type, const TextureSource& form,
                                                      VkDescriptorType use);

  bool is(VkImageViewType type, const TextureSource& form, VkDescriptorType use) const noexcept {
    return type == type_ && use == use_ && form == form_;
  }
  VkImage image() const noexcept { return image_.get(); }
  VkImageView view() const noexcept { return view_.get(); }
  VkSampler sampler() const noexcept { return sampler_.get(); }  // null: not with this texture
  std::uint32_t layers() const noexcept { return layers_; }
  VkExtent3D extent() const noexcept { return extent_; }

 private:
  PixelTexture() = default;
  Status make(Gpu& gpu);

  VkImageViewType type_ = VK_IMAGE_VIEW_TYPE_2D;
  TextureSource form_;
  VkDescriptorType use_ = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
  VkExtent3D extent_{1, 1, 1};
  std::uint32_t layers_ = 1;
  OwnedMemory memory_;  // destroyed after the image
  OwnedImage image_;
  OwnedImageView view_;
  OwnedSampler sampler_;
};

Result<OwnedSampler> make_sampler(Gpu& gpu, TextureFilter filter, TextureWrap wrap, bool integer);

VkFormat vulkan_format(ImageFormat format) noexcept;

// Whether a tensor of this form has exactly the texels of its format, so that the device copies it.
bool has_its_texels(const TextureSource& form) noexcept;

// The error for a form that converted_texels() does not convert, or that would have to be converted back.
Status no_conversion(const TextureSource& form);

// The texels of a form that has not: missing channels become 0, alpha 1; u8 and u16 count from 0 to 1 where the format
// is no integer. invalid_argument: a conversion that is not known here.
Result<std::vector<std::byte>> converted_texels(const TextureSource& form, std::span<const std::byte> tensor);

}  // namespace kiln::vulkan
