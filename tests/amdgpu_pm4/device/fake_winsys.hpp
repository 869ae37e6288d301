// A Winsys without a kernel: buffers of host memory at invented addresses, and a GPU that follows the packets of each
// submission as far as the queue depends on them: it counts dispatches, stamps its clock, and passes points; or it
// hangs, is reset, refuses, as a test asks.
//
// Thread-safety: as Winsys; `Plan` is set while nothing is submitted. Ownership: what it makes shares its state.
#pragma once

#include <cerrno>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4::fake {

struct Gpu {
  std::mutex mutex;
  std::condition_variable changed;

  // What is to happen.
  bool held = false;                       // submissions wait until run_held()
  std::string fault;                       // what the device says of a hang
  std::optional<std::uint32_t> hang_at;    // the dispatch, counted from 0 over all submissions, that never ends
  int hang_error = -ECANCELED;             // how that ends; ENODATA: its waves are killed, and what follows runs
  bool lose_vram = false;                  // in the reset after the hang
  bool runs_again = false;                 // after a reset, what was in flight in a context without guilt
  bool innocent = false;                   // the kernel driver does not say whose doing the reset is
  std::vector<int> submit_errors;          // what the next submissions answer, one each; 0: none
  std::optional<Status> allocation_error;  // what create_buffer answers
  std::uint64_t most_buffers = ~0ull;      // that live at once: beyond, memory is short

  // What happened.
  std::uint32_t submissions = 0;
  std::uint32_t dispatches = 0;
  std::uint32_t barriers = 0;
  std::uint32_t contexts = 0;
  std::vector<std::vector<std::uint32_t>> lists;  // the buffer list of each submission
  std::vector<std::uint64_t> arguments;           // the addresses that dispatches are given, in order
  std::vector<std::vector<std::uint64_t>> waits;  // the points of other timelines that each waits for
  std::map<std::uint32_t, GpuAccess> buffers;     // that live, by handle
  std::uint64_t clock = 1000;

  // Ends what was held, in order.
  void run_held();

  struct Memory {
    std::uint64_t address = 0;
    std::vector<std::uint64_t> words;
  };
  struct Job {
    std::uint64_t point = 0;
    std::vector<CommandRange> commands;
    std::uint32_t context = 0;
    std::uint64_t number = 0;
  };
  // With the mutex held.
  void run(const Job& job);
  bool follow(std::uint64_t address, std::uint32_t bytes);  // false: it hung
  std::byte* at(std::uint64_t address, std::uint64_t bytes);

  std::map<std::uint32_t, Memory> memory;  // by handle
  std::uint64_t next_address = 0x100000000;
  std::uint32_t next_handle = 1;
  std::vector<Job> waiting;
  std::uint64_t passed = 0;
  bool killed = false;                         // waves of the job that runs
  std::map<std::uint32_t, ResetState> states;  // by context
  std::map<std::pair<std::uint32_t, std::uint64_t>, Outcome> outcomes;
};

NodeFacts navi31_facts();
std::unique_ptr<Winsys> make_winsys(std::shared_ptr<Gpu> gpu, NodeFacts facts = navi31_facts());

}  // namespace kiln::amdgpu_pm4::fake
