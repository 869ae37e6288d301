#include "cache/format/inflaters.hpp"

#include <zstd.h>

namespace kiln {

Inflaters::~Inflaters() {
  for (ZSTD_DCtx* context : idle_) ZSTD_freeDCtx(context);
}

ZSTD_DCtx* Inflaters::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      ZSTD_DCtx* context = idle_.back();
      idle_.pop_back();
      return context;
    }
    idle_.reserve(idle_.capacity() + 1);  // what is lent has its place to come back to
  }
  return ZSTD_createDCtx();
}

std::size_t Inflaters::inflate(std::span<std::byte> inflated, std::span<const std::byte> stored) {
  ZSTD_DCtx* context = take();
  if (context == nullptr) return ZSTD_decompress(inflated.data(), inflated.size(), stored.data(), stored.size());
  const std::size_t size = ZSTD_decompressDCtx(context, inflated.data(), inflated.size(), stored.data(), stored.size());
  const std::lock_guard lock(mutex_);
  idle_.push_back(context);
  return size;
}

}  // namespace kiln
