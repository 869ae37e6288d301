// What a dispatch costs the thread that submits it to the simulated AMD card: through the plugin amdgpu_pm4, and, where
// Vulkan is installed, through RADV on the same card, in turns. A figure is the wall of one submission less what it
// spends in the kernel's interface, divided by its dispatches. Kiln's has in it arguments, packets, buffer list and the
// check before the submission; RADV's the recording of a command buffer and its submission.
//
// usage: kiln simulate [--target TARGET] -- pm4_submission [ROUNDS] [--figures FILE]
// in order: all dispatches add to one buffer, and each has a barrier before it. apart: to 16 buffers in turns.
//
// The simulation shares the cores, and its time says nothing: only the submitting thread's is told. Every sum is
// checked.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "figures.hpp"
#include "pm4/submitter.hpp"

namespace {

using namespace kiln::bench;

void print(const std::string& order, std::size_t dispatches, const std::string& who, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  std::printf("%-10s%12zu  %-8s%10.3f%10.3f%10.3f\n", order.c_str(), dispatches, who.c_str(), us.front(),
              us[us.size() / 2], us[us.size() * 95 / 100]);
}

void tell(FigureFile& file, const std::string& order, std::size_t dispatches,
          const std::vector<std::vector<double>>& us) {
  Figure figure;
  figure.id = "pm4.submission";
  figure.name = "a dispatch, on the submitting thread";
  figure.unit = "us";
  figure.kiln = us.front();
  if (us.size() > 1) {
    figure.id += "/radv";
    figure.peer = Peer{"RADV on the same card", us[1]};
  }
  if (dispatches > 1) figure.target = Target{Target::Of::kiln, 2};
  figure.verified = true;  // or check() has thrown
  figure.group = std::to_string(dispatches) + (dispatches == 1 ? " dispatch " : " dispatches ") + order;
  figure.device = "amdgpu:0";
  file.add(std::move(figure));
}

// The kernel is called so often for a submission of one dispatch and of many.
void count_calls(FigureFile& file, Submitter& kiln) {
  for (const std::size_t dispatches : {1u, 1024u}) {
    (void)kiln.submit(dispatches, 1);  // what is made once is made
    std::vector<double> calls;
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = kernel_calls();
      (void)kiln.submit(dispatches, 1);
      calls.push_back(static_cast<double>(kernel_calls() - before));
    }
    kiln.check();
    Figure figure;
    figure.id = "pm4.ioctls";
    figure.name = "calls of ioctl for a submission and its wait, on the calling thread";
    figure.unit = "calls";
    figure.kiln = calls;
    figure.verified = true;
    figure.stable = true;
    figure.group = std::to_string(dispatches) + (dispatches == 1 ? " dispatch" : " dispatches");
    figure.device = "amdgpu:0";
    file.add(std::move(figure));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  FigureFile file = FigureFile::of_words(argc, argv);
  const std::size_t rounds = argc > 1 ? std::max(1ul, std::strtoul(argv[1], nullptr, 10)) : 200;
  std::string absent;
  std::vector<std::unique_ptr<Submitter>> sides;
  sides.push_back(make_kiln_submitter(KilnPlugin::amdgpu_pm4));
  if (auto radv = make_radv_submitter(absent)) sides.push_back(std::move(radv));
  for (const auto& side : sides) std::printf("%s\n", side->name().c_str());
  if (!absent.empty()) std::printf("no RADV beside it: %s\n", absent.c_str());
  std::printf("%zu rounds, us a dispatch on the submitting thread, less the kernel's part\n", rounds);
  std::printf("%-10s%12s  %-8s%10s%10s%10s\n", "", "dispatches", "", "least", "median", "95 %");
  for (const std::size_t buffers : {std::size_t{1}, most_buffers}) {
    for (const std::size_t dispatches : {1u, 16u, 256u, 1024u}) {
      std::vector<std::vector<double>> us(sides.size());
      const std::size_t warm_up = rounds / 10 + 1;
      for (std::size_t round = 0; round < warm_up + rounds; ++round) {
        for (std::size_t s = 0; s < sides.size(); ++s) {
          const std::uint64_t ns = sides[s]->submit(dispatches, buffers);
          if (round >= warm_up) us[s].push_back(static_cast<double>(ns) / 1e3 / static_cast<double>(dispatches));
        }
      }
      for (std::size_t s = 0; s < sides.size(); ++s) {
        sides[s]->check();
        print(buffers == 1 ? "in order" : "apart", dispatches, s == 0 ? "kiln" : "radv", us[s]);
      }
      tell(file, buffers == 1 ? "to one buffer" : "to 16 buffers", dispatches, us);
    }
  }
  count_calls(file, *sides.front());
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "pm4_submission: %s\n", error.what());
  return 1;
}
