// A picture with alpha as the input of a job: straight colours, and what `alpha` makes of them.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t side = 4;

// Red, green, blue and alpha of 200, 100, 50 and 0 to 240 of 255; grey and alpha where there are two channels.
void write_picture(const std::filesystem::path& path, std::int64_t channels) {
  const auto tensor = HostTensor::create(DType::f32, {1, channels, side, side}).value();
  const auto values = tensor->as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t channel = i / (side * side), pixel = i % (side * side);
    const float colours[] = {200, 100, 50};
    const bool alpha = channel + 1 == static_cast<std::size_t>(channels);
    values[i] = (alpha ? static_cast<float>(16 * pixel) : colours[channel]) / 255.0f;
  }
  REQUIRE(data::write_png(path, *tensor).ok());
}

// A convolution that copies its `channels` channels.
std::string copy_job(const TemporaryFolder& folder, std::int64_t channels, const std::string& more) {
  const auto weights = HostTensor::create(DType::f32, {channels, channels, 1, 1}).value();
  for (std::int64_t i = 0; i < channels; ++i) weights->as<float>()[static_cast<std::size_t>(i * channels + i)] = 1;
  REQUIRE(data::write_npy(folder / "w.npy", *weights).ok());
  const std::string c = std::to_string(channels);
  return "[[job]]\nname = \"copy\"\nop = \"conv2d\"\nc = " + c + "\nk = " + c +
         "\nh = 4\nw = 4\nr = 1\ns = 1\ninput = \"in.png\"\nweights = \"w.npy\"\noutput = \"out.npy\"\nverify = "
         "true\n" +
         more;
}

std::vector<float> output_of(const TemporaryFolder& folder) {
  const auto tensor = data::read_npy(folder / "out.npy");
  REQUIRE(tensor.has_value());
  return {(*tensor)->as<float>().begin(), (*tensor)->as<float>().end()};
}

}  // namespace

TEST_CASE("a picture's alpha does not darken its colours") {
  const TemporaryFolder folder;
  const struct {
    std::int64_t stored, channels;  // of the picture with its alpha, and of the job
    const char* alpha;              // null: the default
    bool noted;
    float first;  // of the first colour at the last pixel, whose alpha is 240
  } cases[] = {{4, 3, nullptr, true, 200 / 255.f},
               {4, 4, nullptr, false, 200 / 255.f},
               {2, 1, nullptr, true, 200 / 255.f},
               {2, 2, nullptr, false, 200 / 255.f},
               {4, 3, "drop", false, 200 / 255.f},
               {4, 3, "premultiply", false, 200 / 255.f * (240 / 255.f)},
               {4, 4, "premultiply", false, 200 / 255.f * (240 / 255.f)}};
  for (const auto& one : cases) {
    write_picture(folder / "in.png", one.stored);
    const std::string alpha = one.alpha == nullptr ? "" : "alpha = \"" + std::string(one.alpha) + "\"\n";
    const auto file = folder.write("job.toml", copy_job(folder, one.channels, alpha));
    const Finished finished = run_kiln({"run", file, "--json", "--device", "cpu", "--cache-dir", folder / "cache"},
                                       {.folder = folder.path()});
    INFO(one.stored << " to " << one.channels << " " << alpha << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK((finished.json()["jobs"][0]["notes"].dump().find("alpha channel is left out") != std::string::npos) ==
          one.noted);
    const std::vector<float> out = output_of(folder);
    CHECK(out[side * side - 1] == one.first);
    if (one.channels == one.stored) CHECK(out.back() == 240 / 255.f);  // alpha itself
  }
}

TEST_CASE("a picture whose channels do not fit is refused, with the word alpha where that is why") {
  const TemporaryFolder folder;
  write_picture(folder / "in.png", 4);
  for (const char* alpha : {"alpha = \"drop\"\n", "alpha = \"dorp\"\n"}) {
    const auto file = folder.write("job.toml", copy_job(folder, 4, alpha));
    const Finished finished = run_kiln({"run", file, "--device", "cpu", "--cache-dir", folder / "cache"});
    INFO(finished.err);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains("alpha") && Contains("drop"));
  }
}
