// The variants of every family: from an id to its plan, and what tells a variant's sources of today from those of
// another day.
//
// Thread-safety: pure functions. Ownership: plans are values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <string>
#include <string_view>

namespace kiln::dynamic_shaders {

inline constexpr std::string_view any_shape = "@any";  // behind the id of a variant whose programs serve any shape

// not_found: there is no such variant. unsupported: it does not fit the spec or the device. invalid_argument: the spec
// holds nothing, or a user's kernel is none.
Result<KernelPlan> plan_of(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, std::string_view variant);

// The variant of a spec that leaves no choice: a user's kernel without parameters, or a layer that is written in one
// way. Empty: there is a choice.
std::string_view only_variant(const KernelSpec& spec) noexcept;

// Of what is compiled on that device, pass by pass: a record of another digest tells of another kernel.
std::string source_digest(const KernelPlan& plan, const DeviceInfo& device);

}  // namespace kiln::dynamic_shaders
