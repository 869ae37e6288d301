// quickstart_sheet INPUTS OUTPUTS: sets the quickstart's pictures side by side in OUTPUTS/sheet.png. Rows are the
// filters, columns the input (INPUTS/photo.png) and each device's result (OUTPUTS/FILTER.DEVICE.png), at half
// their size. A result that is not there is left dark and captioned so; with no result at all nothing is written, and
// the exit status is 1.
#include <kiln/data.hpp>
#include <kiln/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace {

using Picture = std::shared_ptr<kiln::HostTensor>;

constexpr std::array<std::string_view, 4> filters{"gaussian7", "sharpen3", "edges3", "emboss7"};
constexpr std::array<std::string_view, 2> devices{"cpu", "opengl"};
constexpr std::int64_t margin = 10;
constexpr std::int64_t caption_height = 24;
constexpr std::int64_t dot = 2;  // pixels a dot of a letter
constexpr float paper = 0.10f, ink = 0.92f, absent = 0.05f;

struct Letter {
  char code;
  std::array<std::uint8_t, 7> rows;  // five bits each, the leftmost highest
};

constexpr Letter letters[] = {{'a', {0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001}},
                              {'b', {0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110}},
                              {'c', {0b01110, 0b10001, 0b10000, 0b10000, 0b10000, 0b10001, 0b01110}},
                              {'d', {0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110}},
                              {'e', {0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111}},
                              {'f', {0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b10000}},
                              {'g', {0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01110}},
                              {'h', {0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001}},
                              {'i', {0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
                              {'l', {0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b11111}},
                              {'m', {0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001}},
                              {'n', {0b10001, 0b11001, 0b10101, 0b10011, 0b10001, 0b10001, 0b10001}},
                              {'o', {0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110}},
                              {'p', {0b11110, 0b10001, 0b10001, 0b11110, 0b10000, 0b10000, 0b10000}},
                              {'r', {0b11110, 0b10001, 0b10001, 0b11110, 0b10100, 0b10010, 0b10001}},
                              {'s', {0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110}},
                              {'t', {0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100}},
                              {'u', {0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110}},
                              {'3', {0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110}},
                              {'7', {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000}}};

void set_pixel(kiln::HostTensor& sheet, std::int64_t y, std::int64_t x, std::int64_t colour, float value) {
  const kiln::Shape& shape = sheet.shape();
  if (y < 0 || y >= shape[2] || x < 0 || x >= shape[3]) return;
  sheet.as<float>()[static_cast<std::size_t>((colour * shape[2] + y) * shape[3] + x)] = value;
}

void fill(kiln::HostTensor& sheet, std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns,
          float value) {
  for (std::int64_t y = top; y < top + rows; ++y) {
    for (std::int64_t x = left; x < left + columns; ++x) {
      for (std::int64_t colour = 0; colour < 3; ++colour) set_pixel(sheet, y, x, colour, value);
    }
  }
}

// A character without a letter is a space.
void write(kiln::HostTensor& sheet, std::int64_t top, std::int64_t left, std::string_view text) {
  for (const char code : text) {
    const auto* letter =
        std::find_if(std::begin(letters), std::end(letters), [&](const Letter& one) { return one.code == code; });
    for (std::int64_t row = 0; letter != std::end(letters) && row < 7; ++row) {
      for (std::int64_t column = 0; column < 5; ++column) {
        if (letter->rows[static_cast<std::size_t>(row)] >> (4 - column) & 1) {
          fill(sheet, top + row * dot, left + column * dot, dot, dot, ink);
        }
      }
    }
    left += 6 * dot;
  }
}

// Each pixel of the sheet is the mean of four.
void paste_half(kiln::HostTensor& sheet, std::int64_t top, std::int64_t left, const kiln::HostTensor& picture) {
  const kiln::Shape& shape = picture.shape();
  const auto from = picture.as<float>();
  for (std::int64_t colour = 0; colour < 3; ++colour) {
    const std::int64_t plane = colour % shape[1] * shape[2];
    for (std::int64_t y = 0; y < shape[2] / 2; ++y) {
      for (std::int64_t x = 0; x < shape[3] / 2; ++x) {
        const auto at = static_cast<std::size_t>((plane + 2 * y) * shape[3] + 2 * x);
        const auto below = at + static_cast<std::size_t>(shape[3]);
        set_pixel(sheet, top + y, left + x, colour, (from[at] + from[at + 1] + from[below] + from[below + 1]) / 4);
      }
    }
  }
}

int failed(const std::string& message) {
  std::fprintf(stderr, "quickstart_sheet: %s\n", message.c_str());
  return 1;
}

kiln::Result<Picture> read(const std::filesystem::path& file) {
  return kiln::data::load_tensor(file.string(), {}, {kiln::DType::f32, {}, "picture"});
}

int compose(const std::filesystem::path& inputs, const std::filesystem::path& outputs) {
  const auto photo = read(inputs / "photo.png");
  if (!photo) return failed(photo.error().message);
  const std::int64_t cell_height = (*photo)->shape()[2] / 2;
  const std::int64_t cell_width = (*photo)->shape()[3] / 2;
  const auto columns = static_cast<std::int64_t>(devices.size()) + 1;
  const auto rows = static_cast<std::int64_t>(filters.size());
  const std::int64_t step_y = caption_height + cell_height + margin;
  const std::int64_t step_x = cell_width + margin;
  const auto sheet =
      kiln::HostTensor::create(kiln::DType::f32, {1, 3, rows * step_y + margin, columns * step_x + margin});
  if (!sheet) return failed(sheet.error().message);
  fill(**sheet, 0, 0, rows * step_y + margin, columns * step_x + margin, paper);

  int found = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string filter(filters[static_cast<std::size_t>(row)]);
    const std::int64_t top = margin / 2 + row * step_y;
    write(**sheet, top + 5, margin, "input");
    paste_half(**sheet, top + caption_height, margin, **photo);
    for (std::int64_t column = 1; column < columns; ++column) {
      const std::string device(devices[static_cast<std::size_t>(column - 1)]);
      const std::int64_t left = margin + column * step_x;
      const auto picture = read(outputs / (filter + "." + device + ".png"));
      if (picture && (*picture)->shape()[2] / 2 <= cell_height && (*picture)->shape()[3] / 2 <= cell_width) {
        write(**sheet, top + 5, left, filter + " " + device);
        paste_half(**sheet, top + caption_height, left, **picture);
        ++found;
        continue;
      }
      if (!picture && picture.error().code != kiln::StatusCode::not_found) return failed(picture.error().message);
      if (picture) return failed(filter + " on " + device + ": larger than the input");
      write(**sheet, top + 5, left, filter + " " + device + " absent");
      fill(**sheet, top + caption_height, left, cell_height, cell_width, absent);
      std::fprintf(stderr, "quickstart_sheet: %s: left dark\n", picture.error().message.c_str());
    }
  }
  if (found == 0) return failed("folder " + outputs.string() + ": no FILTER.DEVICE.png in it");
  const kiln::Status status = kiln::data::store_tensor(outputs / "sheet.png", **sheet);
  return status.ok() ? 0 : failed(status.message);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s INPUTS OUTPUTS\n", argv[0]);
    return 2;
  }
  return compose(argv[1], argv[2]);
}
