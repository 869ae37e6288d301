// tuner: what `kiln tune` finds for a few layers, beside the plain kernel with constants, and what is kept of it.
//
// usage: tuner [--figures FILE] [--layers N] [--budget SECONDS]
// `kiln tune` itself is run, on OpenGL, with a cache of its own: it compares every variant's whole output with the
// reference, and measures the winner and the plain kernel in rounds. Then it is run again: it goes on from what
// is known. A rate's samples are what the two runs tell. Layers: of ResNet-50, 3x3 and 1x1.
#include "figures.hpp"
#include "layer_table.hpp"
#include "places.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kiln_json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace {

using namespace kiln;
using namespace kiln::bench;
namespace fs = std::filesystem;

constexpr const char* layer_names[] = {"res3_3x3", "res2_1x1a", "res4_3x3", "res5_3x3"};

struct Choices {
  std::size_t layers = std::size(layer_names);
  int budget_s = 8;
};

void write_jobs(const fs::path& file, const Choices& choices) {
  const std::vector<Layer> table = read_layer_table((tables_folder() / "resnet50.csv").string());
  std::ofstream out(file);
  for (std::size_t i = 0; i < choices.layers; ++i) {
    const auto layer = std::ranges::find(table, layer_names[i], &Layer::name);
    if (layer == table.end()) throw std::runtime_error(std::string("resnet50.csv has no layer ") + layer_names[i]);
    const Conv2dSpec& spec = layer->spec;
    out << "[[job]]\nname = \"" << layer->name << "\"\nop = \"conv2d\"\nn = " << spec.n << "\nc = " << spec.c
        << "\nh = " << spec.h << "\nw = " << spec.w << "\nk = " << spec.k << "\nr = " << spec.r << "\ns = " << spec.s
        << "\nstride = " << spec.stride_y << "\npad = " << spec.pad_y
        << "\ninput = \"random:1\"\nweights = \"random:2\"\n";
  }
  if (!out.flush()) throw std::runtime_error(file.string() + ": cannot be written");
}

Json tune(const TemporaryFolder& folder, const Choices& choices) {
  const std::string command = kiln_command().string(), result = (folder / "result.json").string();
  std::vector<std::string> words{command,
                                 "tune",
                                 (folder / "jobs.toml").string(),
                                 "--device",
                                 "opengl:0",
                                 "--budget",
                                 std::to_string(choices.budget_s) + " s",
                                 "--cache-dir",
                                 (folder / "cache").string(),
                                 "--progress",
                                 "none",
                                 "--output",
                                 result,
                                 "--json"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("KILN_KEY_FILE", (folder / "key").c_str(), 1);
  pid_t pid = 0;
  if (const int error = posix_spawn(&pid, command.c_str(), nullptr, nullptr, argv.data(), environ); error != 0) {
    throw std::runtime_error(command + ": cannot be started: " + std::strerror(error));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("kiln tune failed");
  std::ifstream file(result);
  Json json = parse_json(std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  if (json.is_discarded()) throw std::runtime_error("kiln tune --json: no JSON");
  return json;
}

void tell(const Json& first, const Json& second, FigureFile& file) {
  // What each job's first run measured, and how much of that the second knows without measuring.
  std::vector<double> kept;
  for (std::size_t i = 0; i < first.at("jobs").size(); ++i) {
    const double measured = first.at("jobs").at(i).at("candidates").get<double>();
    const double known = second.at("jobs").at(i).at("known").get<double>();
    kept.push_back(measured == 0 ? 100 : 100 * std::min(known, measured) / measured);
  }
  for (std::size_t i = 0; i < first.at("jobs").size(); ++i) {
    const Json& job = first.at("jobs").at(i);
    const auto rate_of = [&](const Json& run, const char* what) {
      const Json& rate = run.at("jobs").at(i).at(what);
      if (rate.is_null())
        throw std::runtime_error(job.at("name").get<std::string>() + ": no " + what + " was measured");
      return rate.get<double>();
    };
    const auto both = [&](const char* what) {
      return std::vector<double>{rate_of(first, what), rate_of(second, what)};
    };
    const auto figure = [&](const char* id, const char* name, const char* unit, Better better,
                            std::vector<double> values) {
      Figure made;
      made.id = std::string("tuner.") + id;
      made.name = name;
      made.unit = unit;
      made.better = better;
      made.kiln = std::move(values);
      made.group = job.at("name").get<std::string>();
      made.device = "opengl:0";
      return made;
    };
    Figure device = figure("device/plain", "the winner, on the device", "GFLOP/s", Better::more, both("gflops_device"));
    device.peer = Peer{"the plain kernel with constants", both("baseline_gflops_device")};
    device.target = Target{Target::Of::ratio, 25};
    device.verified = true;  // a variant whose output is wrong is rejected and wins nothing
    file.add(std::move(device));
    Figure wall = figure("wall/plain", "the winner, NCHW to NCHW", "GFLOP/s", Better::more, both("gflops"));
    wall.peer = Peer{"the plain kernel with constants", both("baseline_gflops")};
    wall.verified = true;
    file.add(std::move(wall));
    file.add(figure("candidates", "variants measured within the budget", "variants", Better::more,
                    {job.at("candidates").get<double>()}));
    file.add(figure("rejected", "of them rejected", "variants", Better::less,
                    {static_cast<double>(job.at("rejected").size())}));
  }
  Figure repeated;
  repeated.id = "tuner.kept";
  repeated.name = "of what was measured, known to a second run";
  repeated.unit = "%";
  repeated.better = Better::more;
  repeated.kiln = kept;
  repeated.target = Target{Target::Of::kiln, 100};
  repeated.device = "opengl:0";
  file.add(std::move(repeated));
}

Choices choices_of(int count, char** words) {
  Choices choices;
  for (int i = 1; i < count; i += 2) {
    const std::string word = words[i];
    const int value = i + 1 < count ? std::atoi(words[i + 1]) : 0;
    if (value < 1) throw std::runtime_error(word + ": needs a number from 1 on");
    if (word == "--layers" && static_cast<std::size_t>(value) <= std::size(layer_names)) {
      choices.layers = static_cast<std::size_t>(value);
    } else if (word == "--budget") {
      choices.budget_s = value;
    } else {
      throw std::runtime_error(word + ": expected --figures FILE, --layers 1 to 4 or --budget SECONDS");
    }
  }
  return choices;
}

}  // namespace

int main(int count, char** words) try {
  FigureFile file = FigureFile::of_words(count, words);
  const Choices choices = choices_of(count, words);
  const TemporaryFolder folder("kiln-tuner");
  write_jobs(folder / "jobs.toml", choices);
  const Json first = tune(folder, choices);
  const Json second = tune(folder, choices);
  tell(first, second, file);
  file.print();
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "tuner: %s\n", error.what());
  return 1;
}
