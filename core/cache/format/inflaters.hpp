// Inflaters: zstd's contexts, kept from one payload to the next, because making one costs more than inflating a
// program.
//
// Thread-safety: every method from any thread; a context is lent to one caller at a time. Ownership: owns the contexts,
// as many as were ever used at once.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

struct ZSTD_DCtx_s;

namespace kiln {

class Inflaters {
 public:
  Inflaters() = default;
  Inflaters(const Inflaters&) = delete;
  Inflaters& operator=(const Inflaters&) = delete;
  ~Inflaters();

  // The number of bytes written to `inflated`, or an error of zstd's (ZSTD_isError).
  std::size_t inflate(std::span<std::byte> inflated, std::span<const std::byte> stored);

 private:
  ZSTD_DCtx_s* take();

  std::mutex mutex_;
  std::vector<ZSTD_DCtx_s*> idle_;
};

}  // namespace kiln
