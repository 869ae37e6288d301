// ResourceUse: schedules devices that share a resource, and detects runs that were contended.
//
// A resource is DeviceInfo::shared_resource or physical_id. Devices with one shared_resource take turns in the order of
// arrival. Runs of one device share a turn and do not contend with each other. A compiler takes no turn, but counts as
// another device. The same applies to the comparison with the reference, which uses the host's cores.
// Thread-safety: every method from any thread. Ownership: a Use ends when destroyed; ResourceUse must outlive it.
#pragma once

#include <kiln/device.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

// shared_resource of the devices that compute on the host's cores.
inline constexpr std::string_view cores_of_host = "host-cores";

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
    // Ends the use before destruction.
    void end();
    // Lets other devices have their turn. The use goes on.
    void end_turn();
    // Time waited for the turn.
    std::uint64_t waited_ns() const noexcept { return waited_ns_; }
    // Returns whether another device used a shared resource since this use began. REQUIRES: the use has not ended.
    bool contended() const;

   private:
    friend class ResourceUse;
    struct Held {
      std::string resource;
      std::uint64_t overlaps;  // count at the start
      bool was_shared;
    };
    Use(ResourceUse* owner, std::string user) : owner_(owner), user_(std::move(user)) {}

    ResourceUse* owner_;
    std::string user_;
    std::string turn_;  // resource of the turn; empty: none
    std::uint64_t waited_ns_ = 0;
    std::vector<Held> held_;
  };

  // user: the device id, or another unique name.
  Use begin(const DeviceInfo& device, const std::string& user);
  // For a user that is not a device: `resource` is a resource name.
  Use begin(std::string_view resource, const std::string& user);
  // As begin(), but waits for the device's turn. timeout: another device had the turn until the deadline. cancelled:
  // `stop` (may be null) was set.
  Result<Use> begin_turn(const DeviceInfo& device, Deadline deadline, const std::atomic<bool>* stop);

 private:
  struct Waiter {
    std::uint64_t number = 0;
    std::string device;
  };
  struct Turns {
    std::string device;         // device that has the turn
    std::uint32_t runs = 0;     // its current runs
    std::list<Waiter> waiting;  // in the order of arrival
  };
  struct Resource {
    std::map<std::string, std::uint32_t> users;  // number of uses by user
    std::uint64_t overlaps = 0;                  // how often a second user began
  };

  void count_in(Use& use, const DeviceInfo& device);        // REQUIRES: mutex_
  void count_in(Use& use, std::string_view resource_name);  // REQUIRES: mutex_
  void end_turn(Use& use);                                  // REQUIRES: mutex_

  mutable std::mutex mutex_;
  std::condition_variable turned_;
  std::uint64_t last_number_ = 0;
  std::map<std::string, Turns> turns_;  // by shared_resource
  std::map<std::string, Resource> resources_;
};

// Returns whether two devices share a resource or are the same hardware.
bool share_a_resource(const DeviceInfo& a, const DeviceInfo& b) noexcept;

// ThreadTimes: how long each thread of this process has run, and has waited for a processor.
//
// Thread-safety: a value.
class ThreadTimes {
 public:
  // tasks: a folder with THREAD/schedstat for each thread, as the kernel has it.
  static ThreadTimes now(const std::filesystem::path& tasks = "/proc/self/task");

  // Returns the part of their time that the threads waited, each weighted by how long it ran: a thread that mostly
  // sleeps may wait long for the threads that work, and slows nothing. 0: no thread ran.
  double contention_since(const ThreadTimes& before) const;

 private:
  struct Times {
    std::uint64_t run_ns = 0, wait_ns = 0;
  };
  std::map<std::string, Times> threads_;
};

}  // namespace kiln
