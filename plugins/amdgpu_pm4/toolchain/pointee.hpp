// What a pointer argument of an OpenCL C kernel points to.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <cstdint>
#include <string>

#include <kiln/kernel.hpp>
#include <kiln/program_interface.hpp>

namespace kiln::amdgpu_pm4 {

struct Pointee {
  ElementType element = ElementType::unknown;  // unknown: a struct, or a name that the text does not declare simply
  std::uint32_t bytes = 0, components = 1;     // of a component
};

// type: as the compiler reports it, "float4*". A name of the source's own is looked up among its typedefs.
Pointee pointee_of(const std::string& type, const KernelSource& source);

}  // namespace kiln::amdgpu_pm4
