// Host memory of the device, and oneDNN's failures as Statuses.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <kiln/buffer.hpp>
#include <kiln/measurement.hpp>
#include <kiln/status.hpp>

#include "onednn/candidate.hpp"
#include "onednn/worker_pool.hpp"

namespace kiln::cpu {

// HostBuffer: aligned host memory, its own or the caller's, and the packed forms of the constant that it holds.
//
// Thread-safety: as kiln::Buffer; packed() is called by the device while it holds its queue. Ownership: owns its memory
// unless it wraps the caller's; owns its packed forms, which live as long as the buffer, or until it is written to.
class HostBuffer final : public Buffer {
 public:
  static Result<std::unique_ptr<Buffer>> create(const BufferDesc& desc);
  ~HostBuffer() override;

  std::uint64_t bytes() const noexcept override { return memory_.size(); }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override;
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override;
  std::span<std::byte> mapped() noexcept override { return memory_; }
  Result<UniqueFd> export_fd() noexcept override;

  // Equal to an earlier answer that is still held: the same buffer with the same contents. Wrapped memory may change
  // without it.
  std::shared_ptr<const void> contents();

  enum class Keep : std::uint8_t { invalid = 0, yes, no };
  // The constant in the layout that is wanted: the kept form where there is one, else packed now, which is counted.
  // Keep::yes keeps it with a buffer whose usage is constant; any other is packed anew at each call. The pool shares a
  // large one out. Throws dnnl::error.
  dnnl::memory packed(const Pipeline::Constant& constant, Keep keep, WorkerPool& pool, dnnl::stream& stream,
                      WorkCounters* counters);

 private:
  enum class Holds : std::uint8_t { invalid = 0, own_memory, caller_memory };
  struct PackedForm {
    Pipeline::Constant constant;
    dnnl::memory memory;
  };

  HostBuffer(std::span<std::byte> memory, Holds holds, BufferUsage usage) noexcept;
  Status check_range(std::string_view access, std::uint64_t offset, std::uint64_t bytes) const;

  std::span<std::byte> memory_;
  Holds holds_;
  BufferUsage usage_;
  std::mutex mutex_;                      // guards contents_ and packed_
  std::shared_ptr<const void> contents_;  // null: nobody has asked since the last write
  std::vector<PackedForm> packed_;
};

// Turning the exception being handled into a typed Status: dnnl::error and the standard ones never leave this module.
//
// Thread-safety: any thread.

// REQUIRES: called within a catch clause. `what` describes the object: the canonical text of a spec, as a rule.
Status current_failure(std::string_view what);

}  // namespace kiln::cpu
