// Schedule: lets one of several real threads run at a time and decides at each step who goes on: he who runs, or where
// he cannot, the next in turn; but for the choices that it is given. The same choices give the same run.
//
// A thread that nobody can wake any more stays: the run is stuck, and its threads, which cannot be ended, are left.
// Thread-safety: as SchedulingHooks; go() and what it found by the thread that made it. Ownership: kept by its threads.
#pragma once

#include "executor/timeline.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kiln::test {

class Schedule final : public executor::SchedulingHooks, public std::enable_shared_from_this<Schedule> {
 public:
  // choices[i]: at the i-th point where more than one may go on, so many are passed over.
  explicit Schedule(std::vector<std::size_t> choices) : choices_(std::move(choices)) {}

  void add(std::function<void()> actor);
  // One whose turn comes after that of all others.
  void add_last(std::function<void()> actor) {
    last_ = started_;
    add(std::move(actor));
  }
  // Lets all of them run. true: to their ends.
  bool go();
  // By an actor: until it is so. for_long: or until the others have moved, as a wait with a deadline ends at some time.
  void await(const std::function<bool()>& done) { wait_until(done, false); }
  void await_for_long(const std::function<bool()>& done) { wait_until(done, true); }

  // How many might have gone on at each point with more than one.
  const std::vector<std::size_t>& points() const noexcept { return points_; }

  void start() noexcept override;
  void begin() noexcept override;
  void end() noexcept override;
  void step() noexcept override;
  void sleep(const void* place, std::unique_lock<std::mutex>& lock) noexcept override;
  void wake(const void* place, Whom whom) noexcept override;

 private:
  struct Actor {
    std::condition_variable turn;
    const void* sleeps_at = nullptr;
    const std::function<bool()>* awaits = nullptr;
    bool for_long = false;
    std::size_t others_moved = 0;  // when it began to wait
    std::size_t moved = 0;
    bool ended = false;
  };
  static constexpr std::size_t nobody = SIZE_MAX;
  static constexpr std::size_t most_moves = 20'000;  // nobody takes so many who gets anywhere

  void wait_until(const std::function<bool()>& done, bool for_long);
  bool may_go_on(const Actor& actor) const;
  // The caller has its turn, gives it on, and has it again; or has ended.
  void give_on(std::unique_lock<std::mutex>& lock);

  const std::vector<std::size_t> choices_;
  std::vector<std::size_t> points_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Actor> actors_;
  std::vector<std::thread> threads_;
  std::size_t started_ = 0;
  std::size_t moves_ = 0;
  std::size_t turn_ = nobody;
  std::size_t last_ = nobody;
  bool stuck_ = false;
};

}  // namespace kiln::test
