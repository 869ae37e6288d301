// The same application with Kiln's program cache instead of its own: kiln::gl in a context that it has anyway. The
// driver's cache is the driver's.
//
//   start_adopted FOLDER COUNT CACHE KEY      runs FOLDER/k0.comp, k1.comp, … on FOLDER/x.npy
#include "start_context.hpp"

#include <kiln/adopted_gl.hpp>
#include <kiln/open_program_cache.hpp>

#include <unistd.h>

using namespace kiln::bench;

int main(int argc, char** argv) {
  if (argc != 5) fail("usage: start_adopted FOLDER COUNT CACHE KEY");
  const std::string folder = argv[1];
  kiln::CacheConfig config;
  config.directory = argv[3];
  config.key_file = argv[4];
  const GladGLContext gl = own_context();
  auto adopted = kiln::AdoptedGl::adopt(eglGetProcAddress, {}, config);
  if (!adopted) fail(adopted.error().text());
  auto cache = kiln::open_program_cache(config);
  if (!cache) fail(cache.error().text());
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    const std::string number = std::to_string(i), text = contents(folder + "/k" + number + ".comp");
    auto program = (*adopted)->program(**cache, text, "k" + number);
    if (!program) fail(program.error().text());
    dispatch(gl, program->name(), folder, "plain" + number + ".npy");
  }
  std::fflush(nullptr);
  _exit(0);
}
