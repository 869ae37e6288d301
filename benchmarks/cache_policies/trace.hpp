// Trace: which programs a run asked for, in order, and what each is: bytes in memory, and what building it cost.
//
// Thread-safety: values. Ownership: values. The text form, one thing a line, '#' begins a comment:
//   key NAME BYTES BUILD_NS       a program; numbered from 0 in the order of these lines
//   pass NAME KEY...              a sequence of programs, by number
//   run PASS...                   the passes that were run, by name
//   ask KEY...                    programs that were asked for outside a pass
// Lines of run and ask, any number of them, follow one another in time.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln::bench {

struct TracedProgram {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t build_ns = 0;
};

struct Trace {
  std::string name;
  std::vector<TracedProgram> programs;
  std::vector<std::uint32_t> requests;  // indices into programs
};

// not_found, io; invalid_argument with file:line.
Result<Trace> read_trace(const std::filesystem::path& file);

// The bytes of all programs that are asked for twice or more: what a cache that forgets nothing would hold with profit.
std::uint64_t working_set_bytes(const Trace& trace);

// Build time that a cache without a bound saves: of every request but each program's first.
std::uint64_t possible_ns(const Trace& trace);
// Requests that such a cache answers.
std::uint64_t possible_hits(const Trace& trace);

// Traces made from a seed: Zipf mixes with scans, and with popularity that moves.
//
// Thread-safety: pure functions. Ownership: values. The same seed gives the same trace with the same standard library's
// Mersenne Twister, which the standard defines; nothing else of it is used.

struct ZipfMix {
  std::string name;
  std::uint32_t programs = 1000;
  double skew = 1.0;                // request probability of rank r: 1 / r^skew
  std::uint32_t requests = 60'000;  // without the scans'
  std::uint32_t scan_every = 0;     // requests; 0: no scans
  std::uint32_t scan_length = 0;    // programs that are asked for once and never again
  std::uint32_t shuffle_every = 0;  // requests after which popularity is dealt anew; 0: never
  std::uint64_t seed = 1;
};

// Sizes are 12 to 160 KB and costs 20 to 1,000 ms, both log-uniform and independent of one another and of popularity.
Trace generate(const ZipfMix& mix);

// The mixes that cache_policies runs.
std::vector<ZipfMix> standard_mixes(std::uint64_t seed);

}  // namespace kiln::bench
