// What a dispatch of a trivial kernel costs the thread that submits it: through the plugin vulkan and by raw calls of
// Vulkan on the same driver, in turns. A figure is the wall of one submission, less what it spends in the kernel's
// interface on a simulated card, divided by its dispatches.
//
// usage: vulkan_submission [ROUNDS] [--figures FILE]; VK_ICD_FILENAMES chooses the driver
//        kiln simulate [--target TARGET] -- vulkan_submission …
// anew: no two of 199 submissions in a row are equal, and both sides record each. again: all are equal; the raw calls
// record once and submit the same commands. one buffer: each dispatch has a barrier before it. 16 buffers: in turns,
// with a barrier before every sixteenth.
//
// Every sum is checked.
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

constexpr std::size_t different = 199;  // sizes of submissions that are recorded anew: more than the plugin keeps

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void measure(FigureFile& file, Commands commands, std::size_t rounds) {
  const bool anew = commands == Commands::anew;
  for (const std::size_t buffers : {std::size_t{1}, most_buffers}) {
    for (const std::size_t dispatches : {1u, 16u, 1024u}) {
      // New ones each time: sizes of one group are among those of another.
      const auto kiln = make_kiln_submitter(KilnPlugin::vulkan);
      const auto raw = make_raw_vulkan_submitter(commands);
      std::vector<double> ours, theirs;
      const std::size_t warm_up = anew ? different : rounds / 10 + 2;
      for (std::size_t round = 0; round < warm_up + rounds; ++round) {
        const std::size_t count = dispatches + (anew ? round % different : 0);
        const double scale = 1e3 * static_cast<double>(count);
        const auto kiln_ns = static_cast<double>(kiln->submit(count, buffers));
        const auto raw_ns = static_cast<double>(raw->submit(count, buffers));
        if (round < warm_up) continue;
        ours.push_back(kiln_ns / scale);
        theirs.push_back(raw_ns / scale);
      }
      kiln->check();
      raw->check();
      if (buffers == 1 && dispatches == 1) std::printf("%s; %s\n", kiln->name().c_str(), raw->name().c_str());
      std::printf("%-6s%5zu buffers%6zu dispatches: kiln %8.3f us, raw %8.3f us, %5.2fx; least %8.3f, %8.3f\n",
                  anew ? "anew" : "again", buffers, dispatches, median(ours), median(theirs),
                  median(ours) / median(theirs), std::ranges::min(ours), std::ranges::min(theirs));
      Figure figure;
      figure.id = "vulkan.submission/raw";
      figure.name = "a dispatch, on the submitting thread";
      figure.unit = "us";
      figure.kiln = ours;
      figure.peer = Peer{"raw calls of Vulkan", theirs};
      figure.verified = true;  // or check() has thrown
      figure.group = std::string(anew ? "anew, " : "again, ") + std::to_string(dispatches) + " dispatches to " +
                     std::to_string(buffers) + " buffers";
      figure.device = "vulkan:0";
      file.add(std::move(figure));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  FigureFile file = FigureFile::of_words(argc, argv);
  const std::size_t rounds = argc > 1 ? std::max(1ul, std::strtoul(argv[1], nullptr, 10)) : 200;
  std::printf("%zu rounds, medians a dispatch\n", rounds);
  for (const Commands commands : {Commands::anew, Commands::again}) measure(file, commands, rounds);
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "vulkan_submission: %s\n", error.what());
  return 1;
}
