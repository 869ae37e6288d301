#include "amdgpu_pm4/device/queue/ring_buffer.hpp"

namespace kiln::amdgpu_pm4 {

Result<std::unique_ptr<RingBuffer>> RingBuffer::create(Winsys& winsys, BufferUse use, std::uint64_t bytes) {
  auto object = winsys.create_buffer({bytes, 0, placement_of(use, winsys.facts().memory), access_of(use)});
  if (!object) return object.error();
  return std::unique_ptr<RingBuffer>(new RingBuffer(winsys, use, std::move(object).value()));
}

Result<RingPart> RingBuffer::take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point,
                                  std::vector<std::shared_ptr<BufferObject>>& own) {
  if (bytes > space_.bytes() / 2) return take_own(bytes, own);
  const auto offset = space_.take(bytes, alignment, point);
  if (!offset) return RingPart{};
  return RingPart{object_->mapped().subspan(*offset, bytes), object_->address() + *offset};
}

Result<RingPart> RingBuffer::take_own(std::uint64_t bytes, std::vector<std::shared_ptr<BufferObject>>& own) {
  auto made = winsys_.create_buffer({bytes, 0, placement_of(use_, winsys_.facts().memory), access_of(use_)});
  if (!made) return made.error();
  own.push_back(std::move(made).value());
  BufferObject& object = *own.back();
  return RingPart{object.mapped().first(bytes), object.address()};
}

}  // namespace kiln::amdgpu_pm4
