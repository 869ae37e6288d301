#include "onednn/workspace.hpp"

#include <sys/mman.h>

#include <new>

namespace kiln::cpu {
namespace {

// Whole huge pages: a tensor's reorder walks it in strides, which costs a page-table walk a step on small pages.
constexpr std::uint64_t granule = std::uint64_t{2} << 20;

}  // namespace

std::byte* Workspace::at_least(std::uint64_t bytes) {
  if (bytes <= bytes_) return memory_.get();
  const std::uint64_t rounded = (bytes + granule - 1) / granule * granule;
  memory_.reset();
  bytes_ = 0;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(granule, rounded)));
  if (memory_ == nullptr) throw std::bad_alloc();
  madvise(memory_.get(), rounded, MADV_HUGEPAGE);  // advice: a refusal changes nothing but speed
  bytes_ = rounded;
  return memory_.get();
}

}  // namespace kiln::cpu
