// MetricsReading: parses the text of Runtime::metrics() and returns its numbers.
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
  // Ignores lines that are not samples in the Prometheus text format.
  explicit MetricsReading(std::string_view text);

  // Returns the sum of all samples with that name and all these labels; 0: none.
  double sum(std::string_view name, const std::vector<Label>& with = {}) const;
  // Returns the values of a label among the samples of a name, each once, in the order of the text.
  std::vector<std::string> values_of(std::string_view name, std::string_view label) const;

 private:
  struct Sample {
    std::map<std::string, std::string, std::less<>> labels;
    double value = 0;
  };
  std::map<std::string, std::vector<Sample>, std::less<>> samples_;
};

}  // namespace kiln::host
