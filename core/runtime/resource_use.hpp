// ResourceUse: what runs on what several devices share: each device has its turn, and a run beside other work is known
// as contended.
//
// A resource is a DeviceInfo::shared_resource or physical_id. Runs of two devices with one shared_resource take turns,
// in the order in which they came. Runs of one device go together: they queue behind their own, and are not contended
// by it. A compiler at work takes no turn, and counts as another device; so does the comparing of outputs with the
// reference, which uses the host's cores whatever device computed them.
// Thread-safety: every method from any thread. Ownership: a Use ends with its life; the ResourceUse outlives it.
#pragma once

#include <kiln/device.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

// What devices that compute on the host's cores name as their shared_resource.
inline constexpr std::string_view host_cores = "host-cores";

class ResourceUse {
 public:
  class Use {
   public:
    Use(Use&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          user_(std::move(other.user_)),
          turn_(std::exchange(other.turn_, {})),
          waited_ns_(other.waited_ns_),
          held_(std::move(other.held_)) {}
    Use& operator=(Use&&) = delete;
    ~Use() { end(); }
    // Before its life does.
    void end();
    // For its turn.
    std::uint64_t waited_ns() const noexcept { return waited_ns_; }
    // Whether another device used what this one shares at any time since the use began. REQUIRES: it has not ended.
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
    std::string turn_;  // the resource; empty: none is held
    std::uint64_t waited_ns_ = 0;
    std::vector<Held> held_;
  };

  // user: the device's id, or what else tells one user from another.
  Use begin(const DeviceInfo& device, const std::string& user);
  // Of a resource by its name, by what is no device.
  Use begin(std::string_view resource, const std::string& user);
  // Likewise, when it is the device's turn. timeout: another device held what they share until the deadline.
  // cancelled: `stop` was set meanwhile; it may be null.
  Result<Use> begin_turn(const DeviceInfo& device, Deadline deadline, const std::atomic<bool>* stop);

 private:
  struct Waiter {
    std::uint64_t number = 0;
    std::string device;
  };
  struct Turns {
    std::string device;         // whose runs are under way
    std::uint32_t runs = 0;     // so many
    std::list<Waiter> waiting;  // in the order of their coming
  };
  struct Resource {
    std::map<std::string, std::uint32_t> users;  // with how many uses
    std::uint64_t overlaps = 0;                  // how often a second user came
  };

  void count_in(Use& use, const DeviceInfo& device);        // REQUIRES: mutex_
  void count_in(Use& use, std::string_view resource_name);  // REQUIRES: mutex_

  mutable std::mutex mutex_;
  std::condition_variable turned_;
  std::uint64_t last_number_ = 0;
  std::map<std::string, Turns> turns_;  // by shared_resource
  std::map<std::string, Resource> resources_;
};

// Whether two devices share cores, or are one and the same hardware.
bool share_a_resource(const DeviceInfo& a, const DeviceInfo& b) noexcept;

}  // namespace kiln
