// The facts of an opened device: what its first context tells.
//
// Thread-safety: runs on a context's thread. Ownership: values.
#pragma once

#include "codec/context_facts.hpp"
#include "gl/context_group.hpp"

namespace kiln::opengl {

// A thread's current context of the group, as the codec sees it; valid as long as the group.
CurrentContext current_context(ContextGroup& group);

Result<Facts> read_facts(ContextGroup& group, DriverNotes* notes);

}  // namespace kiln::opengl
