// Comparison of eviction policies on traces.
//
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

#include "cache/eviction_policy.hpp"

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

// What the policies are held against: those that remember every count for ever, those that know the future, and what
// none can exceed.
//
// Thread-safety: none; each call stands alone. Ownership: borrows the trace. Each answers the outcome of a cache of so
// many bytes that may also refuse a newcomer.

// simulate: the hits of a memory tier of a given size for a trace under one policy.
//
// The policy learns of uses exactly, or as from the memory tier: a hit stores the current epoch in its entry, an
// insertion starts a new epoch, and before an eviction the policy gets the used entries in the order of their epochs.
// Thread-safety: none; calls are independent. Ownership: borrows the trace and the policy; each call needs a new
// policy.
struct Outcome {
  std::uint64_t hits = 0;
  std::uint64_t saved_ns = 0;   // build time of the hits
  std::uint64_t evictions = 0;  // refused newcomers are not counted
  std::uint64_t refused = 0;
  double policy_ns_per_miss = 0;  // spent in the policy, all its calls
};

enum class Uses : std::uint8_t { invalid = 0, exact, stamped };

Outcome simulate(const Trace& trace, std::uint64_t capacity_bytes, EvictionPolicy& policy, Uses uses);

// The least often requested leaves, by the counts of all requests so far of all programs, held or not; of equal ones
// the least recently used.
Outcome perfect_lfu(const Trace& trace, std::uint64_t capacity_bytes);
// Likewise by count x build time / bytes.
Outcome perfect_cost(const Trace& trace, std::uint64_t capacity_bytes);
// Belady's: that which is needed again last leaves. The most hits where all programs have one size.
Outcome belady(const Trace& trace, std::uint64_t capacity_bytes);
// The least build time / (bytes x requests until its next) leaves.
Outcome belady_cost(const Trace& trace, std::uint64_t capacity_bytes);

// No cache of so many bytes has more hits, or saves more: each request that a hit answers has held its bytes since the
// program's last one, and all of them together cannot hold more bytes than the capacity over all requests. The two
// figures stand apart: no single cache need reach both.
Outcome upper_bound(const Trace& trace, std::uint64_t capacity_bytes);

// Comparison: every policy and every reference on one trace at one capacity, as a table for people or as JSON.
//
// Thread-safety: none. Ownership: values.

struct ComparedRow {
  std::string name;
  std::string uses;  // "stamped", "exact"; "known" for a reference
  Outcome outcome;
};

struct Comparison {
  std::string trace;
  std::uint64_t requests = 0;
  std::uint64_t programs = 0;
  double part = 0;  // of the working set
  std::uint64_t capacity_bytes = 0;
  std::uint64_t working_set_bytes = 0;
  std::uint64_t possible_hits = 0;
  std::uint64_t possible_ns = 0;
  std::vector<ComparedRow> rows;

  double hit_percent(const ComparedRow& row) const;    // of all requests
  double saved_percent(const ComparedRow& row) const;  // of what is possible
};

Comparison compare(const Trace& trace, double part);

std::string table_of(const Comparison& comparison);
std::string json_of(const std::vector<Comparison>& comparisons);

}  // namespace kiln::bench
