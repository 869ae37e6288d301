// What a dispatch of a trivial kernel costs the thread that submits it, beside raw calls of Vulkan, in turns. Two
// programs: pm4_submission, through the plugin amdgpu_pm4 on the simulated AMD card, beside RADV on the same card where
// Vulkan is installed; vulkan_submission, through the plugin vulkan, on the same driver. A figure is the wall of one
// submission, less what it spends in the kernel's interface on a simulated card, divided by its dispatches.
//
// usage: kiln simulate [--target TARGET] -- pm4_submission [ROUNDS] [--figures FILE]
//        [kiln simulate [--target TARGET] --] vulkan_submission [ROUNDS] [--figures FILE]; VK_ICD_FILENAMES chooses
// anew: no two of 199 submissions in a row are equal, and both sides record each. again: all are equal; the raw calls
// record once and submit the same commands. one buffer: each dispatch has a barrier before it. 16 buffers: in turns,
// with a barrier before every sixteenth.
//
// A simulation shares the cores, and its time says nothing: only the submitting thread's is told. Every sum is checked.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures.hpp"
#include "pm4/submitter.hpp"

namespace {

using namespace kiln::bench;

#ifdef KILN_BENCH_VULKAN
constexpr const char *program = "vulkan_submission", *area = "vulkan", *peer_id = "raw", *device = "vulkan:0",
                     *peer_name = "raw calls of Vulkan";
std::unique_ptr<Submitter> make_ours() { return make_kiln_submitter(KilnPlugin::vulkan); }
std::unique_ptr<Submitter> make_theirs(Commands commands, std::string&) { return make_raw_vulkan_submitter(commands); }
#else
constexpr const char *program = "pm4_submission", *area = "pm4", *peer_id = "radv", *device = "amdgpu:0",
                     *peer_name = "RADV on the same card";
std::unique_ptr<Submitter> make_ours() { return make_kiln_submitter(KilnPlugin::amdgpu_pm4); }
std::unique_ptr<Submitter> make_theirs(Commands commands, std::string& absent) {
  return make_radv_submitter(commands, absent);
}
#endif

constexpr std::size_t different = 199;  // sizes of submissions that are recorded anew: more than a plugin keeps

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

void measure(FigureFile& file, Commands commands, std::size_t dispatches, std::size_t buffers, std::size_t rounds) {
  const bool anew = commands == Commands::anew;
  // New ones each time: sizes of one group are among those of another.
  std::string absent;
  const auto ours = make_ours(), theirs = make_theirs(commands, absent);
  if (anew && buffers == 1 && dispatches == 1) {
    std::printf("%s; %s\n", ours->name().c_str(), theirs != nullptr ? theirs->name().c_str() : absent.c_str());
  }
  std::vector<double> ours_us, theirs_us;
  const std::size_t warm_up = anew ? different : rounds / 10 + 2;
  for (std::size_t round = 0; round < warm_up + rounds; ++round) {
    const std::size_t count = dispatches + (anew ? round % different : 0);
    const auto us_of = [&](Submitter& side) {
      return static_cast<double>(side.submit(count, buffers)) / 1e3 / static_cast<double>(count);
    };
    const double our_us = us_of(*ours), their_us = theirs != nullptr ? us_of(*theirs) : 0;
    if (round < warm_up) continue;
    ours_us.push_back(our_us);
    if (theirs != nullptr) theirs_us.push_back(their_us);
  }
  ours->check();
  std::printf("%-6s%5zu buffers%6zu dispatches: kiln %8.3f us, least %8.3f", anew ? "anew" : "again", buffers,
              dispatches, median(ours_us), std::ranges::min(ours_us));
  Figure figure;
  figure.id = std::string(area) + ".submission";
  if (theirs != nullptr) {
    theirs->check();
    std::printf("; raw %8.3f us, least %8.3f; %5.2fx", median(theirs_us), std::ranges::min(theirs_us),
                median(ours_us) / median(theirs_us));
    figure.id += std::string("/") + peer_id;
    figure.peer = Peer{peer_name, theirs_us};
  }
  std::puts("");
  figure.name = "a dispatch, on the submitting thread";
  figure.unit = "us";
  figure.kiln = ours_us;
  figure.verified = true;  // or check() has thrown
  figure.group = std::string(anew ? "anew, " : "again, ") + std::to_string(dispatches) +
                 (dispatches == 1 ? " dispatch to " : " dispatches to ") + std::to_string(buffers) +
                 (buffers == 1 ? " buffer" : " buffers");
  figure.device = device;
  file.add(std::move(figure));
}

#ifndef KILN_BENCH_VULKAN
// The kernel is called so often for a submission of one dispatch and of many.
void count_calls(FigureFile& file) {
  const auto kiln = make_ours();
  for (const std::size_t dispatches : {1u, 1024u}) {
    (void)kiln->submit(dispatches, 1);  // what is made once is made
    (void)kiln->submit(dispatches, 1);
    std::vector<double> calls;
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = kernel_calls();
      (void)kiln->submit(dispatches, 1);
      calls.push_back(static_cast<double>(kernel_calls() - before));
    }
    kiln->check();
    Figure figure;
    figure.id = "pm4.ioctls";
    figure.name = "calls of ioctl for a submission and its wait, on the calling thread";
    figure.unit = "calls";
    figure.kiln = calls;
    figure.verified = true;
    figure.stable = true;
    figure.group = std::to_string(dispatches) + (dispatches == 1 ? " dispatch" : " dispatches");
    figure.device = device;
    file.add(std::move(figure));
  }
}
#else
void count_calls(FigureFile&) {}
#endif

}  // namespace

int main(int argc, char** argv) try {
  FigureFile file = FigureFile::of_words(argc, argv);
  const std::size_t rounds = argc > 1 ? std::max(1ul, std::strtoul(argv[1], nullptr, 10)) : 200;
  std::printf("%zu rounds, medians a dispatch\n", rounds);
  for (const Commands commands : {Commands::anew, Commands::again}) {
    for (const std::size_t buffers : {std::size_t{1}, most_buffers}) {
      for (const std::size_t dispatches : {1u, 16u, 1024u}) measure(file, commands, dispatches, buffers, rounds);
    }
  }
  count_calls(file);
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", program, error.what());
  return 1;
}
