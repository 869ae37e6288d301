// MetricsReading: the text of Runtime::metrics() as numbers that can be asked for.
//
// Thread-safety: a value. Ownership: none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::host {

class MetricsReading {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  MetricsReading() = default;
  // What is no sample in Prometheus' text format is passed over.
  explicit MetricsReading(std::string_view text);

  // Of all samples of that name that have all these labels; 0 where there is none.
  double sum(std::string_view name, const std::vector<Label>& with = {}) const;
  // The values that a label has among the samples of a name, each once, in their order in the text.
  std::vector<std::string> values_of(std::string_view name, std::string_view label) const;

 private:
  struct Sample {
    std::map<std::string, std::string, std::less<>> labels;
    double value = 0;
  };
  std::map<std::string, std::vector<Sample>, std::less<>> samples_;
};

}  // namespace kiln::host
