#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

BufferObject::~BufferObject() = default;
Timeline::~Timeline() = default;
Context::~Context() = default;
Winsys::~Winsys() = default;

}  // namespace kiln::amdgpu_pm4
