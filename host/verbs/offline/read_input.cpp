#include "verbs/offline/read_input.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace kiln::host {

Result<std::string> read_input(const std::string& file, std::uint64_t most_bytes) {
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) {
    return invalid_argument("file " + file + ": cannot be read: " + std::strerror(errno));
  }
  if (!S_ISREG(facts.st_mode)) return invalid_argument("file " + file + ": not a regular file");
  if (static_cast<std::uint64_t>(facts.st_size) > most_bytes) {
    return invalid_argument("file " + file + ": has " + std::to_string(facts.st_size) + " bytes, expected at most " +
                            std::to_string(most_bytes));
  }
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in) return invalid_argument("file " + file + ": cannot be read: " + std::strerror(errno));
  return bytes;
}

}  // namespace kiln::host
