#include "simulator/kernel/submit/context.hpp"

namespace kiln::simulator::kernel {
namespace {

constexpr std::size_t kept_jobs = 64;  // also when they ended: their error can still be asked for

}  // namespace

std::uint64_t Sequence::add(JobFences fences) {
  while (recent_.size() >= kept_jobs && recent_.begin()->second.finished->signaled) recent_.erase(recent_.begin());
  recent_.emplace(++last_, std::move(fences));
  return last_;
}

JobFences Sequence::find(std::uint64_t number) const {
  const auto at = recent_.find(number);
  return at == recent_.end() ? JobFences{} : at->second;
}

}  // namespace kiln::simulator::kernel
