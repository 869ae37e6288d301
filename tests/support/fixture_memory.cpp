#include "support/fixture_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace kiln::support {
namespace {

Status failure(const std::string& what) { return unavailable("fixture memory: " + what + ": " + std::strerror(errno)); }

}  // namespace

void FixtureMemory::Unmap::operator()(std::byte* memory) const noexcept { munmap(memory, length); }

Result<FixtureMemory> FixtureMemory::create(std::uint64_t bytes) {
  UniqueFd fd(memfd_create("kiln-fixture", MFD_CLOEXEC));
  if (!fd) return failure("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return failure(std::to_string(bytes) + " bytes");
  return map(std::move(fd), bytes);
}

Result<FixtureMemory> FixtureMemory::import(int fd, std::uint64_t bytes) {
  struct stat behind {};
  if (fstat(fd, &behind) != 0 || std::cmp_less(behind.st_size, bytes)) {
    return invalid_argument("fixture memory: descriptor " + std::to_string(fd) + " with " +
                            std::to_string(behind.st_size) + " bytes behind it, expected " + std::to_string(bytes));
  }
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return failure("descriptor " + std::to_string(fd));
  return map(std::move(own), bytes);
}

Result<FixtureMemory> FixtureMemory::map(UniqueFd fd, std::uint64_t bytes) {
  FixtureMemory made;
  made.size_ = static_cast<std::size_t>(bytes);
  const std::size_t length = std::max<std::size_t>(made.size_, 1);  // nothing at all cannot be mapped
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return failure(std::to_string(bytes) + " bytes");
  made.memory_ = {static_cast<std::byte*>(memory), Unmap{length}};
  made.fd_ = std::move(fd);
  return made;
}

Result<UniqueFd> FixtureMemory::export_fd() const {
  UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return failure("descriptor " + std::to_string(fd_.get()));
  return fd;
}

}  // namespace kiln::support
