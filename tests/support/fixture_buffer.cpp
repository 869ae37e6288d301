#include "support/fixture_buffer.hpp"

#include <cstring>

namespace kiln::support {

FixtureBuffer::FixtureBuffer(const BufferDesc& desc, bool mapped, std::shared_ptr<std::atomic<std::int64_t>> live)
    : memory_(desc.host), mapped_(mapped), live_(std::move(live)) {
  if (desc.host.empty()) {
    own_.resize((desc.bytes + sizeof(Line) - 1) / sizeof(Line));
    memory_ = {reinterpret_cast<std::byte*>(own_.data()), static_cast<std::size_t>(desc.bytes)};
  }
  ++*live_;
}

FixtureBuffer::FixtureBuffer(FixtureMemory shared, bool mapped, std::shared_ptr<std::atomic<std::int64_t>> live)
    : shared_(std::move(shared)), memory_(shared_->bytes()), mapped_(mapped), live_(std::move(live)) {
  ++*live_;
}

FixtureBuffer::~FixtureBuffer() { --*live_; }

Status FixtureBuffer::check(const char* what, std::uint64_t offset, std::size_t count) const {
  if (offset <= memory_.size() && count <= memory_.size() - offset) return {};
  return invalid_argument(std::string(what) + " of " + std::to_string(count) + " bytes at " + std::to_string(offset) +
                          " leaves a buffer of " + std::to_string(memory_.size()) + " bytes");
}

Status FixtureBuffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  Status status = check("write", offset, from.size());
  if (status.ok() && !from.empty()) std::memcpy(memory_.data() + offset, from.data(), from.size());
  return status;
}

Status FixtureBuffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept {
  Status status = check("read", offset, to.size());
  if (status.ok() && !to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
  return status;
}

std::span<std::byte> FixtureBuffer::mapped() noexcept { return mapped_ ? memory_ : std::span<std::byte>(); }

Result<UniqueFd> FixtureBuffer::export_fd() noexcept {
  if (shared_) return shared_->export_fd();
  return unsupported("fixture buffer: its memory has no descriptor to export");
}

}  // namespace kiln::support
