// Programs, their serialized form, and the compiler that makes them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/digest.hpp>
#include <kiln/kernel.hpp>
#include <kiln/program.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/status.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/recorded_dispatch.hpp"
#include "amdgpu_pm4/safety/validator.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// Of a program or a buffer: never given twice in a process. Thread-safety: any thread.
std::uint64_t next_object_number() noexcept;

// Pm4Program: one kernel of a code object, in device memory and ready to be dispatched.
//
// Thread-safety: immutable, but for what the queue notes. Ownership: shares the loaded kernel with the submissions in
// flight that run it.

struct LoadedKernel {
  std::vector<std::byte> object;  // the code object's bytes, for serialize()
  Digest digest;                  // of them
  Digest quarantine_key;          // of this kernel: another kernel of the same code object is not to blame
  std::uint32_t version = 0;      // of the code object format
  KernelCode kernel;
  std::array<std::uint32_t, 3> workgroup{};
  std::vector<Access> bindings;  // one an argument
  std::unique_ptr<BufferObject> code;
  std::shared_ptr<BufferObject> scratch;  // null: the kernel has none
  RecordedDispatch recorded;
  ProgramFacts facts;  // for the check before each submission
  // One a binding: 0, or the bytes of an argument that is passed by value. Empty: none is.
  std::vector<std::uint32_t> by_value{};
  ProgramInterface interface {};    // its arguments, hidden ones left out
  DispatchPlace place{};            // for dispatches with local memory beside the kernel's own
  mutable bool ended_well = false;  // the queue's, under its mutex: a submission with it has

  std::uint32_t value_bytes(std::size_t binding) const noexcept { return by_value.empty() ? 0 : by_value[binding]; }
  // "kernel 'saxpy' (program 3f2a90c1…)", for messages.
  std::string name() const;
};

Digest quarantine_key_of(const Digest& object, std::string_view kernel);

class Pm4Program final : public Program {
 public:
  Pm4Program(const Winsys& owner, std::shared_ptr<const LoadedKernel> loaded)
      : owner_(&owner), loaded_(std::move(loaded)) {}

  std::uint64_t charge() const noexcept override;
  const ProgramInterface* interface(const KernelSource&) const noexcept override { return &loaded_->interface; }
  const Winsys* owner() const noexcept { return owner_; }
  const std::shared_ptr<const LoadedKernel>& loaded() const noexcept { return loaded_; }
  std::uint64_t number() const noexcept { return number_; }

 private:
  const Winsys* owner_;
  const std::uint64_t number_ = next_object_number();
  std::shared_ptr<const LoadedKernel> loaded_;
};

// Compiler: what turns kernel source into a code object, as a value that tests can put another one into.
//
// Thread-safety: compile may be called from any thread, also from several at once. Ownership: holds what compile needs.
constexpr std::string_view no_compiler = "none";  // identity of one that only answers unavailable

struct Compiler {
  std::string identity;  // of everything that decides which code comes out; not empty
  // invalid_argument holds the compiler's whole log; unavailable: there is no compiler on this machine.
  std::function<Result<std::vector<std::byte>>(const KernelSource& source, Target target)> compile;
};

// ProgramBinary of this plugin: a code object behind the digest of its bytes.
//
//   format  "amdgpu:" target ":v" code object version       "amdgpu:gfx1100:v5"
//   bytes   digest[32] object[…]                            digest = SHA-256 of the object
//
// The digest finds damage before the loader looks at the object; whether the bytes are authentic is the cache's
// business.
//
// Thread-safety: pure functions. Ownership: values.

std::string binary_format(Target target, std::uint32_t version);
ProgramBinary make_binary(Target target, std::uint32_t version, const Digest& digest,
                          std::span<const std::byte> object);

struct OpenedBinary {
  Digest digest;
  std::span<const std::byte> object;  // of the binary's bytes
};

// unsupported: the format is not this target's. corrupt: the bytes are not those of the digest.
Result<OpenedBinary> open_binary(const ProgramBinary& binary, Target target);

// Loading of programs into device memory, and the compiler that the toolchain provides.

// A kernel of a code object that fits its source.
struct CheckedKernel {
  CodeObject object;
  KernelCode kernel;
  std::array<std::uint32_t, 3> workgroup{};
  std::vector<std::uint32_t> by_value;  // as in LoadedKernel
  ProgramInterface interface;
};

// corrupt or unsupported: the object; invalid_argument: it is not what the source says (its kernel, its workgroup, its
// bindings). Thread-safety: any thread.
Result<CheckedKernel> check_kernel(const KernelSource& source, std::span<const std::byte> object, Target target);

// ProgramLoader: code objects into device memory, once each, and their kernels' dispatches recorded.
//
// Thread-safety: every method from any thread. Ownership: borrows the winsys, which outlives it; shares the scratch
// ring with the programs that use it.
class ProgramLoader {
 public:
  ProgramLoader(Winsys& winsys, Target target, const DeviceShape& shape)
      : winsys_(winsys), target_(target), shape_(shape) {}

  // `digest`: that of the object's bytes. Errors as check_kernel().
  Result<std::shared_ptr<const LoadedKernel>> load(const KernelSource& source, std::span<const std::byte> object,
                                                   const Digest& digest);

  // A dispatch of a loaded kernel at another place.
  Result<RecordedDispatch> record(const KernelCode& kernel, const DispatchPlace& place) const {
    return RecordedDispatch::record(kernel, shape_, place);
  }

 private:
  Result<std::unique_ptr<BufferObject>> upload(const CodeObject& object);
  Result<std::shared_ptr<BufferObject>> scratch_of(std::uint64_t bytes);

  Winsys& winsys_;
  const Target target_;
  const DeviceShape shape_;
  std::mutex mutex_;
  std::shared_ptr<BufferObject> scratch_;  // the largest that a program needed
};

// The Compiler of a device, from a Toolchain.
//
// Thread-safety: what it answers may be called from any thread. Ownership: the Compiler shares the toolchain.

// Without a toolchain (its error) every compilation answers unavailable with the reason; programs that were compiled
// before still load, under keys of their own. `patience` limits the time of one compilation. Warnings of the compiler
// go to the log.
Compiler compiler_of(Result<std::shared_ptr<Toolchain>> toolchain, std::chrono::seconds patience, Log log = {});

}  // namespace kiln::amdgpu_pm4
