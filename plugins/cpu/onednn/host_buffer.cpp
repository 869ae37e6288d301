#include "onednn/host_buffer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/primitives.hpp"

namespace kiln::cpu {
namespace {

constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;

Status check_wrapped(const BufferDesc& desc) {
  if (desc.host.size() != desc.bytes) {
    return invalid_argument("buffer of host memory: size is " + std::to_string(desc.host.size()) + " bytes, expected " +
                            std::to_string(desc.bytes));
  }
  const std::uint64_t beyond = reinterpret_cast<std::uintptr_t>(desc.host.data()) % alignment;
  if (beyond == 0) return {};
  return invalid_argument("buffer of host memory: address modulo " + std::to_string(alignment) + " is " +
                          std::to_string(beyond) + ", expected 0");
}

}  // namespace

Result<std::unique_ptr<Buffer>> HostBuffer::create(const BufferDesc& desc) {
  if (desc.usage == BufferUsage::invalid) return invalid_argument("buffer: usage is not set");
  if (desc.import_fd >= 0) {
    return unsupported("buffer: cannot import file descriptor " + std::to_string(desc.import_fd) +
                       ": device 'cpu' does not share memory with other devices");
  }
  if (desc.bytes == 0 || desc.bytes > most_bytes) {
    return invalid_argument("buffer size is " + std::to_string(desc.bytes) + " bytes, expected 1 to 2^40");
  }
  if (desc.host.data() != nullptr) {
    if (Status status = check_wrapped(desc); !status.ok()) return status;
    return std::unique_ptr<Buffer>(new HostBuffer(desc.host, Holds::caller_memory, desc.usage));
  }
  if (desc.part_of != nullptr) {
    const std::span<std::byte> whole = desc.part_of->mapped();
    if (desc.bytes <= whole.size()) {
      return std::unique_ptr<Buffer>(new HostBuffer(whole.first(desc.bytes), Holds::caller_memory, desc.usage));
    }
    return invalid_argument("part of a buffer has " + std::to_string(desc.bytes) + " bytes, expected at most " +
                            std::to_string(whole.size()));
  }
  const std::uint64_t padded = (desc.bytes + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, padded));
  if (memory == nullptr) return unavailable("buffer of " + std::to_string(desc.bytes) + " bytes: out of memory");
  return std::unique_ptr<Buffer>(new HostBuffer({memory, desc.bytes}, Holds::own_memory, desc.usage));
}

HostBuffer::HostBuffer(std::span<std::byte> memory, Holds holds, BufferUsage usage) noexcept
    : memory_(memory), holds_(holds), usage_(usage) {}

HostBuffer::~HostBuffer() {
  if (holds_ == Holds::own_memory) std::free(memory_.data());
}

Status HostBuffer::check_range(std::string_view access, std::uint64_t offset, std::uint64_t bytes) const {
  if (offset <= memory_.size() && bytes <= memory_.size() - offset) return {};
  return invalid_argument("buffer of " + std::to_string(memory_.size()) + " bytes: " + std::string(access) + " of " +
                          std::to_string(bytes) + " bytes at offset " + std::to_string(offset) + " is out of range");
}

Status HostBuffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (Status status = check_range("write", offset, from.size()); !status.ok()) return status;
  if (!from.empty()) std::memcpy(memory_.data() + offset, from.data(), from.size());
  const std::lock_guard lock(mutex_);
  packed_.clear();  // they are forms of what was there before
  contents_.reset();
  return {};
}

Status HostBuffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept {
  if (Status status = check_range("read", offset, to.size()); !status.ok()) return status;
  if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
  return {};
}

Result<UniqueFd> HostBuffer::export_fd() noexcept {
  return unsupported("buffer of " + std::to_string(memory_.size()) +
                     " bytes: cannot be exported: device 'cpu' does not share memory with other devices");
}

std::shared_ptr<const void> HostBuffer::contents() {
  const std::lock_guard lock(mutex_);
  if (contents_ == nullptr) contents_ = std::make_shared<char>();
  return contents_;
}

dnnl::memory HostBuffer::packed(const Pipeline::Constant& constant, Keep keep, WorkerPool& pool, dnnl::stream& stream,
                                WorkCounters* counters) {
  const std::lock_guard lock(mutex_);
  for (const PackedForm& form : packed_) {
    if (form.constant == constant) return form.memory;
  }
  const dnnl::engine engine = stream.get_engine();
  const dnnl::memory from(constant.given, engine, memory_.data() + constant.offset);
  dnnl::memory to(constant.wanted, engine);
  pack(from, to, pool, stream);
  if (counters != nullptr) counters->prepared.fetch_add(1, std::memory_order_relaxed);
  if (keep == Keep::yes && usage_ == BufferUsage::constant) packed_.push_back({constant, to});
  return to;
}

namespace {

Status failure_of(const dnnl::error& error) {
  const std::string words = std::string("oneDNN: ") + error.what();
  switch (error.status) {
    case dnnl_unimplemented:
      return unsupported(words);
    case dnnl_out_of_memory:
      return unavailable(words);
    case dnnl_invalid_arguments:
      return invalid_argument(words);
    default:
      return internal_error(words);
  }
}

}  // namespace

Status current_failure(std::string_view what) {
  try {
    throw;
  } catch (const dnnl::error& error) {
    return failure_of(error).within(what);
  } catch (const std::bad_alloc&) {
    return unavailable(std::string(what) + ": out of memory");
  } catch (const std::exception& error) {
    return internal_error(std::string(what) + ": " + error.what());
  }
}

}  // namespace kiln::cpu
