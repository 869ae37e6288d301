#include "simulator/kernel/submit/capture.hpp"

#include <amdgpu_drm.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace kiln::simulator::kernel {
namespace {

std::string name_of(const PendingJob& job, std::size_t which) {
  char name[64];
  std::snprintf(name, sizeof name, "%06llu-%s-%zu.pm4", static_cast<unsigned long long>(job.submission),
                job.ring.ip == AMDGPU_HW_IP_GFX ? "graphics" : "compute", which);
  return name;
}

// False where a part of it is not mapped: the engine tells of that.
bool copy(const AddressSpace& space, IndirectBuffer from, std::ostream& to) {
  for (std::uint64_t done = 0; done < from.bytes;) {
    const Mapping* mapping = space.find(from.address + done);
    if (mapping == nullptr) return false;
    const std::uint64_t inside = from.address + done - mapping->start;
    const std::uint64_t bytes = std::min(from.bytes - done, mapping->bytes - inside);
    to.write(reinterpret_cast<const char*>(mapping->buffer->host + mapping->offset + inside),
             static_cast<std::streamsize>(bytes));
    done += bytes;
  }
  return true;
}

}  // namespace

void Capture::write(const PendingJob& job) {
  if (folder_.empty()) return;
  for (std::size_t i = 0; i < job.buffers.size(); ++i) {
    const std::string path = folder_ + "/" + name_of(job, i);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    if (!copy(*job.space, job.buffers[i], file) || !file.flush()) journal_.write("capture: " + path + " is not whole");
  }
}

}  // namespace kiln::simulator::kernel
