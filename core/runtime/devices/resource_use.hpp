// ResourceUse: what runs on what several devices share, so that a run beside another device's is known as contended.
//
// A resource is a DeviceInfo::shared_resource or physical_id. Work of one device queues behind its own and is not
// contended by it; a compiler at work counts as another device.
// Thread-safety: every method from any thread. Ownership: a Use ends with its life; the ResourceUse outlives it.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

class ResourceUse {
 public:
  class Use {
   public:
    Use(Use&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), user_(std::move(other.user_)), held_(std::move(other.held_)) {}
    Use& operator=(Use&&) = delete;
    ~Use();
    // Whether another device used what this one shares at any time since the use began.
    bool contended() const;

   private:
    friend class ResourceUse;
    struct Held {
      std::string resource;
      std::uint64_t overlaps;  // when it began
      bool was_shared;
    };
    Use(ResourceUse* owner, std::string user) : owner_(owner), user_(std::move(user)) {}

    ResourceUse* owner_;
    std::string user_;
    std::vector<Held> held_;
  };

  // user: the device's id, or what else tells one user from another.
  Use begin(const DeviceInfo& device, const std::string& user);

 private:
  struct Resource {
    std::map<std::string, std::uint32_t> users;  // with how many uses
    std::uint64_t overlaps = 0;                  // how often a second user came
  };

  mutable std::mutex mutex_;
  std::map<std::string, Resource> resources_;
};

// Whether two devices share cores, or are one and the same hardware.
bool share_a_resource(const DeviceInfo& a, const DeviceInfo& b) noexcept;

}  // namespace kiln
