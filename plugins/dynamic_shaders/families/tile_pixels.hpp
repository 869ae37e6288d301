// Where the four tiles of a lane find their pixels in the input, and put them in the output.
//
// With one, two or four tiles across a plane a lane's tiles are whole rows of tiles: its pixels lie behind one another,
// columns, borders and alignment are known when the text is written, and what tiles share is loaded once. Else each
// tile looks after itself. Either way pixels move by fours where they lie so that they can.
// Thread-safety: pure functions. Ownership: what load_tiles returns borrows its arguments.
#pragma once

#include <functional>

#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

struct TileAccess {
  bool rows = false;       // the four tiles are whole rows of tiles
  bool fours = false;      // pixels move by fours
  std::int64_t moves = 0;  // floats or fours that a lane loads or stores
};
TileAccess input_access(const Conv2dSpec& spec, const WinogradShape& shape, View view, const Form& form);
TileAccess output_access(const Conv2dSpec& spec, const WinogradShape& shape, const Form& form);

// The expression of a pixel of one of the four tiles.
using TilePixels = std::function<std::string(std::int64_t tile, std::int64_t row, std::int64_t column)>;

// Writes the loads of the binding `x`, which has vectors where access.fours holds.
TilePixels load_tiles(const Conv2dSpec& spec, const WinogradShape& shape, TileAccess access, KernelWriter& writer);
// Writes the stores of `pixels`, floats, to the binding `y`, likewise.
void store_tiles(const Conv2dSpec& spec, const WinogradShape& shape, TileAccess access, KernelWriter& writer,
                 const TilePixels& pixels);

}  // namespace kiln::dynamic_shaders
