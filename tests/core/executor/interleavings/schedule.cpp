#include "core/executor/interleavings/schedule.hpp"

#include <algorithm>

namespace kiln::test {

void Schedule::add(std::function<void()> actor) {
  start();
  threads_.emplace_back([self = shared_from_this(), actor = std::move(actor)] {
    self->begin();
    actor();
    self->end();
  });
}

bool Schedule::go() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return actors_.size() == started_; });
  turn_ = 0;
  actors_[0].turn.notify_one();
  const auto all_ended = [&] { return std::ranges::all_of(actors_, [](const Actor& actor) { return actor.ended; }); };
  changed_.wait(lock, [&] { return stuck_ || all_ended(); });
  const bool over = !stuck_;
  lock.unlock();
  for (std::thread& thread : threads_) over ? thread.join() : thread.detach();
  return over;
}

// Threads are numbered in the order of their starts: the one before has its number when the next is started.
void Schedule::start() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return actors_.size() == started_; });
  ++started_;
}

void Schedule::begin() noexcept {
  std::unique_lock lock(mutex_);
  const std::size_t me = actors_.size();
  Actor& actor = actors_.emplace_back();
  changed_.notify_all();
  actor.turn.wait(lock, [&] { return turn_ == me; });
}

void Schedule::end() noexcept {
  std::unique_lock lock(mutex_);
  actors_[turn_].ended = true;
  ++moves_;
  give_on(lock);
  changed_.notify_all();
}

void Schedule::step() noexcept {
  std::unique_lock lock(mutex_);
  ++moves_;
  ++actors_[turn_].moved;
  give_on(lock);
}

void Schedule::sleep(const void* place, std::unique_lock<std::mutex>& lock) noexcept {
  {
    std::unique_lock own(mutex_);
    actors_[turn_].sleeps_at = place;
    lock.unlock();
    give_on(own);
  }
  lock.lock();
}

void Schedule::wake(const void* place, Whom whom) noexcept {
  const std::lock_guard lock(mutex_);
  for (Actor& actor : actors_) {
    if (actor.sleeps_at != place) continue;
    actor.sleeps_at = nullptr;
    if (whom == Whom::one) return;
  }
}

void Schedule::wait_until(const std::function<bool()>& done, bool for_long) {
  std::unique_lock lock(mutex_);
  Actor& me = actors_[turn_];
  me.awaits = &done;
  me.for_long = for_long;
  me.others_moved = moves_ - me.moved;
  give_on(lock);
  me.awaits = nullptr;
}

bool Schedule::may_go_on(const Actor& actor) const {
  if (actor.ended || actor.sleeps_at != nullptr) return false;
  if (actor.awaits == nullptr || (*actor.awaits)()) return true;
  return actor.for_long && moves_ - actor.moved != actor.others_moved;
}

void Schedule::give_on(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return actors_.size() == started_; });
  const std::size_t me = turn_;
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    const std::size_t number = (me + i) % actors_.size();
    if (may_go_on(actors_[number])) able.push_back(number);
  }
  if (const auto last = std::ranges::find(able, last_); last != able.end()) std::rotate(last, last + 1, able.end());
  if (able.empty() || moves_ > most_moves) {
    const bool all_ended = std::ranges::all_of(actors_, [](const Actor& actor) { return actor.ended; });
    stuck_ = !all_ended;
    turn_ = nobody;
    changed_.notify_all();
  } else {
    std::size_t passed_over = 0;
    if (able.size() > 1) {
      if (points_.size() < choices_.size()) passed_over = std::min(choices_[points_.size()], able.size() - 1);
      points_.push_back(able.size());
    }
    turn_ = able[passed_over];
    if (turn_ != me) actors_[turn_].turn.notify_one();
  }
  if (!actors_[me].ended) actors_[me].turn.wait(lock, [&] { return turn_ == me; });
}

}  // namespace kiln::test
