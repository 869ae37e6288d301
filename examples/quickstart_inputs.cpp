// quickstart_inputs FOLDER: makes what the quickstart filters: photo.png, a landscape at sunset of 512 x 384 drawn from
// noise, and four filters as .npy of shape [3, 1, R, S] (one kernel a colour: a convolution with groups = 3).
// The files are the same on every machine but for the last bit of libm.
#include <kiln/data.hpp>
#include <kiln/tensor.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

namespace {

constexpr int width = 512;
constexpr int height = 384;
constexpr float horizon = 0.64f;  // of the height; the lake lies below
constexpr float sun_x = 0.66f, sun_y = 0.475f;

struct Colour {
  float red = 0, green = 0, blue = 0;
};
Colour operator+(Colour a, Colour b) { return {a.red + b.red, a.green + b.green, a.blue + b.blue}; }
Colour operator*(Colour a, float f) { return {a.red * f, a.green * f, a.blue * f}; }
Colour mix(Colour a, Colour b, float t) { return a * (1 - t) + b * t; }

float smooth(float from, float to, float x) {
  const float t = std::clamp((x - from) / (to - from), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

// A value from 0 to 1 that depends on a lattice point alone.
float lattice(int x, int y, std::uint32_t layer) {
  std::uint32_t bits =
      static_cast<std::uint32_t>(x) * 0x9E3779B1u ^ static_cast<std::uint32_t>(y) * 0x85EBCA77u ^ layer * 0xC2B2AE3Du;
  bits = (bits ^ bits >> 15) * 0x2C1B3C6Du;
  bits = (bits ^ bits >> 12) * 0x297A2D39u;
  return static_cast<float>((bits ^ bits >> 15) >> 8) * 0x1p-24f;
}

float noise(float x, float y, std::uint32_t layer) {
  const float left = std::floor(x), top = std::floor(y);
  const int ix = static_cast<int>(left), iy = static_cast<int>(top);
  const float tx = smooth(0, 1, x - left), ty = smooth(0, 1, y - top);
  const float upper = std::lerp(lattice(ix, iy, layer), lattice(ix + 1, iy, layer), tx);
  const float lower = std::lerp(lattice(ix, iy + 1, layer), lattice(ix + 1, iy + 1, layer), tx);
  return std::lerp(upper, lower, ty);
}

// Fractal noise around 0: octaves of half the size and `gain` of the height.
float fractal(float x, float y, std::uint32_t layer, int octaves, float gain = 0.5f) {
  float sum = 0, amplitude = 1, total = 0;
  for (int octave = 0; octave < octaves; ++octave) {
    sum += amplitude * (noise(x, y, layer + static_cast<std::uint32_t>(octave)) - 0.5f);
    total += amplitude;
    amplitude *= gain;
    x = x * 2 + 17.3f;
    y = y * 2 + 5.1f;
  }
  return sum / total;
}

// Sharp crests where the noise crosses its middle.
float ridged(float x, float y, std::uint32_t layer, int octaves) {
  float sum = 0, amplitude = 0.5f;
  for (int octave = 0; octave < octaves; ++octave) {
    const float fold = 1 - std::abs(2 * noise(x, y, layer + static_cast<std::uint32_t>(octave)) - 1);
    sum += amplitude * fold * fold;
    amplitude *= 0.5f;
    x = x * 2.03f + 11.7f;
    y = y * 2.03f + 3.9f;
  }
  return sum;
}

Colour sky(float x, float y) {
  const float t = std::clamp(y / horizon, 0.0f, 1.0f);
  Colour colour = mix({0.10f, 0.20f, 0.44f}, {0.42f, 0.47f, 0.66f}, smooth(0, 0.55f, t));
  colour = mix(colour, {1.18f, 0.72f, 0.40f}, smooth(0.36f, 0.95f, t));
  const float aspect = static_cast<float>(width) / height;
  const float distance = std::hypot((x - sun_x) * aspect, y - sun_y);
  // Long streaks of cloud, lit from below where the sun is near.
  const float cover =
      smooth(0.02f, 0.22f, fractal(x * 3.2f + 0.6f, y * 13 + fractal(x * 2, y * 6, 40, 3), 50, 5, 0.55f) + 0.02f);
  const Colour cloud = mix({0.45f, 0.40f, 0.52f}, {1.0f, 0.66f, 0.46f}, std::exp(-2.6f * distance));
  colour = mix(colour, cloud, cover * 0.72f * smooth(1.0f, 0.5f, t));
  colour = colour + Colour{1.1f, 0.60f, 0.26f} * (0.75f * std::exp(-5.5f * distance));
  colour = colour + Colour{1.0f, 0.85f, 0.60f} * (0.60f * std::exp(-22 * distance));
  return mix(colour, {3.2f, 2.5f, 1.6f}, smooth(0.036f, 0.031f, distance));
}

struct Range {
  float base, relief, frequency, haze, snow_line;
  std::uint32_t layer;
};

// From far to near: the farther, the more of the sky's light lies before it.
constexpr std::array<Range, 4> ranges{{{0.50f, 0.30f, 2.1f, 0.60f, 0.42f, 100},
                                       {0.57f, 0.30f, 2.9f, 0.36f, 0.47f, 200},
                                       {0.615f, 0.17f, 4.3f, 0.17f, 0.40f, 300},
                                       {0.645f, 0.085f, 7.0f, 0.08f, 0.0f, 400}}};

float crest(const Range& range, float x) {
  const float broad = fractal(x * range.frequency, 0.5f, range.layer, 3);
  return range.base -
         range.relief * (0.25f + broad + 0.32f * ridged(x * range.frequency * 1.7f, 0.5f, range.layer + 30, 6) - 0.22f);
}

Colour rock(const Range& range, float x, float y) {
  const float below = y - crest(range, x);
  // Folds that run down from the crest; their slope towards the sun is what is lit.
  const auto relief = [&](float at) { return ridged(at * 9 + below * 3, y * 7, range.layer + 60, 5); };
  const float towards_sun = x < sun_x ? 1.0f : -1.0f;
  const float slope = (relief(x + 0.004f * towards_sun) - relief(x)) * 9;
  const float light = std::clamp(0.45f + slope, 0.08f, 1.0f);
  Colour colour = mix({0.06f, 0.08f, 0.15f}, {0.62f, 0.42f, 0.32f}, light);
  const float snow = smooth(range.snow_line + 0.05f, range.snow_line - 0.05f,
                            y + 0.10f * fractal(x * 22, y * 22, range.layer + 80, 4));
  colour = mix(colour, mix({0.36f, 0.42f, 0.60f}, {1.0f, 0.86f, 0.76f}, light), snow * 0.9f);
  const float mist = range.haze + 0.30f * smooth(0.0f, 0.22f, below) * smooth(0.2f, 0.6f, range.haze);
  return mix(colour, {0.92f, 0.58f, 0.46f}, std::min(mist, 0.80f));
}

// How far a dark wood of spruces stands above the near shore.
float treetops(float x) {
  float top = 0;
  for (int row = 0; row < 3; ++row) {
    const float spacing = 0.011f + 0.004f * static_cast<float>(row);
    const int nearest = static_cast<int>(std::floor(x / spacing));
    for (int tree = nearest - 1; tree <= nearest + 1; ++tree) {
      const auto layer = 500u + static_cast<std::uint32_t>(row);
      const float centre = (static_cast<float>(tree) + lattice(tree, 1, layer)) * spacing;
      const float wood = smooth(0.30f, 0.02f, centre) + smooth(0.80f, 1.0f, centre) * 0.8f;
      const float tall = (0.035f + 0.075f * lattice(tree, 2, layer)) * wood;
      const float taper = 1 - std::abs(x - centre) / (0.16f * tall + 1e-4f);
      const float branches = 0.10f * lattice(static_cast<int>(x * 1024), tree, layer);
      top = std::max(top, tall * (taper - branches));
    }
  }
  return top;
}

Colour land(float x, float y) {
  const float shore = horizon + 0.004f * fractal(x * 11, 0, 600, 3);
  if (y > shore - treetops(x) - 0.006f * smooth(0.4f, 0.0f, x)) return {0.030f, 0.036f, 0.050f};
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (y > crest(*range, x)) return rock(*range, x, y);
  }
  return sky(x, y);
}

Colour scene(float x, float y) {
  if (y <= horizon) return land(x, y);
  const float depth = (y - horizon) / (1 - horizon);
  // Ripples grow towards the viewer; each shifts what is mirrored.
  const float near = 14 + 60 * (1 - depth);
  const float ripple = fractal(x * near * 0.35f, y * near * 2.2f, 700, 4, 0.6f);
  const float mirrored = horizon - (y - horizon) * 0.92f + ripple * 0.10f * (0.15f + depth);
  Colour colour = land(x + ripple * 0.012f, std::clamp(mirrored, 0.0f, horizon));
  colour = mix(colour, {0.05f, 0.12f, 0.20f}, 0.26f + 0.38f * depth);
  const float path = std::exp(-std::pow((x - sun_x) / (0.022f + 0.07f * depth), 2.0f));
  return colour + Colour{1.0f, 0.70f, 0.40f} * (path * smooth(0.02f, 0.26f, ripple) * 0.9f);
}

Colour photographed(int column, int row) {
  Colour sum;
  for (const float dy : {0.25f, 0.75f}) {
    for (const float dx : {0.25f, 0.75f}) {
      sum = sum + scene((static_cast<float>(column) + dx) / width, (static_cast<float>(row) + dy) / height) * 0.25f;
    }
  }
  const float x = static_cast<float>(column) / width - 0.5f, y = static_cast<float>(row) / height - 0.5f;
  const float vignette = 1 - 0.55f * (x * x + y * y);
  const float grain = (lattice(column, row, 900) + lattice(column, row, 901) - 1) * 0.011f;
  const auto develop = [&](float value) { return 1 - std::exp(-1.55f * std::max(value * vignette, 0.0f)) + grain; };
  return {develop(sum.red), develop(sum.green), develop(sum.blue)};
}

kiln::Status write_photo(const std::filesystem::path& path) {
  auto made = kiln::HostTensor::create(kiln::DType::f32, {1, 3, height, width});
  if (!made) return made.error();
  const auto to = (*made)->as<float>();
  constexpr std::size_t plane = std::size_t{width} * height;
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const Colour colour = photographed(column, row);
      const std::size_t at = static_cast<std::size_t>(row) * width + static_cast<std::size_t>(column);
      to[at] = colour.red;
      to[plane + at] = colour.green;
      to[2 * plane + at] = colour.blue;
    }
  }
  return kiln::data::store_tensor(path, **made);
}

