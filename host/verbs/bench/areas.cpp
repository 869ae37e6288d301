#include "verbs/bench/areas.hpp"

namespace kiln::host {
namespace {

using std::chrono::seconds;

constexpr BenchArea areas[] = {
    {"cache", "Program cache"},
    {"start", "Whole processes, from outside"},
    {"conv", "Convolutions of four networks"},
    {"executor", "Executor"},
    {"selector", "Device selector, on simulated worlds"},
    {"tuner", "Tuner"},
    {"pm4", "Submissions by PM4 and the simulated card"},
};

constexpr BenchProgram programs[] = {
    {"cache",
     "cache_hits",
     "--benchmark_min_time=0.05 --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true",
     "--benchmark_min_time=0.02 --benchmark_repetitions=3 --benchmark_enable_random_interleaving=true",
     {},
     seconds(45),
     seconds(12)},
    {"cache", "cache_disk", "2000", "500", {}, seconds(15), seconds(5)},
    {"cache", "cache_one_thread", "5", "1", {}, seconds(15), seconds(4)},
    {"cache", "cache_processes", "synthetic 3", "synthetic 1 20", {}, seconds(15), seconds(3)},
    {"cache", "cache_policies", "--part 0.25", "--part 0.25", {}, seconds(15), seconds(15)},
    {"cache", "cache_counts", "", "", "", seconds(2), seconds(2)},
    {"start", "start_processes", "large 7 100", "large 3 4", {}, seconds(100), seconds(10)},
    {"start", "start_processes", "large 9 10", "large 2 10", {}, seconds(35), seconds(8)},
    {"start", "start_processes", "large 15 1", "large 3 1", {}, seconds(15), seconds(5)},
    {"start", "start_processes", "simple 7 100", "simple 2 30", {}, seconds(60), seconds(10)},
    {"start", "start_processes", "simple 9 20", "simple 2 20", {}, seconds(35), seconds(8)},
    {"start", "start_processes", "command 41", "command 5", {}, seconds(4), seconds(1)},
    {"conv",
     "conv_tables",
     "--rounds 5",
     "--rounds 3 --every 12 resnet50 mobilenet_v2",
     {},
     seconds(60),
     seconds(20),
     BenchNeeds::tuning_database,
     2},
    {"executor", "executor_overhead",
     "--benchmark_min_time=0.2 --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true",
     "--benchmark_min_time=0.02 --benchmark_repetitions=3 --benchmark_enable_random_interleaving=true",
     "--benchmark_min_time=0.05 --benchmark_filter=(streamed|replayed)/wraps:0", seconds(20), seconds(3)},
    {"executor", "executor_overlap", "overlap tiny", "overlap tiny", {}, seconds(10), seconds(10)},
    {"executor", "cpu_contention", "4", "2", {}, seconds(30), seconds(20), BenchNeeds::nothing, 2},
    {"selector", "selector", "--seeds 30", "--seeds 3", {}, seconds(20), seconds(2)},
    {"tuner", "tuner", "--layers 4 --budget 8", "--layers 1 --budget 3", {}, seconds(60), seconds(10)},
    {"pm4", "pm4_submission", "100", "10", "1", seconds(20), seconds(5), BenchNeeds::simulated_card},
    {"pm4", "interpreter", "7", "2", {}, seconds(15), seconds(5)},
};

}  // namespace

std::span<const BenchArea> bench_areas() noexcept { return areas; }
std::span<const BenchProgram> bench_programs() noexcept { return programs; }

}  // namespace kiln::host
