#include "objects/program.hpp"

namespace kiln::opengl {

GlProgram::~GlProgram() {
  // The closure borrows the group: its threads run everything posted before they end.
  try {
    group_->execution().post([group = group_.get(), name = name_] { group->gl().DeleteProgram(name); });
  } catch (...) {  // out of memory: the name stays until the context goes
  }
}

const ProgramInterface* GlProgram::interface(const KernelSource& source) const noexcept {
  std::call_once(completed_, [&] { interface_ = complete(reflection_.resources, source); });
  return &interface_;
}

}  // namespace kiln::opengl
