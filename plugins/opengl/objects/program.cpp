#include "objects/program.hpp"

namespace kiln::opengl {

GlProgram::~GlProgram() {
  // The closure borrows the group: its threads run everything posted before they end.
  group_->execution().post([group = group_.get(), name = name_] { group->gl().DeleteProgram(name); });
}

}  // namespace kiln::opengl
