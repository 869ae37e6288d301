// kiln_witness_compile SHADERS OUT COMPILER: each case's Vulkan text as OUT/NAME.comp, and by glslangValidator as
// OUT/NAME.spv. At build time, so that a text that does not compile is an error of the build.
#include "witnesses/catalog/source_text.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

namespace {

int run(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0) return -1;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 4) {
    std::cerr << "usage: " << arguments[0] << " SHADERS OUT COMPILER\n";
    return 2;
  }
  try {
    const std::filesystem::path out = arguments[2];
    std::filesystem::create_directories(out);
    for (const kiln::witness::ShaderCase& shader : kiln::witness::load_cases(arguments[1])) {
      const std::string text = (out / (shader.name + ".comp")).string();
      std::ofstream(text) << kiln::witness::source_text(shader, kiln::witness::Dialect::vulkan);
      const std::string binary = (out / (shader.name + ".spv")).string();
      if (run({arguments[3], "-V", "--quiet", "--target-env", "vulkan1.1", "-o", binary, text}) != 0) {
        std::cerr << shader.name << ": " << arguments[3] << " refused " << text << "\n";
        return 1;
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
