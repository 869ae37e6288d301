#include "gl/facts.hpp"

namespace kiln::opengl {

CurrentContext current_context(ContextGroup& group) {
  return {group.gl(), group.id(), group.display().kind, group.display().mesa,
          [&group](std::string_view doing) { return group.check(doing); }};
}

Result<Facts> read_facts(ContextGroup& group, DriverNotes* notes) { return read_facts(current_context(group), notes); }

}  // namespace kiln::opengl
