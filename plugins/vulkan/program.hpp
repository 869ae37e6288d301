// Programs of a device: GLSL or SPIR-V to a compute pipeline, and a pipeline to an entry of the cache and back.
//
// Thread-safety: functions from any thread; a VulkanProgram is immutable. Ownership: a program keeps its device alive.
//
// An entry ("vulkan:3"): 32 bytes SHA-256 of what follows, u32 bytes of the ModuleRecord (little endian), the record, then
// the data of this program's own VkPipelineCache.
#pragma once

#include <kiln/measurement.hpp>
#include <kiln/program.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "codec/reflection.hpp"
#include "gpu.hpp"

namespace kiln::vulkan {

inline constexpr const char* entry_format = "vulkan:3";

class VulkanProgram final : public Program {
 public:
  std::uint64_t charge() const noexcept override { return charge_; }
  const ProgramInterface* interface(const KernelSource& source) const noexcept override;

  const Gpu& gpu() const noexcept { return *gpu_; }
  std::uint64_t number() const noexcept { return number_; }  // Gpu::next_number()
  const Reflection& reflection() const noexcept { return module_.reflection; }
  // The driver generates machine code at the first dispatch: it stores none in a pipeline cache (lavapipe).
  bool compiles_at_dispatch() const noexcept { return compiles_at_dispatch_; }
  VkPipeline pipeline() const noexcept { return pipeline_.get(); }
  VkPipelineLayout layout() const noexcept { return layout_.get(); }
  const VkDescriptorSetLayout* set_layout() const noexcept { return &set_layout_handle_; }
  std::size_t bindings() const noexcept { return bindings_; }
  // A separate sampler with this filter and wrap. integer: it reads integers.
  Result<VkSampler> sampler(const TextureSource& state, bool integer) const;
  View view(std::size_t binding) const noexcept { return views_.empty() ? View::storage : views_[binding]; }

 private:
  friend class ProgramMaker;
  friend Result<ProgramBinary> serialize_program(const VulkanProgram& program);
  explicit VulkanProgram(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)), number_(gpu_->next_number()) {}

  std::shared_ptr<Gpu> gpu_;
  std::uint64_t number_;
  ModuleRecord module_;
  std::size_t bindings_ = 0;
  std::vector<View> views_;  // empty: all are storage
  std::uint64_t charge_ = 0;
  bool compiles_at_dispatch_ = true;
  OwnedPipelineCache cache_;
  OwnedSetLayout set_layout_;
  VkDescriptorSetLayout set_layout_handle_ = VK_NULL_HANDLE;
  OwnedPipelineLayout layout_;
  OwnedPipeline pipeline_;
  mutable std::mutex samplers_mutex_;
  mutable std::map<std::tuple<TextureFilter, TextureWrap, bool>, OwnedSampler> samplers_;
  mutable std::once_flag completed_;
  mutable ProgramInterface interface_;
};

// invalid_argument: the compiler's log, or what the program needs and the device lacks. Counts a build.
Result<std::unique_ptr<Program>> build_program(const std::shared_ptr<Gpu>& gpu, const KernelSource& source,
                                               WorkCounters& counters);

// corrupt: the entry is damaged, another driver's, or the driver would compile it anew. unsupported: another format.
// unavailable: there is no memory for it now.
// Counts a load when the driver gets the entry.
Result<std::unique_ptr<Program>> load_program(const std::shared_ptr<Gpu>& gpu, const KernelSource& source,
                                              const ProgramBinary& binary, WorkCounters& counters);

Result<ProgramBinary> serialize_program(const VulkanProgram& program);

}  // namespace kiln::vulkan
