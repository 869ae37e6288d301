// cache_policies [TRACE...] [--part P]... [--seed N] [--json] [--figures FILE]: every eviction policy on traces, beside
// perfect LFU, Belady's and an upper bound. Without a trace it runs the recorded ones and the generated mixes.
#include "cache/policy_comparison.hpp"
#include "figures.hpp"
#include "places.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string_view>

namespace {

using namespace kiln::bench;

struct Options {
  std::vector<std::filesystem::path> traces;
  std::vector<double> parts;
  std::uint64_t seed = 1;
  bool json = false;
};

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&] {
      if (i + 1 == count) throw std::runtime_error(std::string(word) + " needs a value");
      return words[++i];
    };
    if (word == "--json") {
      options.json = true;
    } else if (word == "--part") {
      options.parts.push_back(std::strtod(value(), nullptr));
      if (!(options.parts.back() > 0)) throw std::runtime_error("--part: expected a number above 0");
    } else if (word == "--seed") {
      options.seed = std::strtoull(value(), nullptr, 10);
    } else if (word.starts_with("-")) {
      throw std::runtime_error(std::string(word) + ": expected --part, --seed or --json");
    } else {
      options.traces.emplace_back(word);
    }
  }
  if (options.parts.empty()) options.parts = {0.125, 0.25, 0.5};
  return options;
}

std::vector<Trace> load(const Options& options) {
  std::vector<std::filesystem::path> files = options.traces;
  if (files.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(traces_folder())) {
      if (entry.path().extension() == ".trace") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  std::vector<Trace> traces;
  for (const std::filesystem::path& file : files) {
    auto trace = read_trace(file);
    if (!trace) throw std::runtime_error(trace.error().text());
    traces.push_back(std::move(*trace));
  }
  if (options.traces.empty()) {
    for (const ZipfMix& mix : standard_mixes(options.seed)) traces.push_back(generate(mix));
  }
  return traces;
}

// Build time that each policy saves, with uses reported as the memory tier reports them, beside what "lru" saves.
void tell(const Comparison& comparison, FigureFile& file) {
  const auto saved = [&](const std::string& name, const char* uses) {
    const auto row = std::ranges::find_if(
        comparison.rows, [&](const ComparedRow& each) { return each.name == name && each.uses == uses; });
    return comparison.saved_percent(*row);
  };
  for (const char* policy : {"sieve", "cost"}) {
    Figure figure;
    figure.id = std::string("cache.policy.") + policy + "/lru";
    figure.name = std::string("build time saved by policy ") + policy;
    figure.unit = "%";
    figure.better = Better::more;
    figure.kiln = {saved(policy, "stamped")};
    figure.peer = Peer{"lru", {saved("lru", "stamped")}};
    char group[96];
    std::snprintf(group, sizeof group, "%s at %g of the working set", comparison.trace.c_str(), comparison.part);
    figure.group = group;
    file.add(std::move(figure));
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    auto file = FigureFile::of_words(count, words);
    const Options options = parse(count, words);
    std::vector<Comparison> comparisons;
    for (const Trace& trace : load(options)) {
      for (const double part : options.parts) {
        comparisons.push_back(compare(trace, part));
        tell(comparisons.back(), file);
        if (!options.json) std::printf("%s\n", table_of(comparisons.back()).c_str());
      }
    }
    if (options.json) std::printf("%s", json_of(comparisons).c_str());
    file.write();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cache_policies: %s\n", error.what());
    return 2;
  }
}
