#include "support/conv_cases.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kiln::support {
namespace {

constexpr const char* columns = "name,n,c,h,w,k,r,s,stride,pad,groups";

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t count) { return between(1, count) == 1; }

 private:
  std::uint64_t next() {  // xorshift64*, so that the cases depend on no library's distributions
    if (state_ == 0) state_ = 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du >> 16;
  }

  std::uint64_t state_;
};

// One draw; it may be too large or not valid.
Conv2dSpec draw_spec(Draw& draw) {
  Conv2dSpec spec;
  spec.n = draw.one_in(4) ? draw.between(2, 5) : 1;
  spec.h = draw.between(1, 40);
  spec.w = draw.between(1, 40);
  spec.r = draw.one_in(3) ? 1 : draw.between(1, 7);
  spec.s = draw.one_in(3) ? spec.r : draw.between(1, 7);
  if (draw.one_in(2)) spec.r = spec.s = 3;
  spec.stride_y = draw.one_in(2) ? 1 : draw.between(1, 4);
  spec.stride_x = draw.one_in(2) ? spec.stride_y : draw.between(1, 4);
  spec.dilation_y = draw.one_in(4) ? draw.between(2, 4) : 1;
  spec.dilation_x = draw.one_in(4) ? draw.between(2, 4) : 1;
  spec.pad_y = draw.one_in(3) ? 0 : draw.between(0, 5);
  spec.pad_x = draw.one_in(3) ? spec.pad_y : draw.between(0, 5);
  if (draw.one_in(12)) {  // a kernel as large as the padded input: one output
    spec.r = spec.h + 2 * spec.pad_y;
    spec.s = spec.w + 2 * spec.pad_x;
    spec.dilation_y = spec.dilation_x = 1;
  }
  switch (draw.between(0, 3)) {
    case 0:  // depthwise, sometimes with several outputs a channel
      spec.c = spec.groups = draw.between(1, 33);
      spec.k = spec.c * (draw.one_in(3) ? draw.between(2, 3) : 1);
      break;
    case 1:
      spec.groups = draw.between(2, 5);
      spec.c = spec.groups * draw.between(1, 9);
      spec.k = spec.groups * draw.between(1, 9);
      break;
    default:
      spec.c = draw.between(1, 40);
      spec.k = draw.between(1, 40);
  }
  spec.bias = draw.one_in(2) ? Bias::per_channel : Bias::none;
  spec.activation = draw.one_in(3) ? Activation::relu : Activation::none;
  return spec;
}

}  // namespace

std::vector<NamedConv> workload_cases(const std::string& name) {
  const std::string path = std::string(KILN_SOURCE_DIR) + "/tests/data/workloads/" + name + ".csv";
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("file " + path + ": cannot read");
  if (line != columns) throw std::runtime_error("file " + path + ": found columns " + line + ", expected " + columns);
  std::vector<NamedConv> cases;
  for (int number = 2; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const std::string where = "file " + path + ":" + std::to_string(number);
    std::istringstream fields(line);
    NamedConv layer;
    std::getline(fields, layer.name, ',');
    std::int64_t values[10] = {};
    for (std::int64_t& value : values) {
      std::string text;
      std::getline(fields, text, ',');
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) {
        throw std::runtime_error(where + ": found \"" + text + "\", expected an integer");
      }
    }
    Conv2dSpec& spec = layer.spec;
    spec.n = values[0], spec.c = values[1], spec.h = values[2], spec.w = values[3];
    spec.k = values[4], spec.r = values[5], spec.s = values[6];
    spec.stride_y = spec.stride_x = values[7];
    spec.pad_y = spec.pad_x = values[8];
    spec.groups = values[9];
    if (const Status status = validate(spec); !status.ok() || !fields.eof()) {
      throw std::runtime_error(where + ": " + (status.ok() ? "more columns than expected" : status.message));
    }
    cases.push_back(layer);
  }
  return cases;
}

std::vector<Conv2dSpec> random_cases(std::size_t count, std::uint64_t seed, std::int64_t most_macs) {
  Draw draw(seed);
  std::vector<Conv2dSpec> cases;
  while (cases.size() < count) {
    const Conv2dSpec spec = draw_spec(draw);
    if (validate(spec).ok() && flops(spec) / 2 <= static_cast<double>(most_macs)) cases.push_back(spec);
  }
  return cases;
}

}  // namespace kiln::support
