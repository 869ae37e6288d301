#include "dynamic_shaders/text.hpp"

namespace kiln::dynamic_shaders {

void Text::close() {
  --depth_;
  line("}");
}

}  // namespace kiln::dynamic_shaders