// weight(y, x) counts from the centre.
kiln::Status write_filter(const std::filesystem::path& path, int size, const std::function<double(int, int)>& weight) {
  auto made = kiln::HostTensor::create(kiln::DType::f32, {3, 1, size, size});
  if (!made) return made.error();
  auto to = (*made)->as<float>().begin();
  for (int colour = 0; colour < 3; ++colour) {
    for (int y = -(size / 2); y <= size / 2; ++y) {
      for (int x = -(size / 2); x <= size / 2; ++x) *to++ = static_cast<float>(weight(y, x));
    }
  }
  return kiln::data::store_tensor(path, **made);
}

double bell(int y, int x, double sigma) { return std::exp(-(x * x + y * y) / (2 * sigma * sigma)); }

kiln::Status write_filters(const std::filesystem::path& folder) {
  double sum = 0, slope = 0;
  for (int y = -3; y <= 3; ++y) {
    for (int x = -3; x <= 3; ++x) {
      sum += bell(y, x, 1.8);
      slope += std::abs(x + y) * bell(y, x, 1.4);
    }
  }
  kiln::Status status = write_filter(folder / "gaussian7.npy", 7, [&](int y, int x) { return bell(y, x, 1.8) / sum; });
  if (!status.ok()) return status;
  status = write_filter(folder / "sharpen3.npy", 3, [](int y, int x) {
    return x == 0 && y == 0 ? 5 : x == 0 || y == 0 ? -1 : 0;
  });
  if (!status.ok()) return status;
  status = write_filter(folder / "edges3.npy", 3, [](int y, int x) { return x == 0 && y == 0 ? 8 : -1; });
  if (!status.ok()) return status;
  // The slope from the upper left to the lower right, on top of a faint copy of the picture.
  return write_filter(folder / "emboss7.npy", 7, [&](int y, int x) {
    return 5 * (x + y) * bell(y, x, 1.4) / slope + 0.75 * bell(y, x, 1.8) / sum;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  kiln::Status status = write_photo(folder / "photo.png");
  if (status.ok()) status = write_filters(folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "quickstart_inputs: %s\n", status.message.c_str());
  return 1;
}
