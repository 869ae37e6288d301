// Exposition: figures as Prometheus reads them, in its text format 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// Names and units are the caller's: base units, `_total` behind counters. Thread-safety: one thread at a time.
// Ownership: values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

class Exposition {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  // What follows are samples of it. type: "counter", "gauge", "histogram".
  void metric(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::initializer_list<Label> labels, std::uint64_t value);
  void sample(std::initializer_list<Label> labels, double value);
  // Of a metric of type histogram. bounds: the upper ones, rising, without the last, which is infinite; counts: of each
  // bucket alone, one more than bounds.
  void histogram(std::initializer_list<Label> labels, std::span<const double> bounds,
                 std::span<const std::uint64_t> counts, double sum);
  // A metric of one sample without labels.
  template <class Number>
  void single(std::string_view name, std::string_view type, std::string_view help, Number value) {
    metric(name, type, help);
    sample({}, value);
  }
  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, std::span<const Label> labels, const std::string& value);

  std::string name_;
  std::string text_;
};

}  // namespace kiln
