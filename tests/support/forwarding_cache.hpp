// ForwardingCache: a program cache that passes every call on to another cache. Tests and benchmarks derive from it and
// override what they observe.
#pragma once

#include <kiln/program_cache.hpp>

#include <memory>
#include <utility>

namespace kiln::test {

class ForwardingCache : public ProgramCache {
 public:
  explicit ForwardingCache(std::unique_ptr<ProgramCache> cache) : cache_(std::move(cache)) {}

  Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept override {
    return cache_->get_or_build(key, source, device);
  }
  Guard enter() noexcept override { return cache_->enter(); }
  const Program* find(const Digest& digest, const Device& device, const Guard& guard) noexcept override {
    return cache_->find(digest, device, guard);
  }
  void record(const ProgramKey& key, const Device& device, const Measurement& measurement,
              double gflops) noexcept override {
    cache_->record(key, device, measurement, gflops);
  }
  CacheStats stats() const noexcept override { return cache_->stats(); }

 private:
  const std::unique_ptr<ProgramCache> cache_;
};

}  // namespace kiln::test
