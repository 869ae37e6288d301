#include "amdgpu_pm4/device/program.hpp"

#include <cstring>

namespace kiln::amdgpu_pm4 {

std::string LoadedKernel::name() const {
  return "kernel '" + kernel.name + "' (program " + digest.hex().substr(0, 12) + ")";
}

// Its bytes for serialize(), and its image in device memory.
std::uint64_t Pm4Program::charge() const noexcept { return loaded_->object.size() + loaded_->code->bytes(); }

namespace {

constexpr std::size_t digest_bytes = sizeof(Digest::bytes);
constexpr std::uint32_t versions[] = {4, 5};

}  // namespace

std::string binary_format(Target target, std::uint32_t version) {
  return "amdgpu:" + std::string(to_string(target)) + ":v" + std::to_string(version);
}

ProgramBinary make_binary(Target target, std::uint32_t version, const Digest& digest,
                          std::span<const std::byte> object) {
  ProgramBinary binary;
  binary.format = binary_format(target, version);
  binary.bytes.resize(digest_bytes + object.size());
  std::memcpy(binary.bytes.data(), digest.bytes.data(), digest_bytes);
  std::memcpy(binary.bytes.data() + digest_bytes, object.data(), object.size());
  return binary;
}

Result<OpenedBinary> open_binary(const ProgramBinary& binary, Target target) {
  std::string known;
  bool ours = false;
  for (const std::uint32_t version : versions) {
    const std::string format = binary_format(target, version);
    ours |= binary.format == format;
    known += (known.empty() ? "" : ", ") + format;
  }
  if (!ours) return unsupported("program binary of format '" + binary.format + "', the device takes " + known);
  const std::string what = "program binary of " + std::to_string(binary.bytes.size()) + " bytes";
  if (binary.bytes.size() <= digest_bytes) return corrupt(what + ": expected a digest and a code object");
  OpenedBinary opened;
  std::memcpy(opened.digest.bytes.data(), binary.bytes.data(), digest_bytes);
  opened.object = std::span(binary.bytes).subspan(digest_bytes);
  const Digest found = sha256(opened.object);
  if (found != opened.digest) {
    return corrupt(what + ": its digest is " + found.hex() + ", expected " + opened.digest.hex());
  }
  return opened;
}

}  // namespace kiln::amdgpu_pm4
