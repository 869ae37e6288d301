// What a benchmark program has measured, in the form that `kiln bench` reads (docs/benchmarks.md): for each figure the
// samples of Kiln and of its peer, as medians and quartiles, and the ratio of the two.
//
// Thread-safety: none. Ownership: values. What cannot be written throws std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

enum class Better { invalid = 0, less, more };

struct Peer {
  std::string name;
  std::vector<double> samples;  // as many as Kiln's where both were taken in turns: ratios are then of one round
};

struct Target {
  enum class Of { invalid = 0, kiln, ratio };  // Kiln's median; the ratio's
  Of of = Of::invalid;
  double value = 0;
};

struct Figure {
  std::string id;    // "cache.hit.guard", with the peer's name behind it where there are several: ".../mutex_lru"
  std::string name;  // as a person reads it
  std::string unit;
  Better better = Better::less;
  std::vector<double> kiln;  // REQUIRES: not empty
  std::optional<Peer> peer = {};
  std::optional<Target> target = {};
  std::optional<bool> verified = {};  // whether outputs were compared; nothing where there are none
  bool stable = false;                // a count: the same on every machine and in every run
  std::string group = {};             // what figures of one table row or one layer have in common
  std::string device = {};
};

// So far into the sorted samples: 0.5 for the median. Between two of them it is interpolated, geometrically if both are
// above 0: the median of ratios is then 1 / the median of their inverses. REQUIRES: not empty.
double quantile(std::vector<double> of, double share);
double geometric_mean(const std::vector<double>& of);

class FigureFile {
 public:
  // Takes `--figures FILE` out of a program's words; without it nothing is written and everything else works alike.
  static FigureFile of_words(int& count, char** words);

  void add(Figure figure);
  // Why the program could not measure here: no such device, no such library. A program that says so ends with 0.
  void skip(std::string why) { skipped_ = std::move(why); }
  // The version of what was measured against: ("onednn", "2.6.3").
  void version(const std::string& of, const std::string& what) { versions_[of] = what; }
  void write() const;
  // Each figure on a line of standard output, for programs that have no table of their own.
  void print() const;

 private:
  std::filesystem::path path_;  // empty: not asked for
  std::vector<Figure> figures_;
  std::map<std::string, std::string> versions_;
  std::string skipped_;
};

// How many system calls a piece of work makes, counted by the kernel: the work runs in a child that this process
// traces.
//
// Thread-safety: call it before there is a second thread. Ownership: the child is gone when it answers.

// Given to the work: calls between begin() and end() are counted, of the thread that calls both.
class SystemCallSpan {
 public:
  void begin() const;
  void end() const;
};

// One count a span, in order. Nothing where this process may not trace, with the reason in `why`. Throws
// std::runtime_error where the work fails.
std::optional<std::vector<std::uint64_t>> count_system_calls(const std::function<void(const SystemCallSpan&)>& work,
                                                             std::string& why);

}  // namespace kiln::bench
