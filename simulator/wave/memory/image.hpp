// ImageView: one image as one instruction reaches it: its resource, format and layout; and the Space of its texels,
// whose addresses come from coordinates that are whole numbers. What lies outside reads as zero and is not written.
//
// Thread-safety and ownership: as of the other spaces.
#pragma once

#include <optional>

#include "simulator/isa/memory_formats.hpp"
#include "simulator/memory/image_layout.hpp"
#include "simulator/wave/memory/space.hpp"
#include "simulator/wave/memory/texel.hpp"
#include "simulator/wave/program.hpp"

namespace kiln::simulator::memory_unit {

struct Texel {  // coordinates within a level; z is the layer, from the resource's first on, or the slice
  Word x = 0, y = 0, z = 0;
};

class ImageView {
 public:
  ImageView(Wave& wave, const Op& op);

  // False: the image is refused, and the fault recorded.
  bool open();

  const Instruction& instruction() const noexcept { return instruction_; }
  const ImageDescriptor& descriptor() const noexcept { return descriptor_; }
  const BufferFormat& format() const noexcept { return format_; }
  unsigned bytes() const noexcept { return bytes_; }
  // Width, height, and slices or layers.
  Texel size(unsigned level) const noexcept;

  struct Found {
    Wide address = 0;
    Wide key = 0;  // of DCC
  };
  // REQUIRES: open(). False: outside.
  bool find(unsigned level, Texel at, Found& out) const noexcept;
  // REQUIRES: open(). False: the fault is recorded.
  bool load(unsigned lane, unsigned level, Texel at, const BufferFormat& as, Color& out, bool& outside) const;

  // The VGPR of the address that the instruction lists as `index`-th.
  const Word* address_row(unsigned index, unsigned half) const {
    return wave_.row(instruction_.image.address[index] + scratch_rows, half);
  }

  // A Space for what writes: where DCC says that 256 bytes are clear, they are filled first.
  bool addresses(unsigned half, unsigned bytes, Addresses& out);
  std::byte* pointer(unsigned lane, Wide address, unsigned bytes) const {
    return global_.pointer(lane, address, bytes);
  }
  bool store(unsigned lane, Wide address, const void* in, unsigned bytes) const {
    return global_.store(lane, address, in, bytes);
  }

  bool read(unsigned lane, Wide address, void* out, unsigned bytes) const {
    return global_.load(lane, address, out, bytes);
  }

  // Each lane's level and texel, of an address of whole numbers.
  void texel_of(unsigned half, unsigned lane, unsigned& level, Texel& at) const;
  // Writes a color's components, as the instruction's mask and D16 have them.
  void give(unsigned half, unsigned lane, const Color& color, bool is_integer_color) const;
  // With tfe: behind the data, for all active lanes, whether a texel that load() was called for had no memory.
  void give_status() const;

  bool refuse_image(const std::string& what) const;

 private:
  bool expand(unsigned lane, const Found& at) const;
  // What 256 bytes hold by their key: nothing where it is the bytes themselves. False: the fault is recorded.
  bool cleared(unsigned lane, const Found& at, std::optional<Element>& out) const;

  Wave& wave_;
  const Op& op_;
  Global global_;
  const Instruction& instruction_;
  ImageShape shape_;
  ImageDescriptor descriptor_;
  BufferFormat format_;
  ImageLayout layout_;
  unsigned bytes_ = 0;
  mutable Wide without_memory_ = 0;  // lanes; of an instruction with tfe
};

}  // namespace kiln::simulator::memory_unit
