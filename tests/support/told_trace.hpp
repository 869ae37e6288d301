// ToldTrace: a trace's sink that keeps what it is told, for a test to look at.
//
// Thread-safety: as TraceSink, and a test may look while other threads tell: what it is given is a copy.
#pragma once

#include <kiln/trace.hpp>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::test {

struct ToldEvent {
  TraceArea area = TraceArea::invalid;
  std::string name;
  std::uint64_t begin_ns = 0;
  std::optional<std::uint64_t> end_ns;
  std::map<std::string, std::string> words;  // figures that are texts
  std::map<std::string, double> numbers;     // the others
};

struct ToldLink {
  TraceArea area = TraceArea::invalid;
  std::uint64_t at_ns = 0;
  std::string device;
  std::uint64_t fence = 0;
};

class ToldTrace final : public TraceSink {
 public:
  void add_job(std::span<const StageSpan> stages) noexcept override {
    const std::lock_guard lock(mutex_);
    if (stages.front().stage == Stage::job) fences_.push_back(stages.front().fence);
  }
  void add_event(const TraceEvent& event) noexcept override {
    ToldEvent told{event.area, std::string(event.name), event.begin_ns, event.end_ns, {}, {}};
    for (const TraceFigure& figure : event.figures) {
      const std::string name(figure.name);
      if (const auto* text = std::get_if<std::string_view>(&figure.value)) told.words[name] = *text;
      if (const auto* number = std::get_if<double>(&figure.value)) told.numbers[name] = *number;
      if (const auto* count = std::get_if<std::uint64_t>(&figure.value)) {
        told.numbers[name] = static_cast<double>(*count);
      }
    }
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(told));
  }
  void add_link(const TraceLink& link) noexcept override {
    const std::lock_guard lock(mutex_);
    links_.push_back({link.area, link.at_ns, std::string(link.device), link.fence});
  }

  // In the order in which they ended.
  std::vector<ToldEvent> events() const { return copy_of(events_); }
  std::vector<ToldLink> links() const { return copy_of(links_); }
  std::vector<std::uint64_t> fences() const { return copy_of(fences_); }  // of jobs

  std::vector<std::string> names(TraceArea area) const {
    std::vector<std::string> all;
    for (const ToldEvent& event : events()) {
      if (event.area == area) all.push_back(event.name);
    }
    return all;
  }
  // The first of that name; one without a name where there is none.
  ToldEvent first(std::string_view name) const {
    for (const ToldEvent& event : events()) {
      if (event.name == name) return event;
    }
    return {};
  }

 private:
  template <typename T>
  std::vector<T> copy_of(const std::vector<T>& all) const {
    const std::lock_guard lock(mutex_);
    return all;
  }

  mutable std::mutex mutex_;
  std::vector<ToldEvent> events_;
  std::vector<ToldLink> links_;
  std::vector<std::uint64_t> fences_;
};

}  // namespace kiln::test
