// ChromeTraceText: a ChromeTrace as JSON. Written straight into a text: a long run tells millions of spans, and as a
// tree of values they would not fit.
//
// Thread-safety: none; the trace's lock is held. Ownership: borrows the trace.
#pragma once

#include <kiln/chrome_trace.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class ChromeTraceText {
 public:
  explicit ChromeTraceText(const ChromeTrace& trace) : trace_(trace) {}
  std::string text();

 private:
  using Lane = ChromeTrace::Lane;
  // What is to be written, by its time; what begins earlier or, with it, lasts longer comes first.
  struct Item {
    enum class Kind : std::uint8_t { stage, event, departure, arrival } kind = Kind::stage;
    std::size_t index = 0;         // in the trace's jobs, events or links
    Stage stage = Stage::invalid;  // of a job
    std::uint64_t begin_ns = 0, length_ns = 0;
  };
  struct Place {
    std::size_t pid = 0, tid = 0;
  };

  void collect();
  // One id for each lane of the whole file, so that no reader takes two lanes for one.
  void number_lanes();
  void name_lanes();
  void write(const Item& item);
  void write_stage(const ChromeTrace::Job& job, const Item& item);
  void write_event(const ChromeTrace::Event& event);
  void write_end_of_link(std::size_t link, const Place& place, std::uint64_t at_ns, bool arrives);

  void begin(std::string_view phase, std::string_view quoted_name, const Place& place);
  void time(std::string_view name, std::uint64_t ns);
  void meta(std::string_view what, const Place& place, std::string_view name, std::string_view value);
  Place place_of(const ChromeTrace::Job& job) const { return slots_.at({job.device, job.slot}); }

  const ChromeTrace& trace_;
  std::vector<Item> items_;
  std::vector<const ChromeTrace::Job*> job_of_link_;                // nullptr: none was told
  std::map<std::pair<std::uint32_t, std::uint32_t>, Place> slots_;  // by device and slot
  std::map<Lane, Place> lanes_;
  std::vector<std::string> labels_;  // quoted
  std::uint64_t origin_ns_ = 0;
  std::string out_;
  bool any_ = false;
};

}  // namespace kiln
