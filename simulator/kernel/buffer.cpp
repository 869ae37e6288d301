#include "simulator/kernel/buffer.hpp"

#include <amdgpu_drm.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace kiln::simulator::kernel {
namespace {

// Buffers of a real device take no descriptors: the low numbers are left to the program, where its limit allows.
constexpr int first_descriptor = 1024;

UniqueFd out_of_the_way(UniqueFd fd) {
  const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, first_descriptor);
  return high < 0 ? std::move(fd) : UniqueFd(high);
}

std::atomic<std::uint64_t>* counter_of(Heap heap, HeapUse* use) {
  if (use == nullptr || heap == Heap::program) return nullptr;
  return heap == Heap::vram ? &use->vram : &use->gtt;
}

}  // namespace

Buffer::Buffer(const BufferTraits& traits_in, UniqueFd fd, std::byte* host, std::shared_ptr<HeapUse> use)
    : traits(traits_in), domains_now(traits_in.domains), fd_(std::move(fd)), use_(std::move(use)) {
  memory_ = {traits.id, host, traits.bytes, (traits.flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID) != 0};
  if (auto* counter = counter_of(traits.heap, use_.get())) *counter += traits.bytes;
}

Buffer::~Buffer() {
  if (auto* counter = counter_of(traits.heap, use_.get())) *counter -= traits.bytes;
  if (fd_) ::munmap(memory_.host, memory_.bytes);
}

std::shared_ptr<Buffer> Buffer::map(const BufferTraits& traits, UniqueFd fd, std::shared_ptr<HeapUse> use) {
  void* at = ::mmap(nullptr, traits.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<Buffer>(
      new Buffer(traits, out_of_the_way(std::move(fd)), static_cast<std::byte*>(at), std::move(use)));
}

std::shared_ptr<Buffer> Buffer::create(const BufferTraits& traits, std::shared_ptr<HeapUse> use) {
  UniqueFd fd(::memfd_create("kiln-sim-buffer", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(traits.bytes)) != 0) return nullptr;
  return map(traits, std::move(fd), std::move(use));
}

std::shared_ptr<Buffer> Buffer::adopt(const BufferTraits& traits, UniqueFd fd, std::shared_ptr<HeapUse> use) {
  return map(traits, std::move(fd), std::move(use));
}

std::shared_ptr<Buffer> Buffer::of_program(const BufferTraits& traits, std::byte* address) {
  return std::shared_ptr<Buffer>(new Buffer(traits, UniqueFd(), address, nullptr));
}

BufferRef Buffer::memory(const std::shared_ptr<Buffer>& buffer) { return BufferRef(buffer, &buffer->memory_); }

void Buffer::lose_contents() {
  off_t at = 0;
  while ((at = ::lseek(fd_.get(), at, SEEK_DATA)) >= 0) {
    const off_t end = ::lseek(fd_.get(), at, SEEK_HOLE);
    if (end < 0) return;
    std::memset(memory_.host + at, 0xa5, static_cast<std::size_t>(end - at));
    at = end;
  }
}

void Buffer::add_use(const void* owner, FencePtr finished) {
  std::erase_if(uses_, [](const Use& use) { return use.finished->signaled; });
  uses_.push_back({owner, std::move(finished)});
}

void Buffer::wait_for_others(const void* owner, Fences& fences) const {
  for (const Use& use : uses_) {
    if (use.owner != owner && !use.finished->signaled) fences.push_back(use.finished);
  }
}

}  // namespace kiln::simulator::kernel
